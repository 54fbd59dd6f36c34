// Attention forward on tensor cores: BF16 storage, sums in F32, sm_80 and later.
//
// Names: scores S = Q K^T, probabilities P = softmax(scale S) over the keys a query sees, O = P V.
//
// Method: a block owns a tile of queries of one head and walks over the keys they see; each warp
// keeps its rows' running maximum, sum and output in registers (Dao, "FlashAttention-2: Faster
// Attention with Better Parallelism and Work Partitioning", 2023, algorithm 1). The softmax is
// taken in base 2, with scale * log2(e) in the one fma before the exponential. Probabilities are
// rounded to BF16 for the second product, their sum is not.
//
// Loads: K and V have one tile each, and one is in flight while the other is used. Two tiles of
// each would hide no more and would halve the blocks of an SM at head_dim 128 (96 KiB, not 64).
//
// Skipping: keys begin at the tile of the first one the block's first query sees (visibleFrom never
// falls) and end at its last query. Of these tiles a warp skips those that none of its rows sees,
// and it tests single keys only where the diagonal or a border crosses its rows.
//
// Order: tiles of keys begin at multiples of 64, so a row's sums do not depend on its block, and a
// launch may give blocks as many rows as suits the card (attention_choice.h).

#include "gpu/ops/attention_mma_softmax.cuh"
#include "gpu/ops/attention_paths.h"

#include <cstdint>

namespace mr::gpu {
namespace {

// The rows of a warp: [first, last], and the first keys these two see.
template <int kCount>
struct WarpRows {
    int first;
    int last; // less than first: no row exists
    int firstFrom;
    int lastFrom;

    __device__ WarpRows(const AttentionLayout& layout, int at)
        : first(at)
        , last(min(at + kCount, layout.tokens) - 1)
        , firstFrom(first <= last ? layout.visibleFrom[first] : 0)
        , lastFrom(first <= last ? layout.visibleFrom[last] : 0)
    {
    }

    __device__ bool sees(int key, int keys) const
    {
        return first <= last && key <= last && key + keys > firstFrom;
    }

    __device__ bool seesAll(int key, int keys) const
    {
        return key + keys - 1 <= first && key >= lastFrom;
    }
};

// A block's tiles in shared memory, and a warp's slabs.
template <int kDim, int kRows>
class ForwardBlock
{
    using T = ForwardTiles<kDim, kRows>;

public:
    __device__ explicit ForwardBlock(const ForwardParams<Bf16>& params, int first)
        : m_p(params)
        , m_warpRow(static_cast<int>(threadIdx.x) / kWarp * T::kWarpRows)
        , m_first(first)
        , m_rows(m_p.layout, first + m_warpRow)
        , m_query(dynamicShared<Bf16>())
        , m_key(m_query + T::kQueries * kDim)
        , m_value(m_key + kForwardKeys * kDim)
        , m_places(threadIdx.x % kWarp)
    {
#pragma unroll
        for (int s = 0; s < T::kSlabs; ++s)
            m_slabs[s].begin();
    }

    __device__ void run()
    {
        const AttentionLayout& layout = m_p.layout;
        const int end = min(m_first + T::kQueries, layout.tokens);
        int at = layout.visibleFrom[m_first] / kForwardKeys * kForwardKeys;
        fetchTile<kDim, T::kQueries, T::kThreads>(
            m_query, layout.query(m_p.qkv, head()), m_first, layout.tokens);
        fetchKeys(at);
        for (; at < end; at += kForwardKeys)
            add(at, at + kForwardKeys < end);
        store();
    }

private:
    __device__ static int head()
    {
        return static_cast<int>(blockIdx.x);
    }

    __device__ Bf16* warpQuery() const
    {
        return m_query + m_warpRow * kDim;
    }

    __device__ void fetchKeys(int at)
    {
        const AttentionLayout& layout = m_p.layout;
        fetchTile<kDim, kForwardKeys, T::kThreads>(
            m_key, layout.key(m_p.qkv, head() / layout.group()), at, layout.tokens);
        cpAsyncCommit();
    }

    __device__ void fetchValues(int at)
    {
        const AttentionLayout& layout = m_p.layout;
        fetchTile<kDim, kForwardKeys, T::kThreads>(
            m_value, layout.value(m_p.qkv, head() / layout.group()), at, layout.tokens);
        cpAsyncCommit();
    }

