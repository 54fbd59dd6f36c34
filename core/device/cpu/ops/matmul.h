// Matrix products of the CPU device: a fixed grid of output tiles, each by one thread.
//
// With oneDNN (MR_WITH_ONEDNN) a tile is one matmul primitive on one thread; without it, and for
// BF16 on processors without AVX-512 BF16, it is our own kernel over packed F32 panels.
//
// Threads  run() from one thread at a time per Scratch hold (it takes the hold).
// Ownership Primitives are kept per shape; the oldest set is dropped after kMaxPrimitives.
// Errors   Internal, if oneDNN refuses a shape; std::bad_alloc.

#pragma once

#include "core/base/parallel.h"
#include "core/device/cpu/ops/scratch.h"
#include "core/device/ops.h"

#include <millrace/status.h>

#include <cstdint>
#include <memory>

namespace mr::cpu {

// C (rows, cols) = A (rows, depth) B (depth, cols); strides in elements.
struct Product {
    const std::byte* a = nullptr; // element (i, k) at i * aRow + k * aCol; one of them is 1
    std::int64_t aRow = 0;
    std::int64_t aCol = 1;
    const std::byte* b = nullptr; // element (k, j) at k * bRow + j * bCol; one of them is 1
    std::int64_t bRow = 0;
    std::int64_t bCol = 1;
    std::byte* c = nullptr;          // row-major
    std::int64_t cRow = 0;           // from a row to the next; 0: cols
    const std::byte* bias = nullptr; // (cols), of `type`; added in F32 before the one rounding
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t depth = 0;
    DType type = DType::F32;       // type of a, b, bias
    DType cType = DType::F32;      // F32 or `type`
    bool accumulate = false;       // c += product, in one F32 addition per element
    float factor = 1.0F;           // of the product
    const float* scaleA = nullptr; // both or none: factors of the product, before all else
    const float* scaleB = nullptr;

    std::int64_t rowOfC() const noexcept { return cRow > 0 ? cRow : cols; }
};

// The grid depends on the shape alone. Tiles are whole multiples of 64, the edges aside.
struct TileGrid {
    std::int64_t tileRows = 0;
    std::int64_t tileCols = 0;
    std::int64_t down = 0;   // tiles
    std::int64_t across = 0; // tiles

    std::int64_t count() const noexcept { return down * across; }
};

TileGrid tileGrid(std::int64_t rows, std::int64_t cols) noexcept;

class OnednnTiles; // the primitives; empty in builds without oneDNN

class Matmul
{
public:
    Matmul(ThreadPool& pool, Scratch& scratch);
    ~Matmul();

    Status run(const Product& product);

    // The codes of a tile become BF16, which is exact; then as a product of BF16, times the scales.
    Status runCodes(const CodeProductArgs& args);

    // Our own kernel in any build, for comparison in benchmarks and tests.
    Status runOwn(const Product& product);

private:
    Status runOwnCodes(const Product& product, DType a, DType b);

    ThreadPool& m_pool;
    Scratch& m_scratch;
    std::unique_ptr<OnednnTiles> m_onednn;
};

} // namespace mr::cpu
