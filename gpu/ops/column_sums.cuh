// columnSumsKernel(): out[c] = sum over rows of term(x[r, c]), for matrices with many more rows
// than a thread can wait for.
//
// A block owns the columns of kLanes packs: 64 bytes of a row, two sectors of memory, which makes
// 128 blocks of a BF16 matrix 4,096 wide. Its 512 threads take every 128th row each, four at a
// time, so that 32 KiB are in flight a block. No two blocks add to the same number: no atomics, and
// bits repeat from run to run. Without packs a warp takes 32 adjacent elements of a row.
//
// Order    Row lane l sums rows l, l + kRowLanes, ... in order; then the lanes in order.
// Threads  Engine thread for launchColumnSums().
// Errors   Those of launchKernel().

#pragma once

#include "gpu/ops/packs.cuh"

namespace mr::gpu {

inline constexpr int kColumnThreads = 512;

template <int kPack>
inline constexpr int kColumnLanes = kPack == 1 ? kWarp : 4;

// Adds rows row, row + step, ... below `rows` to `sums`, kRowsAtOnce of them at a time.
template <typename Term, int kPack, typename T>
__device__ void addRows(const T* __restrict__ x, std::int64_t row, std::int64_t rows,
    std::int64_t cols, int step, float (&sums)[kPack])
{
    constexpr int kRowsAtOnce = 4;
    for (; row < rows; row += std::int64_t{step} * kRowsAtOnce) {
        Pack<T, kPack> held[kRowsAtOnce];
#pragma unroll
        for (int i = 0; i < kRowsAtOnce; ++i)
            if (row + i * step < rows)
                held[i] = loadPack<kPack>(x + (row + i * step) * cols);
#pragma unroll
        for (int i = 0; i < kRowsAtOnce; ++i)
            if (row + i * step < rows)
                for (int k = 0; k < kPack; ++k)
                    sums[k] = Term::add(sums[k], toFloat(held[i].at[k]));
    }
}

// x (rows, cols), out (cols), F32 or what a sum is rounded to once. Block of kColumnThreads, grid.x
// covers cols by kColumnLanes * kPack.
template <typename Term, typename T, typename Out, int kPack>
__global__ void __launch_bounds__(kColumnThreads) columnSumsKernel(
    const T* __restrict__ x, Out* out, std::int64_t rows, std::int64_t cols, bool accumulate)
{
    constexpr int kLanes = kColumnLanes<kPack>;
    constexpr int kRowLanes = kColumnThreads / kLanes;
    constexpr int kTile = kLanes * kPack; // columns of a block
    // Rows of 32 floats begin four banks apart, so that lanes of two rows store packs at once.
    constexpr int kPart = kPack < kPackOf<float> ? kPack : kPackOf<float>;
    constexpr int kPad = kPack > kPart ? kPart : 0;
    alignas(16) __shared__ float partial[kRowLanes][kTile + kPad];
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % kLanes;
    const int rowLane = thread / kLanes;
    const std::int64_t first = std::int64_t{blockIdx.x} * kTile;
    const std::int64_t col = first + lane * kPack;

    float sums[kPack] = {};
    if (col < cols)
        addRows<Term>(x + col, rowLane, rows, cols, kRowLanes, sums);
#pragma unroll
    for (int k = 0; k < kPack; k += kPart) {
        Pack<float, kPart> part;
        for (int i = 0; i < kPart; ++i)
            part.at[i] = sums[k + i];
        stagePack(&partial[rowLane][lane * kPack + k], part);
    }
    __syncthreads();

    if (thread < kTile && first + thread < cols) {
        float total = partial[0][thread];
#pragma unroll 8
        for (int i = 1; i < kRowLanes; ++i)
            total = total + partial[i][thread];
        Out& to = out[first + thread];
        to = fromFloat<Out>(accumulate ? toFloat(to) + total : total);
    }
}

// `Term::add(sum, value)` is the device function of the sum. No columns: nothing.
template <typename Term, typename T, typename Out = float>
Status launchColumnSums(const char* name, const TensorView& x, const TensorView& out,
    bool accumulate, cudaStream_t stream)
{
    const std::int64_t rows = x.dims[0];
    const std::int64_t cols = x.dims[1];
    constexpr int kPack = kPackOf<T>;
    LaunchShape shape;
    shape.block = dim3(kColumnThreads);
    if (cols % kPack == 0 && fitsPacks(kPack, x)) {
        shape.grid = dim3(blocksFor(cols, kColumnLanes<kPack> * kPack));
        return launchKernel(name, listed<columnSumsKernel<Term, T, Out, kPack>>(), shape, stream,
            x.as<const T>(), out.as<Out>(), rows, cols, accumulate);
    }
    shape.grid = dim3(blocksFor(cols, kColumnLanes<1>));
    return launchKernel(name, listed<columnSumsKernel<Term, T, Out, 1>>(), shape, stream,
        x.as<const T>(), out.as<Out>(), rows, cols, accumulate);
}

} // namespace mr::gpu
