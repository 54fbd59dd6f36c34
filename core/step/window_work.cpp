#include "core/step/window_work.h"

#include "core/device/clip_factor.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mr {
namespace {

constexpr std::size_t kPiece = HostUpdater::kTileElements;
// An update's piece keeps this size: checkpoints hold sums that are laid out by it.
constexpr std::size_t kUpdatePiece = std::size_t{1} << 18;

std::size_t ceilDiv(std::size_t n, std::size_t by)
{
    return (n + by - 1) / by;
}

void close(const CloseWindow& window) noexcept
{
    WindowBank& bank = *window.bank;
    const bool isFinite = window.scalars->finite != 0;
    bank.applied = window.before + (window.addsLast && isFinite ? 1 : 0);
    float clip = 1.0F;
    if (window.isOneStep) {
        clip = window.scalars->clipFactor;
    } else if (window.urgent && bank.applied > 0) {
        const double urgent = window.urgent->gradNorm;
        const double norm =
            std::sqrt(urgent * urgent + joinBlocks(window.normBlocks)) / bank.applied;
        if (!std::isfinite(norm))
            bank.applied = 0;
        clip = clipFactorOf(norm, window.clipNorm);
    }
    bank.scale = bank.applied > 0 ? clip / static_cast<float>(bank.applied) : 0.0F;
}

void add(const AddGradient& work, std::size_t piece, bool isFinite) noexcept
{
    const std::size_t first = piece * kPiece;
    const std::size_t count = std::min(kPiece, work.count - first);
    float* sum = work.sum + first;
    if (isFinite)
        addGradient(sum, work.gradient + first * sizeOf(work.type), work.type, count, work.isFirst);
    else if (work.isFirst)
        std::fill_n(sum, count, 0.0F);
    if (work.normBlocks)
        squareBlocks(sum, DType::F32, count, work.normBlocks + first / 1024);
}

void square(const SquareSum& work, std::size_t piece) noexcept
{
    const std::size_t first = piece * kPiece;
    squareBlocks(work.sum + first * sizeOf(work.type), work.type,
        std::min(kPiece, work.count - first), work.normBlocks + first / 1024);
}

void update(const UpdateTile& work, std::size_t piece) noexcept
{
    // Grows with the widest weight a thread has met; after the first window it does not any more.
    thread_local std::vector<float> scratch;
    const ComplementRows& all = work.rows;
    if (scratch.size() < scratchCount(all))
        scratch.resize(scratchCount(all));
    const std::size_t first = piece * pieceRows(all.cols);
    const ComplementRows rows =
        rowsFrom(all, first, std::min(pieceRows(all.cols), all.rows - first));
    if (work.bank->applied > 0)
        updateComplement(rows, work.factors, work.bank->scale, scratch);
    else
        packWeights(rows);
}

} // namespace

std::size_t pieceRows(std::size_t cols) noexcept
{
    const std::size_t whole = rowsOfWholeGroups(cols);
    return std::max(whole, kUpdatePiece / cols / whole * whole);
}

std::size_t WindowWork::open() noexcept
{
    if (const auto* work = std::get_if<AddGradient>(&what)) {
        m_isFinite = work->scalars->finite != 0;
        return ceilDiv(work->count, kPiece);
    }
    if (const auto* work = std::get_if<SquareSum>(&what))
        return work->normBlocks ? ceilDiv(work->count, kPiece) : 0;
    if (const auto* work = std::get_if<UpdateTile>(&what))
        return ceilDiv(work->rows.rows, pieceRows(work->rows.cols));
    close(std::get<CloseWindow>(what));
    return 0;
}

void WindowWork::run(std::size_t piece) noexcept
{
    if (const auto* work = std::get_if<AddGradient>(&what))
        add(*work, piece, m_isFinite);
    else if (const auto* norm = std::get_if<SquareSum>(&what))
        square(*norm, piece);
    else
        update(std::get<UpdateTile>(what), piece);
}

} // namespace mr
