// rowSquares, columnSquares and projectGradient: sums of squares of a gradient, and of its elements
// by signs, in the order of core/device/light_update.h, so their bits equal those of the CPU
// device.
//
// rowSquares     4 bytes read an element, with roots a division: bound by memory bandwidth,
//                expected; the roots of columns are read once a row and stay in the caches.
//                Rows of up to 4,096 elements share a block, a longer one has its own.
// columnSquares  4 bytes read an element. A block takes 1,024 rows of 32 columns; a thread takes a
//                pack of columns down 64 rows, 8 of them in flight, and holds all lanes of the sum
//                in registers. A second kernel joins the parts of 1,024 rows.
// projectGradient  As rowSquares or, over rows, as columnSquares: signs stay in the caches.

#include "gpu/ops/launchers.h"
#include "gpu/ops/sum_tree.cuh"

namespace mr::gpu {
namespace {

constexpr unsigned kRowSumThreads = 256; // of a block whose rows are short

// x: (rows, cols); rowRoots, sums: (rows); columnRoots: (cols); scalars: one, or null
template <typename T>
struct SquaredRows {
    const T* x;
    const StepScalars* scalars;
    const float* rowRoots;
    const float* columnRoots;
    float* sums;
    std::int64_t rows;
    std::int64_t cols;
};

// The squares of a row, a pack at a time.
template <typename T, int kPack, bool kRoots>
struct RowOfSquares {
    const T* x;
    const float* columnRoots;
    float clipFactor;
    float rowRoot;

    struct Held {
        Pack<T, kPack> x;
        Pack<float, kPack> roots;
    };

    __device__ Held load(std::int64_t at) const
    {
        Held held = {};
        held.x = loadPack<kPack>(x + at);
        if constexpr (kRoots)
            held.roots = loadPack<kPack>(columnRoots + at);
        return held;
    }

    __device__ void add(float (&lanes)[kPack], const Held& held) const
    {
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
            const float g = toFloat(held.x.at[k]) * clipFactor;
            const float u = kRoots ? __fdiv_rn(g, rowRoot * held.roots.at[k]) : g;
            lanes[k] = __fmaf_rn(u, u, lanes[k]);
        }
    }
};

// Block (sumThreads(), rows), grid.x covers the rows.
template <typename T, int kPack, bool kRoots>
__global__ void __launch_bounds__(kMostSumThreads) rowSquaresKernel(SquaredRows<T> in)
{
    __shared__ SumMemory shared;
    const std::int64_t row = rowOfThread();
    const bool exists = row < in.rows;
    const float clipFactor = in.scalars ? in.scalars->clipFactor : 1.0F;
    const float root = kRoots && exists ? in.rowRoots[row] : 1.0F;
    const RowOfSquares<T, kPack, kRoots> squares{
        in.x + row * in.cols, in.columnRoots, clipFactor, root};
    const float sum = sumAsRow<kPack>(exists ? in.cols : 0, shared, squares);
    if (exists && threadIdx.x == 0)
        in.sums[row] = sum;
}

LaunchShape rowsShape(std::int64_t rows, std::int64_t cols, int pack)
{
    LaunchShape shape;
    const unsigned threads = sumThreads(cols, pack);
    shape.block = dim3(threads, threads > kWarp ? 1 : kRowSumThreads / threads);
    shape.grid = dim3(blocksFor(rows, shape.block.y));
    return shape;
}

template <typename T, int kPack, bool kRoots>
Status launchRowSums(const RowSquaresArgs& args, cudaStream_t stream)
{
    const SquaredRows<T> rows{args.x.as<const T>(), args.scalars.as<const StepScalars>(),
        args.rowRoots.as<const float>(), args.columnRoots.as<const float>(), args.sums.as<float>(),
        args.x.dims[0], args.x.dims[1]};
    return launchKernel("rowSquares", listed<rowSquaresKernel<T, kPack, kRoots>>(),
        rowsShape(rows.rows, rows.cols, kPack), stream, rows);
}

template <typename T>
Status launchRowSums(const RowSquaresArgs& args, cudaStream_t stream)
{
    constexpr int kPack = kPackOf<T>;
    const bool packed = args.x.dims[1] % kPack == 0 && fitsPacks(kPack, args.x, args.columnRoots);
    if (args.rowRoots.data)
        return packed ? launchRowSums<T, kPack, true>(args, stream)
                      : launchRowSums<T, 1, true>(args, stream);
    return packed ? launchRowSums<T, kPack, false>(args, stream)
                  : launchRowSums<T, 1, false>(args, stream);
}

constexpr int kNodesOfPart = static_cast<int>(kRowsOfPart / kRowsOfBlock);
constexpr int kSquareColumns = 32; // of a block: 128 bytes of a row
constexpr int kTreeThreads = 64;

// Terms that a row adds to sums down the columns: squares, or elements by the sign of the row.
struct SquaresDown {
    float clipFactor;

    __device__ float add(float lane, float x, std::int64_t /*row*/) const
    {
        const float g = x * clipFactor;
        return __fmaf_rn(g, g, lane);
    }
};

struct SignedDown {
    float clipFactor;
    const float* signs;

