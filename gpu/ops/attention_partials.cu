// Gradients of keys and values from those of each query head: the sum over the heads of a group, in
// ascending order, in F32; then the scale of keys, and one rounding.

#include "gpu/ops/attention_layout.cuh"
#include "gpu/ops/attention_paths.h"
#include "gpu/ops/packs.cuh"

#include <cstdint>

namespace mr::gpu {
namespace {

constexpr int kPartialThreads = 256;
constexpr int kPartialPack = 4; // head_dim of every path that makes partials is a multiple

// A thread has one pack of a token's keys or values. blockIdx.y: 0, keys; 1, values.
__global__ void __launch_bounds__(kPartialThreads)
    attentionPartialsKernel(const BackwardParams<Bf16> p, std::int64_t packs)
{
    const std::int64_t item = std::int64_t{blockIdx.x} * kPartialThreads + threadIdx.x;
    if (item >= packs)
        return;
    const AttentionLayout& l = p.layout;
    const int perHead = l.headDim / kPartialPack;
    const int column = static_cast<int>(item % perHead) * kPartialPack;
    const int kvHead = static_cast<int>(item / perHead % l.kvHeads);
    const std::int64_t token = item / perHead / l.kvHeads;
    const bool isValue = blockIdx.y == 1;
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
    const BackwardParams<Bf16> params = backwardParams<Bf16>(args);
    const std::int64_t packs =
        args.qkv.dims[0] * args.kvHeads * (std::int64_t{args.headDim} / kPartialPack);
    const LaunchShape shape{dim3(blocksFor(packs, kPartialThreads), 2), dim3(kPartialThreads)};
    return launchKernel(
        "attentionPartials", listed<attentionPartialsKernel>(), shape, stream, params, packs);
}

} // namespace mr::gpu
