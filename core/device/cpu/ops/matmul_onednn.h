// oneDNN's part of Matmul: one matmul primitive per tile shape, kept.
//
// Threads  prepare() by the thread that holds the scratch; runTile() by the items of that op, with
//          different `worker`.
// Errors   Internal: oneDNN refused to make or to run a primitive. OutOfMemory: prepare() found no
//          memory for one.

#pragma once

#include "core/device/cpu/ops/matmul_tile.h"

#include <atomic>
#include <memory>

namespace mr::cpu {

class OnednnTiles
{
public:
    explicit OnednnTiles(int threads);
    ~OnednnTiles();

    // Whether this build and processor multiply such numbers natively.
    static bool supports(DType type) noexcept;

    // Makes the primitives for the tiles of `product`. Gives the scratch floats per thread.
    Result<std::int64_t> prepare(const Product& product, const TileGrid& grid);

    // After prepare() of the same product. `a` and `b` are the first elements of the tile's rows
    // and columns. A failure is remembered for failed().
    void runTile(const Product& product, const Tile& tile, const std::byte* a, const std::byte* b,
        int worker, float* scratch) noexcept;

    bool failed() noexcept { return m_failed.exchange(false); }

private:
    struct Entry;
    struct Cache;

    std::unique_ptr<Cache> m_cache;
    [[maybe_unused]] const int m_threads; // where oneDNN is not compiled in
    std::atomic<bool> m_failed = false;
};

} // namespace mr::cpu