    __device__ float add(float lane, float x, std::int64_t row) const
    {
        return __fmaf_rn(x * clipFactor, signs[row], lane);
    }
};

// A lane of each of kPack columns with one row more.
template <int kPack, typename Terms>
__device__ void addRow(
    Pack<float, kPack>& lane, const Pack<float, kPack>& x, std::int64_t row, const Terms& terms)
{
#pragma unroll
    for (int k = 0; k < kPack; ++k)
        lane.at[k] = terms.add(lane.at[k], x.at[k], row);
}

// Sums over `rows` rows, at most kRowsOfBlock, of kPack columns from x on, which is in row `first`.
template <int kPack, typename Terms>
__device__ Pack<float, kPack> sumsOfBlock(
    const float* x, std::int64_t first, int rows, std::int64_t cols, const Terms& terms)
{
    Pack<float, kPack> lanes[kLanesOfSum] = {};
    int row = 0;
    for (; row + kLanesOfSum <= rows; row += kLanesOfSum) {
        Pack<float, kPack> held[kLanesOfSum];
#pragma unroll
        for (int lane = 0; lane < kLanesOfSum; ++lane, x += cols)
            held[lane] = loadPack<kPack>(x);
#pragma unroll
        for (int lane = 0; lane < kLanesOfSum; ++lane)
            addRow(lanes[lane], held[lane], first + row + lane, terms);
    }
#pragma unroll
    for (int lane = 0; lane < kLanesOfSum - 1; ++lane, x += cols)
        if (row + lane < rows)
            addRow(lanes[lane], loadPack<kPack>(x), first + row + lane, terms);
#pragma unroll
    for (int apart = kLanesOfSum / 2; apart > 0; apart /= 2)
#pragma unroll
        for (int lane = 0; lane < apart; ++lane)
#pragma unroll
            for (int k = 0; k < kPack; ++k)
                lanes[lane].at[k] = lanes[lane].at[k] + lanes[lane + apart].at[k];
    return lanes[0];
}

using PartNodes = float[kNodesOfPart][kSquareColumns];

// x: (rows, cols), parts: (rowParts(rows), cols). Block (kSquareColumns / kPack, kNodesOfPart);
// grid.x covers the columns of a part, then those of the next.
template <int kPack, typename Terms>
__device__ void sumPart(const float* x, float* parts, std::int64_t rows, std::int64_t cols,
    PartNodes& nodes, const Terms& terms)
{
    const std::int64_t across = (cols + kSquareColumns - 1) / kSquareColumns;
    const std::int64_t part = blockIdx.x / across;
    const std::int64_t first = (blockIdx.x - part * across) * kSquareColumns;
    const int inTile = static_cast<int>(threadIdx.x) * kPack;
    const int node = static_cast<int>(threadIdx.y);
    const std::int64_t row = part * kRowsOfPart + node * kRowsOfBlock;
    Pack<float, kPack> sums = {};
    if (row < rows && first + inTile < cols)
        sums = sumsOfBlock<kPack>(x + row * cols + first + inTile, row,
            static_cast<int>(min(rows - row, kRowsOfBlock)), cols, terms);
    stagePack(&nodes[node][inTile], sums);
    __syncthreads();
    const int column = node * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
    if (column >= kSquareColumns || first + column >= cols)
        return;
    float held[kNodesOfPart];
#pragma unroll
    for (int i = 0; i < kNodesOfPart; ++i)
        held[i] = nodes[i][column];
    parts[part * cols + first + column] = joinNodes(held);
}

template <int kPack>
__global__ void __launch_bounds__(kSquareColumns / kPack * kNodesOfPart) columnSquaresKernel(
    const float* x, const StepScalars* scalars, float* parts, std::int64_t rows, std::int64_t cols)
{
    alignas(16) __shared__ PartNodes nodes;
    sumPart<kPack>(x, parts, rows, cols, nodes, SquaresDown{scalars->clipFactor});
}

// signs: (rows)
template <int kPack>
__global__ void __launch_bounds__(kSquareColumns / kPack * kNodesOfPart)
    columnProjectionKernel(const float* x, const float* signs, const StepScalars* scalars,
        float* parts, std::int64_t rows, std::int64_t cols)
{
    alignas(16) __shared__ PartNodes nodes;
    sumPart<kPack>(x, parts, rows, cols, nodes, SignedDown{scalars->clipFactor, signs});
}

// parts: (count, cols), sums: (cols). Grid.x covers the columns.
__global__ void __launch_bounds__(kTreeThreads) columnTreeKernel(const float* __restrict__ parts,
    float* __restrict__ sums, std::int64_t count, std::int64_t cols)
{
    __shared__ float levels[kTreeLevels][kTreeThreads];
    const std::int64_t column = std::int64_t{blockIdx.x} * kTreeThreads + threadIdx.x;
    if (column >= cols)
        return;
    NodeCounter rounds(&levels[0][threadIdx.x], kTreeThreads);
    for (std::int64_t first = 0; first < count; first += kNodesOfPart) {
        float held[kNodesOfPart];
#pragma unroll
        for (int i = 0; i < kNodesOfPart; ++i)
            held[i] = first + i < count ? parts[(first + i) * cols + column] : 0.0F;
        rounds.add(joinNodes(held));
    }
    sums[column] = rounds.total();
}

template <int kPack>
LaunchShape partsShape(const TensorView& x)
{
    LaunchShape shape;
    shape.block = dim3(kSquareColumns / kPack, kNodesOfPart);
    shape.grid =
        dim3(blocksFor(x.dims[1], kSquareColumns) * static_cast<unsigned>(rowParts(x.dims[0])));
    return shape;
}

template <int kPack>
Status launchColumnParts(const ColumnSquaresArgs& args, cudaStream_t stream)
{
    return launchKernel("columnSquares", listed<columnSquaresKernel<kPack>>(),
        partsShape<kPack>(args.x), stream, args.x.as<const float>(),
        args.scalars.as<const StepScalars>(), args.parts.as<float>(), args.x.dims[0],
        args.x.dims[1]);
}

template <int kPack>
Status launchColumnProjection(const ProjectGradientArgs& args, cudaStream_t stream)
{
    return launchKernel("projectGradient", listed<columnProjectionKernel<kPack>>(),
        partsShape<kPack>(args.x), stream, args.x.as<const float>(), args.signs.as<const float>(),
        args.scalars.as<const StepScalars>(), args.parts.as<float>(), args.x.dims[0],
        args.x.dims[1]);
}

// Joins the parts of each column.
Status launchColumnTree(
    const char* op, const TensorView& parts, const TensorView& sums, cudaStream_t stream)
{
    const std::int64_t cols = parts.dims[1];
    return launchKernel(op, listed<columnTreeKernel>(),
        {dim3(blocksFor(cols, kTreeThreads)), dim3(kTreeThreads)}, stream, parts.as<const float>(),
        sums.as<float>(), parts.dims[0], cols);
}

// Elements of a row by the signs of their columns, a pack at a time.
template <int kPack>
struct RowBySigns {
    const float* x;
    const float* signs;
    float clipFactor;

