#include "gpu/ops/attention_choice.h"

#include <algorithm>
#include <functional>

namespace mr::gpu {

namespace {

constexpr int kFirstMajor = 8; // sm_80
constexpr int kWarpLanes = 32;
constexpr std::size_t kSystemBytes = 1024;   // of shared memory, for each block
constexpr int kSmRegisters = 64 * 1024;      // of every card since sm_50
constexpr int kThreadRegisters = 256;        // as much as a thread can have; the kernels need most
constexpr int kWarpsThatCover = 8;           // more warps on an SM are not preferred
constexpr std::size_t kMostSlots = 4 * 1024; // more than any card has

// Tiles of columns that the block of this tile of rows walks over.
std::int64_t stepsOf(const AttentionGrid& grid, const AttentionTile& tile, std::int64_t index)
{
    constexpr std::int64_t kSlabRows = 16;
    const std::int64_t first = grid.firstQuery + index * tile.rows;
    const std::int64_t end = std::min(first + tile.rows, grid.tokens);
    const std::int64_t sight = grid.mostKeys > 0 ? grid.mostKeys : grid.tokens;
    const bool forward = grid.kernel == AttentionKernel::Forward;
    std::int64_t from = 0;
    std::int64_t to = 0;
    if (grid.kernel == AttentionKernel::KeyGradients) {
        from = first;
        to = std::min(grid.tokens, end - 1 + sight);
    } else {
        const std::int64_t align = forward ? tile.columns : kSlabRows;
        from = std::max<std::int64_t>(0, first - sight + 1) / align * align;
        to = end;
    }
    return (to - from + tile.columns - 1) / tile.columns;
}

} // namespace

double busyShare(const AttentionGrid& grid, int rows, int slots)
{
    const AttentionTile tile = attentionTile(grid.kernel, grid.headDim, rows);
    const std::int64_t tiles = (grid.tokens - grid.firstQuery + rows - 1) / rows;
    // When each slot is free, as a heap with the first on top.
    std::array<std::int64_t, kMostSlots> times{};
    const auto used = std::span(times).first(std::min(static_cast<std::size_t>(slots), kMostSlots));
    std::int64_t work = 0;
    for (std::int64_t i = 0; i < tiles; ++i) {
        // The longest blocks come first: the first keys, and the last queries.
        const bool ascending = grid.kernel == AttentionKernel::KeyGradients;
        const std::int64_t time = stepsOf(grid, tile, ascending ? i : tiles - 1 - i) + 1;
        for (int head = 0; head < grid.heads; ++head) {
            std::ranges::pop_heap(used, std::greater<>{});
            used.back() += time;
            std::ranges::push_heap(used, std::greater<>{});
            work += time;
        }
    }
    const std::int64_t end = std::ranges::max(used);
    return end > 0 ? static_cast<double>(work) / static_cast<double>(end) /
                         static_cast<double>(used.size())
                   : 1.0;
}

double rateOfRows(int rows) noexcept
{
    return rows >= 128 ? 1.0 : rows >= 64 ? 0.94 : rows >= 48 ? 0.9 : 0.86;
}

int blocksOnSm(const AttentionCard& card, const AttentionTile& tile) noexcept
{
    const auto byMemory = static_cast<int>(card.sharedBytes / (tile.sharedBytes + kSystemBytes));
    const int byRegisters = kSmRegisters / (tile.warps * kWarpLanes * kThreadRegisters);
    return std::max(1, std::min(byMemory, byRegisters));
}

AttentionChoice::AttentionChoice(const AttentionCard& card, int rowsAtMost) noexcept
    : m_card(card)
    , m_rowsAtMost(rowsAtMost)
{
}

bool AttentionChoice::hasTensorCores() const noexcept
{
    return m_card.computeMajor >= kFirstMajor;
}

int AttentionChoice::rows(const AttentionGrid& grid)
{
    for (const Choice& choice : m_last)
        if (choice.rows > 0 && choice.grid == grid)
            return choice.rows;
    Choice& place = m_last[m_next];
    m_next = (m_next + 1) % m_last.size();
    const auto speed = [&](int rows) {
        return rateOfRows(rows) * busyShare(grid, rows, slots(grid, rows));
    };
    // max_element() takes the first of equal ones, which has the most rows.
    place = {grid, *std::ranges::max_element(preferredRows(grid.kernel, grid.headDim), {}, speed)};
    return place.rows;
}

std::span<const int> AttentionChoice::preferredRows(
    AttentionKernel kernel, int headDim) const noexcept
{
    std::span<const int> rows = attentionRows(kernel, headDim);
    while (rows.size() > 1 && rows.front() > m_rowsAtMost)
        rows = rows.subspan(1);
    const auto warps = [&](int candidate) {
        const AttentionTile tile = attentionTile(kernel, headDim, candidate);
        return std::min(kWarpsThatCover, blocksOnSm(m_card, tile) * tile.warps);
    };
    const auto first = std::ranges::max_element(rows, {}, warps); // the first of equal ones
    return {first, rows.end()};
}

int AttentionChoice::slots(const AttentionGrid& grid, int rows) const noexcept
{
    return m_card.multiprocessors *
           blocksOnSm(m_card, attentionTile(grid.kernel, grid.headDim, rows));
}

} // namespace mr::gpu
