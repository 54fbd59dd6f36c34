// RMS norm of rows, with the addition of the residual before it.
//
// One block a row, two packs a thread, held in registers (norm_rows.cuh): every element is read
// once and written once, and x, residual and weight are all in flight before the first sum.
// With a block a row the card keeps many rows in flight, so one row's barrier is expected to be
// hidden.

#include "gpu/ops/launchers.h"
#include "gpu/ops/norm_rows.cuh"

namespace mr::gpu {
namespace {

// x, residual, sum, out (rows, cols), weight (cols), rstd (rows); residual null: none.
// sum may be x or residual, so only `weight` may be read ahead of a store.
template <typename T>
struct NormRows {
    const T* x;
    const T* residual;
    const T* weight;
    T* sum;
    T* out;
    float* rstd;
    std::int64_t cols;
    float eps;
    bool onePlus; // NormGain::OnePlusWeight
};

// x + residual, rounded to T and stored. Else x.
template <typename T, int kPack>
__device__ Pack<T, kPack> addResidual(
    const NormRows<T>& a, std::int64_t at, const Pack<T, kPack>& x, const Pack<T, kPack>& residual)
{
    if (!a.residual)
        return x;
    float sum[kPack];
    for (int i = 0; i < kPack; ++i)
        sum[i] = toFloat(x.at[i]) + toFloat(residual.at[i]);
    const auto pack = roundPack<T>(sum);
    storePack(a.sum + at, pack);
    return pack;
}

// 1 / sqrt(mean + eps), in every thread and in a.rstd.
template <typename T>
__device__ float rowRstd(const NormRows<T>& a, float squares)
{
    __shared__ float warps[kMaxNormThreads / kWarp];
    const int thread = static_cast<int>(threadIdx.x);
    squares = blockSum(squares, warps, thread, static_cast<int>(blockDim.x));
    const float rstd = rstdOf(squares, a.cols, a.eps);
    if (thread == 0)
        a.rstd[blockIdx.x] = rstd;
    return rstd;
}

// Block b: row b; normThreads() threads. Precondition: normRowIsHeld().
template <typename T, int kPack>
__global__ void __launch_bounds__(kMaxNormThreads) rmsNormKernel(NormRows<T> a)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * a.cols;
    Pack<T, kPack> x[kNormHeld];
    Pack<T, kPack> residual[kNormHeld];
    Pack<T, kPack> weight[kNormHeld];
    const auto column = [](int u) {
        return (static_cast<std::int64_t>(u) * blockDim.x + threadIdx.x) * kPack;
    };
#pragma unroll
    for (int u = 0; u < kNormHeld; ++u) {
        const std::int64_t c = column(u);
        if (c >= a.cols)
            continue;
        x[u] = loadPack<kPack>(a.x + row + c);
        if (a.residual)
            residual[u] = loadPack<kPack>(a.residual + row + c);
        weight[u] = loadPack<kPack>(a.weight + c);
    }
    float squares = 0.0F;
#pragma unroll
    for (int u = 0; u < kNormHeld; ++u)
        if (column(u) < a.cols) {
            x[u] = addResidual(a, row + column(u), x[u], residual[u]);
            squares = addSquares(x[u], squares);
        }
    const float rstd = rowRstd(a, squares);
#pragma unroll
    for (int u = 0; u < kNormHeld; ++u)
        if (column(u) < a.cols)
            storePack(a.out + row + column(u), normPack(x[u], weight[u], rstd, a.onePlus));
}

// As rmsNormKernel, for rows that are read twice.
template <typename T, int kPack>
__global__ void __launch_bounds__(kMaxNormThreads) rmsNormLongKernel(NormRows<T> a)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * a.cols;
    const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kPack;
    const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * kPack;
    float squares = 0.0F;
    for (std::int64_t c = first; c < a.cols; c += step) {
        const auto x = loadPack<kPack>(a.x + row + c);
        const auto residual = a.residual ? loadPack<kPack>(a.residual + row + c) : x;
        squares = addSquares(addResidual(a, row + c, x, residual), squares);
    }
    const float rstd = rowRstd(a, squares);
    const T* sums = (a.residual ? a.sum : a.x) + row; // this thread wrote these elements itself
    for (std::int64_t c = first; c < a.cols; c += step)
        storePack(a.out + row + c,
            normPack(loadPack<kPack>(sums + c), loadPack<kPack>(a.weight + c), rstd, a.onePlus));
}

template <typename T>
Status launch(const RmsNormArgs& args, cudaStream_t stream)
{
    const NormRows<T> rows{args.x.as<const T>(), args.residual.as<const T>(),
        args.weight.as<const T>(), args.sum.as<T>(), args.out.as<T>(), args.rstd.as<float>(),
        args.x.dims[1], args.eps, args.gain == NormGain::OnePlusWeight};
    constexpr int kPack = kPackOf<T>;
    const bool packed = rows.cols % kPack == 0 &&
                        fitsPacks(kPack, args.x, args.residual, args.weight, args.sum, args.out);
    const std::int64_t packs = packed ? rows.cols / kPack : rows.cols;
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(args.x.dims[0]));
    shape.block = dim3(normThreads(packs, kNormHeld));
    const auto kernel = !packed                ? listed<rmsNormLongKernel<T, 1>>()
                        : normRowIsHeld(packs) ? listed<rmsNormKernel<T, kPack>>()
                                               : listed<rmsNormLongKernel<T, kPack>>();
    return launchKernel("rmsNorm", kernel, shape, stream, rows);
}

} // namespace

Status launchRmsNorm(const RmsNormArgs& args, cudaStream_t stream)
{
    return args.x.dtype == DType::BF16 ? launch<Bf16>(args, stream) : launch<float>(args, stream);
}

} // namespace mr::gpu
