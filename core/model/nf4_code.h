// NF4 with double quantisation: matrices in 4 bits, as the op dequantizeNf4 reads them.
//
// Blocks of 64 elements run over the ends of rows, as in bitsandbytes, and so do the numbers: the
// code of an element is that of the nearest value of the book once it is divided by the largest
// magnitude of its block (a tie takes the lower one); those magnitudes, less their mean, are codes
// of an 8-bit map in blocks of 256. What an element stands for is a BF16, at every precision.
//
// Threads  One thread an object.
// Memory   Half a byte an element and 4 bytes a block, of one matrix.
// Errors   None: elements are finite, which readers of files see to.
// Source   Dettmers et al., "QLoRA", arXiv 2305.14314; the 8-bit map: Dettmers, "8-Bit
//          Approximations for Parallelism in Deep Learning", arXiv 1511.04561; bytes checked with
//          bitsandbytes 0.50.2.

#pragma once

#include "core/device/ops.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

inline constexpr std::size_t kNf4Align = 16; // bytes

// One matrix in memory: tables, codes of the blocks' magnitudes, codes of the elements. Each begins
// at a multiple of kNf4Align.
struct Nf4Layout {
    std::int64_t elements = 0;
    std::int64_t blocks = 0;
    std::int64_t tables = 0; // F32 numbers
    std::size_t absmaxAt = 0;
    std::size_t codesAt = 0;
    std::size_t bytes = 0; // a multiple of kNf4Align
};

Nf4Layout nf4Layout(std::int64_t elements) noexcept;

// `packed` is a matrix in that layout; out (n), BF16 or F32.
DequantizeNf4Args nf4Args(std::byte* packed, const TensorView& out) noexcept;

// The values of the 4-bit codes, ascending.
const std::array<float, kNf4Book>& nf4Book() noexcept;
// The values of the 8-bit codes, ascending.
const std::array<float, kNf4Map>& nf4Map() noexcept;

// Packs a matrix whose elements come in order.
class Nf4Packer
{
public:
    void begin(std::int64_t elements);
    void add(std::span<const float> next);
    // Precondition: all elements have come. Valid until the next begin().
    std::span<const std::byte> finish();

private:
    void packBlock(std::span<const float> block);

    Nf4Layout m_layout;
    std::vector<std::byte> m_bytes;
    std::vector<float> m_absmax;
    std::array<float, kNf4Block> m_block{};
    std::size_t m_held = 0; // of m_block
};

// The nearest BF16, ties to even, of a finite number.
float nearestBfloat(float x) noexcept;

// Reads elements [first, first + out.size()) of a packed matrix.
void unpackNf4(std::span<const std::byte> packed, std::int64_t elements, std::int64_t first,
    std::span<float> out);

} // namespace mr
