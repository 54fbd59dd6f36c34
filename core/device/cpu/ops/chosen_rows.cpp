#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/master_steps.h"
#include "core/device/cpu/ops/sum_tree.h"

#include <algorithm>
#include <array>
#include <bit>

namespace mr::cpu {

namespace {

std::uint32_t bitsAt(const TensorView& squares, std::int64_t row)
{
    return std::bit_cast<std::uint32_t>(squares.as<const float>()[row]);
}

// How many rows have at least the bits `least`.
std::int64_t rowsFrom(const TensorView& squares, std::uint32_t least)
{
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < squares.dims[0]; ++row)
        count += bitsAt(squares, row) >= least ? 1 : 0;
    return count;
}

} // namespace

// Finds the n-th largest square bit by bit: no sort, no scratch.
void selectRows(const SelectRowsArgs& args)
{
    if (readScalars(args.scalars).finite == 0)
        return;
    const std::int64_t n = args.numbers.dims[0];
    std::uint32_t least = 0;
    std::int64_t above = 0; // rows with more
    for (std::uint32_t bit = 1U << 31U; bit != 0; bit >>= 1U) {
        const std::int64_t count = rowsFrom(args.squares, least | bit);
        if (count >= n)
            least |= bit;
        else
            above = count;
    }
    std::int64_t ties = n - above;
    auto* numbers = args.numbers.as<float>();
    for (std::int64_t row = 0; row < args.squares.dims[0]; ++row) {
        const std::uint32_t own = bitsAt(args.squares, row);
        if (own > least || (own == least && ties-- > 0))
            *numbers++ = static_cast<float>(row);
    }
}

namespace {

// u of `count` elements from `at` on, whose moments begin at `kept`.
void fillRatios(const RowAdamwArgs& args, std::int64_t at, std::int64_t kept, std::int64_t count,
    float clipFactor, float* u)
{
    const auto* g = args.grad.as<const float>() + at;
    auto* m = args.m.as<float>() + kept;
    auto* v = args.v.as<float>() + kept;
    if (args.isFirst) {
        std::fill_n(m, count, 0.0F);
        std::fill_n(v, count, 0.0F);
    }
    for (std::int64_t i = 0; i < count; ++i)
        u[i] = adamwRatio(g[i] * clipFactor, m[i], v[i], args.factors);
}

// Elements [first, end) of the range, some of them in row `slot` of the chosen ones.
void stepRow(const RowAdamwArgs& args, std::int64_t slot, std::int64_t first, std::int64_t end,
    float clipFactor)
{
    const MasterRange range{args.high, args.low, args.first, args.key, args.counter};
    const MasterStep step{args.factors.stepSize, args.decayed ? args.factors.decay : 1.0F};
    const auto number = static_cast<std::int64_t>(args.numbers.as<const float>()[slot]);
    const std::int64_t row = number * args.cols - args.first; // where it begins in the range
    std::array<float, kMasterPiece> u;
    end = std::min(end, row + args.cols);
    for (std::int64_t at = std::max(first, row); at < end; at += kMasterPiece) {
        const std::int64_t count = std::min(kMasterPiece, end - at);
        fillRatios(args, at, slot * args.cols + at - row, count, clipFactor, u.data());
        stepMasters(range, at, count, u.data(), step);
    }
}

} // namespace

void rowAdamw(const RowAdamwArgs& args, ThreadPool& pool)
{
    const StepScalars scalars = readScalars(args.scalars);
    if (scalars.finite == 0)
        return;
    const auto* numbers = args.numbers.as<const float>();
    const std::int64_t chosen = args.numbers.dims[0];
    forBlocks(pool, args.grad.count(), kElementBlock, [&](std::int64_t first, std::int64_t end) {
        const auto least = static_cast<float>((args.first + first) / args.cols);
        const auto last = static_cast<float>((args.first + end - 1) / args.cols);
        std::int64_t slot = std::lower_bound(numbers, numbers + chosen, least) - numbers;
        for (; slot < chosen && numbers[slot] <= last; ++slot)
            stepRow(args, slot, first, end, scalars.clipFactor);
    });
}

} // namespace mr::cpu