    // The keys [at, at + kForwardKeys). Their K is on the way; that of the next ones will be.
    __device__ void add(int at, bool more)
    {
        const bool used = m_rows.sees(at, kForwardKeys);
        m_places.renew();
        cpAsyncWait<0>();
        __syncthreads(); // K is here, and V is free
        fetchValues(at);
        if (used)
            multiplyKeys<kDim>(m_slabs, warpQuery(), m_key, m_places);
        cpAsyncWait<0>();
        __syncthreads(); // V is here, and K is free
        if (more)
            fetchKeys(at + kForwardKeys);
        if (!used)
            return;
        const int lane = static_cast<int>(threadIdx.x) % kWarp;
        const float scale2 = m_p.layout.scale * kLog2E;
#pragma unroll
        for (int s = 0; s < T::kSlabs; ++s) {
            m_slabs[s].bend(m_p.layout);
            if (!m_rows.seesAll(at, kForwardKeys))
                m_slabs[s].mask(m_p.layout, m_rows.first + s * kSlab + lane / 4, at + lane % 4 * 2);
            m_slabs[s].exponentials(0, scale2);
            m_slabs[s].exponentials(1, scale2);
        }
        addValues<kDim>(m_slabs, m_value, m_places);
    }

    // Q is not read again, and each warp has read its own rows alone: the output passes there.
    __device__ void store()
    {
#pragma unroll
        for (int s = 0; s < T::kSlabs; ++s) {
            const int first = m_rows.first + s * kSlab;
            if (first < m_p.layout.tokens)
                storeSlabOut(m_slabs[s], warpQuery() + s * kSlab * kDim, first);
        }
    }

    __device__ void storeSlabOut(const Softmax<kDim>& slab, Bf16* tile, int first)
    {
        const int lane = static_cast<int>(threadIdx.x) % kWarp;
        const AttentionLayout& layout = m_p.layout;
        float inverse[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float total = slab.rowTotal(half);
            inverse[half] = __fdiv_rn(1.0F, total);
            const int row = first + lane / 4 + 8 * half;
            if (lane % 4 == 0 && row < layout.tokens)
                m_p.lse[std::int64_t{row - m_p.firstQuery} * layout.heads + head()] =
                    fmaf(slab.top[half], layout.scale, logf(total));
        }
        Strip<Bf16> to = layout.strip(m_p.out, layout.heads, head());
        to.data = to.row(first - m_p.firstQuery);
        storeSlab<kDim>(slab.out, inverse, tile, to, layout.tokens - first);
    }

    const ForwardParams<Bf16>& m_p;
    const int m_warpRow; // in the block
    const int m_first;   // query of the block
    const WarpRows<T::kWarpRows> m_rows;
    Bf16* const m_query; // (kQueries, kDim)
    Bf16* const m_key;   // (kForwardKeys, kDim)
    Bf16* const m_value; // (kForwardKeys, kDim)
    LanePlaces<kDim> m_places;
    Softmax<kDim> m_slabs[T::kSlabs];
};

// Grid (heads, query tiles): blocks start with x fastest. The last queries of all heads, which see
// most, come first, so short blocks fill the gaps at the end.
template <int kDim, int kRows>
__global__ void __launch_bounds__(ForwardTiles<kDim, kRows>::kThreads)
    attentionForwardKernel(const ForwardParams<Bf16> p)
{
    if constexpr (kMultipliesBf16) {
        const unsigned tile = gridDim.y - 1 - blockIdx.y;
        ForwardBlock<kDim, kRows>(p, p.firstQuery + static_cast<int>(tile) * kRows).run();
    }
}

template <int kDim, int kRows>
Status launch(const ForwardParams<Bf16>& params, cudaStream_t stream)
{
    using T = ForwardTiles<kDim, kRows>;
    const unsigned tiles = blocksFor(params.layout.tokens - params.firstQuery, T::kQueries);
    const LaunchShape shape{dim3(static_cast<unsigned>(params.layout.heads), tiles),
        dim3(T::kThreads), T::kSharedBytes};
    return launchKernel(
        "attention", listed<attentionForwardKernel<kDim, kRows>>(), shape, stream, params);
}

template <int kDim>
Status launchRows(const AttentionArgs& args, AttentionChoice& choice, cudaStream_t stream)
{
    const ForwardParams<Bf16> params = forwardParams<Bf16>(args);
    return withRows<AttentionKernel::Forward, kDim>(
        choice.rows({AttentionKernel::Forward, kDim, args.heads, args.qkv.dims[0], args.firstQuery,
            args.mostKeys}),
        [&]<int kRows>() { return launch<kDim, kRows>(params, stream); });
}

} // namespace

Status launchAttentionMma(const AttentionArgs& args, AttentionChoice& choice, cudaStream_t stream)
{
    return withHeadDim(
        args.headDim, [&]<int kDim>() { return launchRows<kDim>(args, choice, stream); });
}

} // namespace mr::gpu
