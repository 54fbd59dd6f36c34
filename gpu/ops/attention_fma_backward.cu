// Attention backward in F32 arithmetic. S = Q K^T, P = softmax(scale S), dP the gradient of P, dS
// that of scale S; see attention_fma.cu for when, Side for the two kernels
// and attention_mma_backward.cu for why there are two.

#include "gpu/launch.h"
#include "gpu/ops/attention_fma_tiles.cuh"
#include "gpu/ops/attention_paths.h"
#include "gpu/ops/attention_sides.cuh"

#include <cstdint>

namespace mr::gpu {
namespace {

// kDim is head_dim rounded up to 64, 128 or 256. A block keeps kRows rows a warp of two matrices;
// the tiles of the other two take turns in one place.
template <int kDim>
struct Tiles {
    static constexpr int kRows = 512 / kDim; // per warp: two sums take 32 floats of a thread
    static constexpr int kBlockRows = kFmaWarps * kRows;
    static constexpr int kFloats =
        (2 * kBlockRows + kColumns) * kFmaStride<kDim> + kBlockRows * kColumns; // at most 50 KiB
    static constexpr std::size_t kSharedBytes = kFloats * sizeof(float);
    static_assert(kSharedBytes <= 64 * 1024);
};

// Probability of a key and its gradient before the scale; 0 where the query does not see the key.
struct Weight {
    float p;
    float gradient;
};

__device__ Weight weightOf(const QueryRow& q, int query, int key, float score, float gradP)
{
    if (key > query || key < q.from)
        return {0.0F, 0.0F};
    const float p = expf(score - q.lse);
    return {p, p * (gradP - q.delta)};
}

template <Side kSide, int kDim, typename T>
struct GradientRows {
    static constexpr int kRows = Tiles<kDim>::kRows;

    float firstGrad[kRows][kDim / kWarp];  // dK or dQ
    float secondGrad[kRows][kDim / kWarp]; // dV; unused on the query side
    float* firstKept;                      // the warp's rows
    float* secondKept;
    float* tile;    // (32, kDim) of the block
    float* weights; // (kRows, 32) of the warp
    int lane;

    __device__ explicit GradientRows(float* shared)
        : lane(static_cast<int>(threadIdx.x) % kWarp)
    {
        using Shape = Tiles<kDim>;
        const int warpRow = static_cast<int>(threadIdx.x) / kWarp * kRows;
        constexpr int kKept = Shape::kBlockRows * kFmaStride<kDim>;
        firstKept = shared + warpRow * kFmaStride<kDim>;
        secondKept = firstKept + kKept;
        tile = shared + 2 * kKept;
        weights = tile + kColumns * kFmaStride<kDim> + warpRow * kColumns;
        clearSums(firstGrad);
        clearSums(secondGrad);
    }

    __device__ void fetch(const AttentionLayout& layout, const Strip<const T>& strip, int at)
    {
        __syncthreads(); // the tile before is no longer read
        loadTile<kDim>(tile, strip, at, kColumns, layout.tokens, layout.headDim);
        __syncthreads();
    }

    // Adds the rows [at, at + 32) of the other side. `row` is the warp's first row of its own.
    __device__ void add(
        const BackwardParams<T>& p, const SideStrips<T>& strips, int head, int row, int at)
    {
        const int depth = (p.layout.headDim + 3) / 4 * 4;
        float scores[kRows];
        float gradients[kRows];
        fetch(p.layout, strips.first, at);
        dotRows<kDim>(scores, firstKept, tile, depth, lane);
        fetch(p.layout, strips.second, at);
        dotRows<kDim>(gradients, secondKept, tile, depth, lane);
        QueryRow q{};
        if (kSide == Side::Keys)
            q = queryRow(p, at + lane, head);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            if (kSide == Side::Queries)
                q = queryRow(p, row + r, head);
            const int query = kSide == Side::Keys ? at + lane : row + r;
            const int key = kSide == Side::Keys ? row + r : at + lane;
            const float score = p.layout.bent(scores[r]);
            const Weight weight = weightOf(q, query, key, score * p.layout.scale, gradients[r]);
            weights[r * kColumns + lane] = weight.p;
            gradients[r] = weight.gradient * p.layout.slope(score);
        }
        __syncwarp(); // all lanes read all weights of the warp
        if (kSide == Side::Keys)
            addWeighted<kDim>(secondGrad, weights, tile, lane);
        __syncwarp();
#pragma unroll
        for (int r = 0; r < kRows; ++r)
            weights[r * kColumns + lane] = gradients[r];
        fetch(p.layout, strips.first, at);
        addWeighted<kDim>(firstGrad, weights, tile, lane);
    }

