// Tiles of attention on tensor cores: which there are, how many blocks of each an SM of a card
// holds, and how many rows of its own a launch gives a block.
//
// Few rows make many blocks, which keep all SMs busy where a model has few heads; many rows use a
// fetched tile of the other side more often. The bits of a result do not depend on the choice: a
// row walks over the same tiles in the same order whatever block it is in.
//
// Units    "row": a query in the forward kernel and in that of dQ, a key in that of dK and dV.
//          "column": a row of the other side.
// Source   CUDA C++ Programming Guide 13.0, "Compute Capabilities": registers and shared memory of
//          an SM, 1 KiB of it taken by the system for each block.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mr::gpu {

enum class AttentionKernel : std::uint8_t { Forward, KeyGradients, QueryGradients };

// The facts of a launch that decide how long its blocks take.
struct AttentionGrid {
    AttentionKernel kernel = AttentionKernel::Forward;
    int headDim = 0;
    int heads = 0; // blocks for each tile of rows
    std::int64_t tokens = 0;
    std::int64_t firstQuery = 0; // forward: rows before it are keys only
    std::int64_t mostKeys = 0;   // no query sees more keys; 0: not known

    bool operator==(const AttentionGrid&) const = default;
};

struct AttentionTile {
    int rows = 0;
    int columns = 0;
    int warps = 0;
    std::size_t sharedBytes = 0;
};

// The rows that a block may have, most first.
inline constexpr std::array kAttentionRows{128, 64, 32};
inline constexpr std::array kAttentionRowsOf256{64, 48, 32};

constexpr std::span<const int> attentionRows(AttentionKernel kernel, int headDim) noexcept
{
    if (headDim > 128)
        return kAttentionRowsOf256;
    const std::size_t first = kernel == AttentionKernel::Forward ? 0 : 1;
    const bool fewHeads = headDim == 64 || headDim == 128; // in some models that have these
    return std::span<const int>(kAttentionRows).subspan(first, (fewHeads ? 3 : 2) - first);
}

// A tile of the kernels in attention_mma_*.cu. Precondition: rows is one of attentionRows().
//
// Two slabs of 16 rows a warp use every fragment of K and V twice: shared memory gives 128 bytes a
// cycle, and with one slab it can be the limit. At 256 the output of one slab takes half of a
// thread's registers.
constexpr AttentionTile attentionTile(AttentionKernel kernel, int headDim, int rows) noexcept
{
    constexpr std::size_t kColumnBytes = 12; // QueryRow
    const bool forward = kernel == AttentionKernel::Forward;
    const int columns = forward ? 64 : headDim > 128 ? 16 : rows;
    const auto tiles =
        static_cast<std::size_t>(forward ? rows + 2 * columns : 2 * rows + 3 * columns);
    const std::size_t columnBytes = forward ? 0 : static_cast<std::size_t>(columns) * kColumnBytes;
    return {rows, columns, rows > 64 ? rows / 32 : rows / 16,
        tiles * static_cast<std::size_t>(headDim) * 2 + columnBytes};
}

// Share of the time of `slots` blocks at once that is spent in blocks, while the grid runs: a block
// starts, in the order of its index, when the first slot is free, and takes one unit of time for
// each tile of columns it walks over and one more for its own rows.
double busyShare(const AttentionGrid& grid, int rows, int slots);

// Work in a unit of time of a card full of blocks with so many rows, for 128 of them; measured on
// an H200 (tests/bench/gpu.md).
double rateOfRows(int rows) noexcept;

struct AttentionCard {
    int computeMajor = 0;
    int multiprocessors = 1;
    std::size_t sharedBytes = 0; // of an SM
};

// Precondition: tensor cores for BF16.
int blocksOnSm(const AttentionCard& card, const AttentionTile& tile) noexcept;

// Chooses for one card.
//
// The tile with the largest product of its rate and its share is the fastest.
//
// Threads  Engine thread. Choices are remembered without allocating.
class AttentionChoice
{
public:
    // No block gets more than `rowsAtMost` rows, where a tile is as small as that.
    explicit AttentionChoice(const AttentionCard& card, int rowsAtMost = 128) noexcept;

    bool hasTensorCores() const noexcept; // for BF16

    int rows(const AttentionGrid& grid);

    // The rows this card may choose, in the order of preference: from the tile on that puts most
    // warps on an SM, up to 8, which cover each other's waits. Cards with 100 KiB of shared memory
    // hold one block of 128 rows of 128, and two of 64.
    std::span<const int> preferredRows(AttentionKernel kernel, int headDim) const noexcept;

    // Blocks of so many rows that the card holds at once.
    int slots(const AttentionGrid& grid, int rows) const noexcept;

private:
    struct Choice {
        AttentionGrid grid;
        int rows = 0;
    };

    const AttentionCard m_card;
    const int m_rowsAtMost;
    std::array<Choice, 16> m_last; // a ring: a model has few shapes at a time
    std::size_t m_next = 0;
};

} // namespace mr::gpu
