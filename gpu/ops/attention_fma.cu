// Attention forward in F32 arithmetic: the fp32 mode, head_dims without a tensor-core form, cards
// before sm_80. Written to be plain and O(T) in memory, and to fit the 64 KiB of shared memory of
// sm_75.
//
// Names: scores S = Q K^T, probabilities P = softmax(scale S) over the keys a query sees, O = P V.
//
// Method: as attention_mma_forward.cu, one block per tile of queries and head, online softmax over
// the keys they see.

#include "gpu/launch.h"
#include "gpu/ops/attention_fma_tiles.cuh"
#include "gpu/ops/attention_paths.h"

#include <cstdint>

namespace mr::gpu {
namespace {

// kDim is head_dim rounded up to 64, 128 or 256. K and V take turns in one tile.
template <int kDim>
struct Tiles {
    static constexpr int kRows = kDim <= 128 ? 8 : 4; // per warp: sums take kRows kDim / 32 floats
    static constexpr int kQueries = kFmaWarps * kRows;
    static constexpr int kFloats =
        (kQueries + kColumns) * kFmaStride<kDim> + kQueries * kColumns; // at most 51 KiB
    static constexpr std::size_t kSharedBytes = kFloats * sizeof(float);
    static_assert(kSharedBytes <= 64 * 1024);
};

// The running softmax of a warp's rows.
template <int kDim>
struct Softmax {
    using T = Tiles<kDim>;

    float out[T::kRows][kDim / kWarp]; // unnormalised; columns lane, lane + 32, ...
    float top[T::kRows];
    float total[T::kRows];

    __device__ void begin()
    {
        clearSums(out);
#pragma unroll
        for (int r = 0; r < T::kRows; ++r) {
            top[r] = __uint_as_float(0xff800000U); // -infinity
            total[r] = 0.0F;
        }
    }

    // Takes the lane's score of row r, gives its probability relative to the new top. A row that
    // has seen no key yet keeps -infinity, and 0 stands in for it: else NaN.
    __device__ float add(int r, float score)
    {
        const float high = fmaxf(top[r], warpMax(score));
        const float shift = isfinite(high) ? high : 0.0F;
        const float p = expf(score - shift);
        const float factor = expf(top[r] - shift);
        total[r] = fmaf(total[r], factor, warpSum(p));
        top[r] = high;
#pragma unroll
        for (int c = 0; c < kDim / kWarp; ++c)
            out[r][c] = out[r][c] * factor;
        return p;
    }
};

// Adds the keys [at, at + 32). `tile` holds their K; `weights` becomes their probabilities.
template <int kDim>
__device__ void addScores(Softmax<kDim>& softmax, const AttentionLayout& layout, int first, int at,
    const float* query, const float* tile, float* weights)
{
    constexpr int kRows = Tiles<kDim>::kRows;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    float scores[kRows];
    dotRows<kDim>(scores, query, tile, (layout.headDim + 3) / 4 * 4, lane);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const int row = min(first + r, layout.tokens - 1);
        const bool visible = at + lane <= row && at + lane >= layout.visibleFrom[row];
        const float score =
            visible ? layout.bent(scores[r]) * layout.scale : __uint_as_float(0xff800000U);
        weights[r * kColumns + lane] = softmax.add(r, score);
    }
    __syncwarp(); // all lanes read all weights of the warp
}

template <int kDim, typename T>
__device__ void storeRows(const Softmax<kDim>& softmax, const ForwardParams<T>& p, int first)
{
    const AttentionLayout& layout = p.layout;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int head = static_cast<int>(blockIdx.x);
    const Strip<T> out = layout.strip(p.out, layout.heads, head);
#pragma unroll
    for (int r = 0; r < Tiles<kDim>::kRows; ++r) {
        if (first + r >= layout.tokens)
            return;
        const std::int64_t row = first + r - p.firstQuery;
        storeSums(
            out.row(row), softmax.out[r], __fdiv_rn(1.0F, softmax.total[r]), layout.headDim, lane);
        if (lane == 0)
            p.lse[row * layout.heads + head] = softmax.top[r] + logf(softmax.total[r]);
    }
}

// Grid (heads, query tiles), the last queries, which see most, first.
template <int kDim, typename T>
__global__ void __launch_bounds__(kFmaThreads) attentionFmaKernel(ForwardParams<T> p)
{
    using Shape = Tiles<kDim>;
    float* query = dynamicShared<float>();
    float* tile = query + Shape::kQueries * kFmaStride<kDim>;
    const int warpRow = static_cast<int>(threadIdx.x) / kWarp * Shape::kRows;
    float* weights = tile + kColumns * kFmaStride<kDim> + warpRow * kColumns;
    const AttentionLayout& layout = p.layout;
    const int first = p.firstQuery + static_cast<int>(gridDim.y - 1 - blockIdx.y) * Shape::kQueries;
    const int end = min(first + Shape::kQueries, layout.tokens);
    const int head = static_cast<int>(blockIdx.x);
    const Strip<const T> keys = layout.key(p.qkv, head / layout.group());
    const Strip<const T> values = layout.value(p.qkv, head / layout.group());

    Softmax<kDim> softmax;
    softmax.begin();
    loadTile<kDim>(
        query, layout.query(p.qkv, head), first, Shape::kQueries, layout.tokens, layout.headDim);
    for (int at = layout.visibleFrom[first]; at < end; at += kColumns) {
        __syncthreads(); // the V before is no longer read
        loadTile<kDim>(tile, keys, at, kColumns, layout.tokens, layout.headDim);
        __syncthreads();
        addScores<kDim>(softmax, layout, first + warpRow, at, query + warpRow * kFmaStride<kDim>,
            tile, weights);
        __syncthreads();
        loadTile<kDim>(tile, values, at, kColumns, layout.tokens, layout.headDim);
        __syncthreads();
        addWeighted<kDim>(softmax.out, weights, tile, static_cast<int>(threadIdx.x) % kWarp);
    }
    storeRows(softmax, p, first + warpRow);
}

template <int kDim, typename T>
Status launch(const AttentionArgs& args, cudaStream_t stream)
{
    using Shape = Tiles<kDim>;
    const ForwardParams<T> params = forwardParams<T>(args);
    const dim3 grid(static_cast<unsigned>(args.heads),
        blocksFor(params.layout.tokens - params.firstQuery, Shape::kQueries));
    return launchKernel("attentionFma", listed<attentionFmaKernel<kDim, T>>(),
        {grid, dim3(kFmaThreads), Shape::kSharedBytes}, stream, params);
}

template <typename T>
Status launchBySize(const AttentionArgs& args, cudaStream_t stream)
{
    if (args.headDim <= 64)
        return launch<64, T>(args, stream);
    return args.headDim <= 128 ? launch<128, T>(args, stream) : launch<256, T>(args, stream);
}

} // namespace

Status launchAttentionFma(const AttentionArgs& args, cudaStream_t stream)
{
    return args.qkv.dtype == DType::BF16 ? launchBySize<Bf16>(args, stream)
                                         : launchBySize<float>(args, stream);
}

} // namespace mr::gpu