    __device__ void store(const BackwardParams<T>& p, int head, int row) const
    {
        const AttentionLayout& l = p.layout;
        const bool keys = kSide == Side::Keys;
        const Strip<T> first = keys ? l.key(p.gradQkv, head) : l.query(p.gradQkv, head);
        const Strip<T> second = l.value(p.gradQkv, keys ? head : 0);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            if (row + r >= l.tokens)
                return;
            storeSums(first.row(row + r), firstGrad[r], l.scale, l.headDim, lane);
            if (keys)
                storeSums(second.row(row + r), secondGrad[r], 1.0F, l.headDim, lane);
        }
    }
};

// Grid (kv heads or heads, tiles of rows). The first keys and the last queries are in most pairs,
// and come first.
template <Side kSide, int kDim, typename T>
__global__ void __launch_bounds__(kFmaThreads) attentionFmaBackwardKernel(BackwardParams<T> p)
{
    using Shape = Tiles<kDim>;
    const AttentionLayout& layout = p.layout;
    float* shared = dynamicShared<float>();
    const bool keys = kSide == Side::Keys;
    const unsigned block = keys ? blockIdx.y : gridDim.y - 1 - blockIdx.y;
    const int first = static_cast<int>(block) * Shape::kBlockRows;
    const int own = static_cast<int>(blockIdx.x);
    const Walk walk = walkOf<kSide>(layout, first, Shape::kBlockRows, own);
    const int warpRow = first + static_cast<int>(threadIdx.x) / kWarp * Shape::kRows;

    GradientRows<kSide, kDim, T> rows(shared);
    const SideStrips<T> kept = sideStrips<kSide>(p, walk.firstHead);
    loadTile<kDim>(shared, kept.firstKept, first, Shape::kBlockRows, layout.tokens, layout.headDim);
    loadTile<kDim>(shared + Shape::kBlockRows * kFmaStride<kDim>, kept.secondKept, first,
        Shape::kBlockRows, layout.tokens, layout.headDim);
    for (int head = walk.firstHead; head < walk.endHead; ++head) {
        const SideStrips<T> strips = sideStrips<kSide>(p, head);
        for (int at = walk.first; at < walk.end; at += kColumns)
            rows.add(p, strips, head, warpRow, at);
    }
    rows.store(p, own, warpRow);
}

template <Side kSide, int kDim, typename T>
Status launch(const BackwardParams<T>& params, cudaStream_t stream)
{
    using Shape = Tiles<kDim>;
    const AttentionLayout& layout = params.layout;
    const int heads = kSide == Side::Keys ? layout.kvHeads : layout.heads;
    const dim3 grid(static_cast<unsigned>(heads), blocksFor(layout.tokens, Shape::kBlockRows));
    return launchKernel("attentionFmaBackward",
        listed<attentionFmaBackwardKernel<kSide, kDim, T>>(),
        {grid, dim3(kFmaThreads), Shape::kSharedBytes}, stream, params);
}

template <int kDim, typename T>
Status launchBoth(const AttentionBackwardArgs& args, cudaStream_t stream)
{
    const BackwardParams<T> params = backwardParams<T>(args);
    MR_TRY((launch<Side::Keys, kDim, T>(params, stream)));
    return launch<Side::Queries, kDim, T>(params, stream);
}

template <typename T>
Status launchBySize(const AttentionBackwardArgs& args, cudaStream_t stream)
{
    if (args.headDim <= 64)
        return launchBoth<64, T>(args, stream);
    return args.headDim <= 128 ? launchBoth<128, T>(args, stream)
                               : launchBoth<256, T>(args, stream);
}

} // namespace

Status launchAttentionBackwardFma(const AttentionBackwardArgs& args, cudaStream_t stream)
{
    return args.qkv.dtype == DType::BF16 ? launchBySize<Bf16>(args, stream)
                                         : launchBySize<float>(args, stream);
}

} // namespace mr::gpu
