// The gated delta rule, backward: its steps (delta_gradients.cuh), then gradients that are summed
// over all rows.

#include "gpu/ops/delta_gradients.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

constexpr int kSumThreads = 256;

// out[head] (+)= the column of `plane` (rows, heads): blocks of kRecurrentRows rows in order, then
// the blocks in order. A block a head.
template <typename Out>
__global__ void __launch_bounds__(kSumThreads)
    deltaSumKernel(const float* plane, Out* out, std::int64_t rows, bool accumulate)
{
    __shared__ float sums[kSumThreads];
    const std::int64_t heads = gridDim.x;
    const auto thread = static_cast<int>(threadIdx.x);
    float total = 0.0F;
    for (std::int64_t first = 0; first < rows; first += kSumThreads * kRecurrentRows) {
        const std::int64_t begin = first + thread * kRecurrentRows;
        const std::int64_t end = min(rows, begin + kRecurrentRows);
        float sum = 0.0F;
        for (std::int64_t row = begin; row < end; ++row)
            sum = sum + plane[row * heads + blockIdx.x];
        sums[thread] = sum;
        __syncthreads();
        for (int i = 0; thread == 0 && i < kSumThreads; ++i)
            total = total + sums[i];
        __syncthreads();
    }
    if (thread != 0)
        return;
    Out& to = out[blockIdx.x];
    to = fromFloat<Out>(accumulate ? toFloat(to) + total : total);
}

template <typename Out>
Status sumHeads(const float* plane, const TensorView& out, std::int64_t rows, bool accumulate,
    cudaStream_t stream)
{
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(out.dims[0]));
    shape.block = dim3(kSumThreads);
    return launchKernel("gatedDeltaBackward sums", listed<deltaSumKernel<Out>>(), shape, stream,
        plane, out.as<Out>(), rows, accumulate);
}

Status sumPlane(const float* plane, const TensorView& out, std::int64_t rows, bool accumulate,
    cudaStream_t stream)
{
    if (out.data == nullptr)
        return {};
    return out.dtype == DType::BF16 ? sumHeads<Bf16>(plane, out, rows, accumulate, stream)
                                    : sumHeads<float>(plane, out, rows, accumulate, stream);
}

template <typename T>
Status backward(const GatedDeltaBackwardArgs& args, cudaStream_t stream)
{
    const DeltaScratch scratch(args);
    const DeltaGradients<T> a{deltaTensors<T>(args),
        DeltaPairs(args.scratch.as<float>(), scratch.lower, args.mixed.dims[0], args.shape),
        args.gradOut.as<const T>(), args.gradMixed.as<T>(), args.gradGates.as<T>() + args.firstGate,
        args.borders.as<float>(), args.partial.as<float>(), scratch};
    MR_TRY(launchDeltaPairs(a.in, a.pairs, stream));
    MR_TRY(launchDeltaBorders(a, stream));
    MR_TRY(launchDeltaStates(a, stream));
    return launchDeltaChunks(a, stream);
}

} // namespace

Status launchGatedDeltaBackward(const GatedDeltaBackwardArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.mixed.dims[0];
    if (args.scratch.data == nullptr)
        return Status::error(
            ErrorKind::InvalidArgument, "gatedDeltaBackward: the CUDA device needs scratch");
    if (rows > 0)
        MR_TRY(args.mixed.dtype == DType::BF16 ? backward<Bf16>(args, stream)
                                               : backward<float>(args, stream));
    const auto* planes = args.partial.as<const float>();
    MR_TRY(sumPlane(planes, args.gradLogDecay, rows, args.accumulate, stream));
    return sumPlane(
        planes + rows * args.shape.valueHeads, args.gradTimeBias, rows, args.accumulate, stream);
}

} // namespace mr::gpu
