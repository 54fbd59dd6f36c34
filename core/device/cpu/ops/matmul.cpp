#include "core/device/cpu/ops/matmul.h"

#include "core/device/cpu/ops/gemm_kernel.h"
#include "core/device/cpu/ops/matmul_onednn.h"
#include "core/device/cpu/ops/matmul_tile.h"
#include "core/device/cpu/ops/pack.h"
#include "core/device/fp8.h"

#include <type_traits>

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

template <typename A, typename B = A>
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
        packA<A>(p, t, k0, a, block);
        packB<B>(p, t, k0, panels, block.depth);
        gemmBlock(block);
    }
    storeTile(p, t, out, block.ldc);
}

// Places of BF16 for one operand of a tile, in floats.
std::int64_t bf16Floats(std::int64_t lines, std::int64_t depth) noexcept
{
    return (lines * depth + 31) / 32 * 16;
}

// `lines` dense lines of codes from line `first` on, as BF16.
const std::byte* unpackCodes(
    const TensorView& codes, std::int64_t first, std::int64_t lines, float* to) noexcept
{
    auto* out = reinterpret_cast<Bf16*>(to);
    const std::int64_t count = lines * codes.dims[1];
    withCode(codes.dtype, [&](auto* tag) {
        const auto* in =
            codes.as<const std::remove_pointer_t<decltype(tag)>>() + first * codes.dims[1];
#pragma GCC ivdep // out is not in
        for (std::int64_t i = 0; i < count; ++i)
            out[i] = fromFloat<Bf16>(mr::toFloat(in[i]));
    });
    return reinterpret_cast<const std::byte*>(to);
}

Product productOf(const CodeProductArgs& args) noexcept
{
    Product p;
    p.a = args.a.data;
    p.aRow = args.a.dims[1];
    p.b = args.b.data;
    p.bRow = 1;
    p.bCol = args.b.dims[1];
    p.c = args.out.data;
    p.bias = args.bias.data;
    p.rows = args.a.dims[0];
    p.cols = args.b.dims[0];
    p.depth = args.a.dims[1];
    p.type = DType::BF16;
    p.cType = args.out.dtype;
    p.accumulate = args.accumulate;
    p.scaleA = args.scaleA.as<const float>();
    p.scaleB = args.scaleB.as<const float>();
    return p;
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
        const auto size = static_cast<std::int64_t>(sizeOf(product.type));
        const Tile tile = tileAt(product, grid, index);
        m_onednn->runTile(product, tile, product.a + tile.row * product.aRow * size,
            product.b + tile.col * product.bCol * size, worker, m_scratch.of(worker));
    });
    if (m_onednn->failed())
        return Status::error(ErrorKind::Internal, "matmul: oneDNN could not run a tile");
    return {};
}

Status Matmul::runOwnCodes(const Product& product, DType a, DType b)
{
    const TileGrid grid = tileGrid(product.rows, product.cols);
    const auto hold = m_scratch.hold(ownFloats(grid));
    withCode(a, [&](auto* tagA) {
        withCode(b, [&](auto* tagB) {
            m_pool.parallelFor(grid.count(), [&](std::int64_t index, int worker) {
                ownTile<std::remove_pointer_t<decltype(tagA)>,
                    std::remove_pointer_t<decltype(tagB)>>(
                    product, tileAt(product, grid, index), grid, m_scratch.of(worker));
            });
        });
    });
    return {};
}

Status Matmul::runCodes(const CodeProductArgs& args)
{
    const Product product = productOf(args);
    if (!OnednnTiles::supports(product.type))
        return runOwnCodes(product, args.a.dtype, args.b.dtype);
    const TileGrid grid = tileGrid(product.rows, product.cols);
    const auto hold = m_scratch.hold(0);
    MR_ASSIGN(const auto floats, m_onednn->prepare(product, grid));
    const std::int64_t aFloats = bf16Floats(grid.tileRows, product.depth);
    m_scratch.grow(floats + aFloats + bf16Floats(grid.tileCols, product.depth));
    m_pool.parallelFor(grid.count(), [&](std::int64_t index, int worker) {
        const Tile tile = tileAt(product, grid, index);
        float* const scratch = m_scratch.of(worker);
        const std::byte* a = unpackCodes(args.a, tile.row, tile.rows, scratch + floats);
        const std::byte* b = unpackCodes(args.b, tile.col, tile.cols, scratch + floats + aFloats);
        m_onednn->runTile(product, tile, a, b, worker, scratch);
    });
    if (m_onednn->failed())
        return Status::error(ErrorKind::Internal, "matmul: oneDNN could not run a tile");
    return {};
}

} // namespace mr::cpu
