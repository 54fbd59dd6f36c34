// delta = row sums of out * gradOut, by head: the part of the softmax gradient that a row's keys
// share. Its own kernel, because every tile of keys asks for it again.
//
// Bound by memory bandwidth, expected: a lane reads packs of 16 bytes. A row of 64 BF16 is eight
// packs, so rows share a warp: each has the lanes that its packs need, rounded up to a power of
// two.
//
// Order   A lane sums its packs in order, by fma; then the tree of warpSum() over the lanes of the
//         row.

#include "gpu/ops/attention_paths.h"
#include "gpu/ops/packs.cuh"

#include <cstdint>

namespace mr::gpu {
namespace {

// out, gradOut (rows, headDim), delta (rows); a row is a head of a token. rowShape() with the lanes
// of a row in one warp.
template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads) attentionDeltaKernel(const T* __restrict__ out,
    const T* __restrict__ gradOut, float* __restrict__ delta, std::int64_t rows, int headDim)
{
    const std::int64_t row = rowOfThread();
    const int lanes = static_cast<int>(blockDim.x);
    float sum = 0.0F;
    if (row < rows)
        for (int d = static_cast<int>(threadIdx.x) * kPack; d < headDim; d += lanes * kPack) {
            const Pack<T, kPack> a = loadPack<kPack>(out + row * headDim + d);
            const Pack<T, kPack> b = loadPack<kPack>(gradOut + row * headDim + d);
            for (int i = 0; i < kPack; ++i)
                sum = __fmaf_rn(toFloat(a.at[i]), toFloat(b.at[i]), sum);
        }
    for (int other = lanes / 2; other > 0; other /= 2)
        sum = sum + __shfl_xor_sync(kAllLanes, sum, other);
    if (threadIdx.x == 0 && row < rows)
        delta[row] = sum;
}

template <typename T>
Status launch(const AttentionBackwardArgs& args, cudaStream_t stream)
{
    constexpr int kPack = kPackOf<T>;
    const std::int64_t rows = args.delta.count();
    const bool packed = args.headDim % kPack == 0 && fitsPacks(kPack, args.out, args.gradOut);
    const int packs = packed ? args.headDim / kPack : args.headDim;
    return launchKernel("attentionDelta",
        packed ? listed<attentionDeltaKernel<T, kPack>>() : listed<attentionDeltaKernel<T, 1>>(),
        rowShape(rows, packs, (packs + kWarp - 1) / kWarp), stream, args.out.as<const T>(),
        args.gradOut.as<const T>(), args.delta.as<float>(), rows, args.headDim);
}

} // namespace

Status launchAttentionDelta(const AttentionBackwardArgs& args, cudaStream_t stream)
{
    return args.qkv.dtype == DType::BF16 ? launch<Bf16>(args, stream) : launch<float>(args, stream);
}

} // namespace mr::gpu
