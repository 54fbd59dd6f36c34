// rowSquares and columnSquares: sums of squares of a gradient in the order of
// core/device/light_update.h, so their bits equal those of the CPU device.
//
// rowSquares     4 bytes read an element, with roots a division: bound by memory bandwidth,
//                expected; the roots of columns are read once a row and stay in the caches.
//                Rows of up to 4,096 elements share a block, a longer one has its own.
// columnSquares  4 bytes read an element. A block takes 1,024 rows of 32 columns; a thread takes a
//                pack of columns down 64 rows, 8 of them in flight, and holds all lanes of the sum
//                in registers. A second kernel joins the parts of 1,024 rows.

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

template <typename T, int kPack, bool kRoots>
Status launchRowSums(const RowSquaresArgs& args, cudaStream_t stream)
{
    const SquaredRows<T> rows{args.x.as<const T>(), args.scalars.as<const StepScalars>(),
        args.rowRoots.as<const float>(), args.columnRoots.as<const float>(), args.sums.as<float>(),
        args.x.dims[0], args.x.dims[1]};
    LaunchShape shape;
    const unsigned threads = sumThreads(rows.cols, kPack);
    shape.block = dim3(threads, threads > kWarp ? 1 : kRowSumThreads / threads);
    shape.grid = dim3(blocksFor(rows.rows, shape.block.y));
    return launchKernel(
        "rowSquares", listed<rowSquaresKernel<T, kPack, kRoots>>(), shape, stream, rows);
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

// A lane of each of kPack columns with one row more.
template <int kPack>
__device__ void addRowSquares(
    Pack<float, kPack>& lane, const Pack<float, kPack>& row, float clipFactor)
{
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
        const float g = row.at[k] * clipFactor;
        lane.at[k] = __fmaf_rn(g, g, lane.at[k]);
    }
}

// Sums over the first `rows` rows, at most kRowsOfBlock, of kPack columns from x on.
template <int kPack>
__device__ Pack<float, kPack> squaresOfBlock(
    const float* x, int rows, std::int64_t cols, float clipFactor)
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
            addRowSquares(lanes[lane], held[lane], clipFactor);
    }
#pragma unroll
    for (int lane = 0; lane < kLanesOfSum - 1; ++lane, x += cols)
        if (row + lane < rows)
            addRowSquares(lanes[lane], loadPack<kPack>(x), clipFactor);
#pragma unroll
    for (int apart = kLanesOfSum / 2; apart > 0; apart /= 2)
#pragma unroll
        for (int lane = 0; lane < apart; ++lane)
#pragma unroll
            for (int k = 0; k < kPack; ++k)
                lanes[lane].at[k] = lanes[lane].at[k] + lanes[lane + apart].at[k];
    return lanes[0];
}

// x: (rows, cols), parts: (rowParts(rows), cols). Block (kSquareColumns / kPack, kNodesOfPart);
// grid.x covers the columns of a part, then those of the next.
template <int kPack>
__global__ void __launch_bounds__(kSquareColumns / kPack * kNodesOfPart) columnSquaresKernel(
    const float* x, const StepScalars* scalars, float* parts, std::int64_t rows, std::int64_t cols)
{
    alignas(16) __shared__ float nodes[kNodesOfPart][kSquareColumns];
    const std::int64_t across = (cols + kSquareColumns - 1) / kSquareColumns;
    const std::int64_t part = blockIdx.x / across;
    const std::int64_t first = (blockIdx.x - part * across) * kSquareColumns;
    const int inTile = static_cast<int>(threadIdx.x) * kPack;
    const int node = static_cast<int>(threadIdx.y);
    const std::int64_t row = part * kRowsOfPart + node * kRowsOfBlock;
    Pack<float, kPack> sums = {};
    if (row < rows && first + inTile < cols)
        sums = squaresOfBlock<kPack>(x + row * cols + first + inTile,
            static_cast<int>(min(rows - row, kRowsOfBlock)), cols, scalars->clipFactor);
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
Status launchColumnParts(const ColumnSquaresArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.x.dims[0];
    const std::int64_t cols = args.x.dims[1];
    LaunchShape shape;
    shape.block = dim3(kSquareColumns / kPack, kNodesOfPart);
    shape.grid = dim3(blocksFor(cols, kSquareColumns) * static_cast<unsigned>(rowParts(rows)));
    return launchKernel("columnSquares", listed<columnSquaresKernel<kPack>>(), shape, stream,
        args.x.as<const float>(), args.scalars.as<const StepScalars>(), args.parts.as<float>(),
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
    return launchKernel("columnSquares", listed<columnTreeKernel>(),
        {dim3(blocksFor(cols, kTreeThreads)), dim3(kTreeThreads)}, stream,
        args.parts.as<const float>(), args.sums.as<float>(), rowParts(args.x.dims[0]), cols);
}

} // namespace mr::gpu
