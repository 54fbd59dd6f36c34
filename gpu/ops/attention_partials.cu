// Gradients of keys and values from those of each query head: the sum over the heads of a group, in
// ascending order, in F32; then the scale of keys, and one rounding.

#include "gpu/ops/attention_layout.cuh"
#include "gpu/ops/attention_paths.h"
#include "gpu/ops/packs.cuh"

#include <cstdint>

namespace mr::gpu {
namespace {

constexpr int kPartialPack = 4; // head_dim of every path that makes partials is a multiple

// A thread has one pack of a token's keys or values. rowShape(tokens, headDim / kPartialPack, 1);
// blockIdx.y: the kv head; blockIdx.z: 0, keys; 1, values.
__global__ void __launch_bounds__(kRowBlockThreads)
    attentionPartialsKernel(const BackwardParams<Bf16> p)
{
    const AttentionLayout& l = p.layout;
    const std::int64_t token = rowOfThread();
    const int column = static_cast<int>(threadIdx.x) * kPartialPack;
    if (token >= l.tokens || column >= l.headDim)
        return;
    const auto kvHead = static_cast<int>(blockIdx.y);
    const bool isValue = blockIdx.z == 1;
    const std::int64_t row = (isValue ? l.tokens : 0) + token;
    const float* from =
        p.partial + (row * l.heads + std::int64_t{kvHead} * l.group()) * l.headDim + column;
    float sum[kPartialPack] = {};
    for (int head = 0; head < l.group(); ++head, from += l.headDim) {
        const Pack<float, kPartialPack> part = loadPack<kPartialPack>(from);
#pragma unroll
        for (int i = 0; i < kPartialPack; ++i)
            sum[i] = sum[i] + part.at[i];
    }
#pragma unroll
    for (int i = 0; i < kPartialPack; ++i)
        sum[i] = isValue ? sum[i] : sum[i] * l.scale;
    const Strip<Bf16> to = isValue ? l.value(p.gradQkv, kvHead) : l.key(p.gradQkv, kvHead);
    storePack(to.row(token) + column, roundPack<Bf16>(sum));
}

} // namespace

Status launchAttentionPartials(const AttentionBackwardArgs& args, cudaStream_t stream)
{
    LaunchShape shape = rowShape(args.qkv.dims[0], args.headDim / kPartialPack, 1);
    shape.grid.y = static_cast<unsigned>(args.kvHeads);
    shape.grid.z = 2;
    return launchKernel("attentionPartials", listed<attentionPartialsKernel>(), shape, stream,
        backwardParams<Bf16>(args));
}

} // namespace mr::gpu
