#include "core/device/cpu/ops/matmul.h"

#include "core/device/cpu/ops/gemm_kernel.h"
#include "core/device/cpu/ops/matmul_onednn.h"
#include "core/device/cpu/ops/matmul_tile.h"
#include "core/device/cpu/ops/pack.h"

namespace mr::cpu {

namespace {

// 256 x 256 x 4 bytes of B stay in the second cache, beside as much of A.
constexpr std::int64_t kMaxTile = 256;
constexpr std::int64_t kMinTile = 64;
constexpr std::int64_t kDepthBlock = 256;
// Enough tiles for 16 threads to end at about the same time.
constexpr std::int64_t kWantedTiles = 32;

std::int64_t roundUp(std::int64_t n, std::int64_t unit) noexcept
{
    return (n + unit - 1) / unit * unit;
}

struct OwnBuffers {
    float* a;
    float* panels;
    float* out;
    std::int64_t aLd; // elements between rows (or depth steps, transposed) of the packed A
};

std::int64_t ownFloats(const TileGrid& grid) noexcept
{
    return grid.tileRows * kDepthBlock + kDepthBlock * paddedToPanel(grid.tileCols) +
           grid.tileRows * paddedToPanel(grid.tileCols);
}

// A's part as it lies in memory, to F32; gives its strides to the block.
template <typename T>
void packA(const Product& p, const Tile& t, std::int64_t k0, float* to, GemmBlock& block) noexcept
{
    const T* a = reinterpret_cast<const T*>(p.a) + t.row * p.aRow + k0 * p.aCol;
    if (p.aCol == 1) {
        packRows(a, p.aRow, t.rows, block.depth, to, block.depth);
        block.aRow = block.depth;
        block.aCol = 1;
    } else {
        packRows(a, p.aCol, block.depth, t.rows, to, t.rows);
        block.aRow = 1;
        block.aCol = t.rows;
    }
    block.a = to;
}

template <typename T>
void packB(const Product& p, const Tile& t, std::int64_t k0, float* to, std::int64_t depth) noexcept
{
    const T* b = reinterpret_cast<const T*>(p.b) + k0 * p.bRow + t.col * p.bCol;
    if (p.bCol == 1)
        packPanels(b, p.bRow, depth, t.cols, to, depth * kPanel);
    else
        packPanelsTransposed(b, p.bCol, depth, t.cols, to, depth * kPanel);
}

template <typename T>
void ownTile(const Product& p, const Tile& t, const TileGrid& grid, float* scratch) noexcept
{
    float* a = scratch;
    float* panels = a + grid.tileRows * kDepthBlock;
    float* out = panels + kDepthBlock * paddedToPanel(grid.tileCols);
    GemmBlock block;
    block.panels = panels;
    block.c = out;
    block.ldc = paddedToPanel(t.cols);
    block.rows = t.rows;
    block.cols = t.cols;
    if (p.depth == 0)
        std::fill(out, out + block.ldc * t.rows, 0.0F);
    for (std::int64_t k0 = 0; k0 < p.depth; k0 += kDepthBlock) {
        block.depth = std::min(kDepthBlock, p.depth - k0);
        block.panelStride = block.depth * kPanel;
        block.accumulate = k0 > 0;
        packA<T>(p, t, k0, a, block);
        packB<T>(p, t, k0, panels, block.depth);
        gemmBlock(block);
    }
    storeTile(p, t, out, block.ldc);
}

} // namespace

TileGrid tileGrid(std::int64_t rows, std::int64_t cols) noexcept
{
    TileGrid grid;
    grid.tileRows = std::min(kMaxTile, roundUp(std::max<std::int64_t>(rows, 1), kMinTile));
    grid.tileCols = std::min(kMaxTile, roundUp(std::max<std::int64_t>(cols, 1), kMinTile));
    const auto count = [&] {
        grid.down = (rows + grid.tileRows - 1) / grid.tileRows;
        grid.across = (cols + grid.tileCols - 1) / grid.tileCols;
        return grid.count();
    };
    while (count() < kWantedTiles && std::max(grid.tileRows, grid.tileCols) > kMinTile) {
        std::int64_t& longer = grid.tileRows >= grid.tileCols ? grid.tileRows : grid.tileCols;
        longer = roundUp(longer / 2, kMinTile);
    }
    return grid;
}

Matmul::Matmul(ThreadPool& pool, Scratch& scratch)
    : m_pool(pool)
    , m_scratch(scratch)
    , m_onednn(std::make_unique<OnednnTiles>(pool.threads()))
{
}

Matmul::~Matmul() = default;

Status Matmul::runOwn(const Product& product)
{
    const TileGrid grid = tileGrid(product.rows, product.cols);
    const auto hold = m_scratch.hold(ownFloats(grid));
    m_pool.parallelFor(grid.count(), [&](std::int64_t index, int worker) {
        const Tile tile = tileAt(product, grid, index);
        if (product.type == DType::BF16)
            ownTile<Bf16>(product, tile, grid, m_scratch.of(worker));
        else
            ownTile<float>(product, tile, grid, m_scratch.of(worker));
    });
    return {};
}

Status Matmul::run(const Product& product)
{
    if (product.rows == 0 || product.cols == 0)
        return {};
    if (product.depth == 0 || !OnednnTiles::supports(product.type))
        return runOwn(product);
    const TileGrid grid = tileGrid(product.rows, product.cols);
    const auto hold = m_scratch.hold(0);
    MR_ASSIGN(auto floats, m_onednn->prepare(product, grid));
    m_scratch.grow(floats);
    m_pool.parallelFor(grid.count(), [&](std::int64_t index, int worker) {
        m_onednn->runTile(product, tileAt(product, grid, index), worker, m_scratch.of(worker));
    });
    if (m_onednn->failed())
        return Status::error(ErrorKind::Internal, "matmul: oneDNN could not run a tile");
    return {};
}

} // namespace mr::cpu
