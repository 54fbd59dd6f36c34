// columnDots: out[c] (+)= the dot product of column c of two windows, over its divisor.
//
// A block owns 32 columns, which is two sectors of memory a row of BF16; its 16 warps take every
// 16th row each, four at a time. No two blocks add to the same number: no atomics, and bits repeat
// from run to run.
//
// Order    Warp w sums rows w, w + 16, ... in order; then the warps in order.

#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kDotWarps = 16;

// a, b: windows of `cols` columns in rows of aRow and bRow; divisors, out (cols)
template <typename T, typename Out>
struct DottedColumns {
    const T* a;
    const T* b;
    const float* divisors;
    Out* out;
    std::int64_t rows;
    std::int64_t cols;
    std::int64_t aRow;
    std::int64_t bRow;
    bool accumulate;
};

// Block (kWarp, kDotWarps), grid.x covers the columns by kWarp.
template <typename T, typename Out>
__global__ void __launch_bounds__(kWarp* kDotWarps) columnDotsKernel(DottedColumns<T, Out> in)
{
    __shared__ float partial[kDotWarps][kWarp];
    const int lane = static_cast<int>(threadIdx.x);
    const int warp = static_cast<int>(threadIdx.y);
    const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + lane;
    float sum = 0.0F;
    if (column < in.cols)
#pragma unroll 4
        for (std::int64_t row = warp; row < in.rows; row += kDotWarps)
            sum = __fmaf_rn(
                toFloat(in.a[row * in.aRow + column]), toFloat(in.b[row * in.bRow + column]), sum);
    partial[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= in.cols)
        return;
    float total = partial[0][lane];
    for (int w = 1; w < kDotWarps; ++w)
        total = total + partial[w][lane];
    const float divisor = in.divisors[column];
    const float dot = divisor > 0.0F ? __fdiv_rn(total, divisor) : 0.0F;
    Out& to = in.out[column];
    to = fromFloat<Out>(in.accumulate ? toFloat(to) + dot : dot);
}

template <typename T, typename Out>
Status launch(const ColumnDotsArgs& args, cudaStream_t stream)
{
    const DottedColumns<T, Out> columns{args.a.matrix.as<const T>() + args.a.first,
        args.b.matrix.as<const T>() + args.b.first, args.divisors.as<const float>(),
        args.out.as<Out>(), args.a.matrix.dims[0], args.a.count, args.a.matrix.dims[1],
        args.b.matrix.dims[1], args.accumulate};
    LaunchShape shape;
    shape.grid = dim3(blocksFor(columns.cols, kWarp));
    shape.block = dim3(kWarp, kDotWarps);
    return launchKernel("columnDots", listed<columnDotsKernel<T, Out>>(), shape, stream, columns);
}

} // namespace

Status launchColumnDots(const ColumnDotsArgs& args, cudaStream_t stream)
{
    if (args.out.dtype == DType::BF16)
        return launch<Bf16, Bf16>(args, stream);
    return args.a.matrix.dtype == DType::BF16 ? launch<Bf16, float>(args, stream)
                                              : launch<float, float>(args, stream);
}

} // namespace mr::gpu