    struct Held {
        Pack<float, kPack> x, signs;
    };

    __device__ Held load(std::int64_t at) const
    {
        return {loadPack<kPack>(x + at), loadPack<kPack>(signs + at)};
    }

    __device__ void add(float (&lanes)[kPack], const Held& held) const
    {
#pragma unroll
        for (int k = 0; k < kPack; ++k)
            lanes[k] = __fmaf_rn(held.x.at[k] * clipFactor, held.signs.at[k], lanes[k]);
    }
};

// x: (rows, cols), signs: (cols), sums: (rows). Block (sumThreads(), rows), grid.x covers the rows.
template <int kPack>
__global__ void __launch_bounds__(kMostSumThreads)
    rowProjectionKernel(const float* x, const float* signs, const StepScalars* scalars, float* sums,
        std::int64_t rows, std::int64_t cols)
{
    __shared__ SumMemory shared;
    const std::int64_t row = rowOfThread();
    const bool exists = row < rows;
    const RowBySigns<kPack> terms{x + row * cols, signs, scalars->clipFactor};
    const float sum = sumAsRow<kPack>(exists ? cols : 0, shared, terms);
    if (exists && threadIdx.x == 0)
        sums[row] = sum;
}

template <int kPack>
Status launchRowProjection(const ProjectGradientArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.x.dims[0];
    const std::int64_t cols = args.x.dims[1];
    return launchKernel("projectGradient", listed<rowProjectionKernel<kPack>>(),
        rowsShape(rows, cols, kPack), stream, args.x.as<const float>(),
        args.signs.as<const float>(), args.scalars.as<const StepScalars>(), args.sums.as<float>(),
        rows, cols);
}

} // namespace

Status launchRowSquares(const RowSquaresArgs& args, cudaStream_t stream)
{
    return args.x.dtype == DType::BF16 ? launchRowSums<Bf16>(args, stream)
                                       : launchRowSums<float>(args, stream);
}

Status launchColumnSquares(const ColumnSquaresArgs& args, cudaStream_t stream)
{
    constexpr int kPack = kPackOf<float>;
    const std::int64_t cols = args.x.dims[1];
    const bool packed = cols % kPack == 0 && fitsPacks(kPack, args.x);
    MR_TRY(packed ? launchColumnParts<kPack>(args, stream) : launchColumnParts<1>(args, stream));
    return launchColumnTree("columnSquares", args.parts, args.sums, stream);
}

Status launchProjectGradient(const ProjectGradientArgs& args, cudaStream_t stream)
{
    constexpr int kPack = kPackOf<float>;
    const bool isWhole = args.x.dims[1] % kPack == 0;
    if (!args.overRows)
        return isWhole && fitsPacks(kPack, args.x, args.signs)
                   ? launchRowProjection<kPack>(args, stream)
                   : launchRowProjection<1>(args, stream);
    MR_TRY(isWhole && fitsPacks(kPack, args.x) ? launchColumnProjection<kPack>(args, stream)
                                               : launchColumnProjection<1>(args, stream));
    return launchColumnTree("projectGradient", args.parts, args.sums, stream);
}

} // namespace mr::gpu
