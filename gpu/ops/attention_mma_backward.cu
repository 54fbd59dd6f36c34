// Attention backward on tensor cores: BF16 storage, sums in F32, sm_80 and later.
//
// Names: S = Q K^T, P = softmax(scale S), dP the gradient of P, dS that of scale S.
//
// Method: probabilities are made again from the log-sum-exp, P = exp(scale S - lse), and with
// dP = dO V^T and delta = rowsum(O dO): dV = P^T dO, dS = P (dP - delta), dK = scale dS^T Q,
// dQ = scale dS K (Dao, "FlashAttention-2", 2023, algorithm 2; base 2 as in the forward file).
//
// Two kernels, one for dK and dV, one for dQ (Side): each sums its own gradients in registers, in
// one order. Both make S and dP, so a tile of pairs costs 7 products and not 5. Considered instead:
// one kernel by keys that adds to dQ atomically (bits would change from run to run), the same with
// blocks taking turns (waits on the slowest, and an F32 dQ of tokens x heads x head_dim, which
// this op is not given), and a partial dQ per tile of keys (memory grows with tokens^2).
//
// Own rows are the rows of every product: a warp owns 16 of them, P and dS go from sums to left
// operands without leaving its registers, rounded to BF16.
//
// Grouped queries: with scratch for it, a block of the kernel by keys has one query head and writes
// its sums in F32; attention_partials.cu adds the heads of a group in order. Without scratch a
// block walks over all heads of the group: far fewer blocks, where a model has few kv heads.
//
// Loads: of the two matrices that move, the first (used at the start and the end of a step) has
// two tiles, the second (used in between) one. Shared memory is 81 KiB at head_dim 128 and 64 rows,
// two blocks on an SM of sm_80 and sm_90.
//
// Order: walks begin at multiples of 16, so a row's sums take the other side 16 by 16 rows alike in
// every block, and a launch may give blocks as many rows as suits the card (attention_choice.h).

#include "gpu/ops/attention_mma_pairs.cuh"
#include "gpu/ops/attention_paths.h"

#include <cstdint>

namespace mr::gpu {
namespace {

// A tile of the other side, for one head.
struct Step {
    int at;
    int head;
};

// A block's tiles in shared memory, and a warp's sums.
template <Part kPart, int kDim, int kRows>
class BackwardBlock
{
    using T = BackwardTiles<kPart, kDim, kRows>;
    static constexpr Side kSide = T::kSide;
    using Columns = Pairs<kSide, T::kColumns>;

public:
    __device__ BackwardBlock(const BackwardParams<Bf16>& params, int blockRow)
        : m_p(params)
        , m_walk(walkOfBlock(m_p, blockRow))
        , m_warpRow(static_cast<int>(threadIdx.x) / kWarp * kSlab)
        , m_row(blockRow + m_warpRow)
        , m_firstKept(dynamicShared<Bf16>())
        , m_secondKept(m_firstKept + T::kRows * kDim)
        , m_first(m_secondKept + T::kRows * kDim)
        , m_second(m_first + 2 * T::kMoved)
        , m_columns(reinterpret_cast<QueryRow*>(m_second + T::kMoved))
        , m_queries{m_columns, {}}
        , m_places(threadIdx.x % kWarp)
    {
        clear(m_firstSums);
        clear(m_valueSums);
        const int row = m_row + static_cast<int>(threadIdx.x % kWarp) / 4;
        if (kSide == Side::Queries)
            for (int half = 0; half < 2; ++half)
                m_queries.rows[half] = baseTwoRow(m_p, row + 8 * half, m_walk.firstHead);
    }

    __device__ void run()
    {
        fetchKept();
        Step step{m_walk.first, m_walk.firstHead};
        fetch(m_first, step, true);
        cpAsyncCommit();
        fetch(m_second, step, false);
        cpAsyncCommit();
        for (int turn = 0; step.head < m_walk.endHead; turn = 1 - turn) {
            const Step next = after(step);
            add(step, next, m_first + turn * T::kMoved, m_first + (1 - turn) * T::kMoved);
            step = next;
        }
        store();
    }

private:
    __device__ static Walk walkOfBlock(const BackwardParams<Bf16>& p, int blockRow)
    {
        const int own = static_cast<int>(blockIdx.x);
        if (kSide == Side::Queries) {
            Walk walk = walkOf<kSide>(p.layout, blockRow, T::kRows, own);
            walk.first = walk.first / kSlab * kSlab;
            return walk;
        }
        if (!p.partial)
            return walkOf<kSide>(p.layout, blockRow, T::kRows, own);
        Walk walk = walkOf<kSide>(p.layout, blockRow, T::kRows, own / p.layout.group());
        walk.firstHead = own;
        walk.endHead = own + 1;
        return walk;
    }

    // Through the tiles of a head, then the heads.
    __device__ Step after(const Step& step) const
    {
        return step.at + T::kColumns < m_walk.end ? Step{step.at + T::kColumns, step.head}
                                                  : Step{m_walk.first, step.head + 1};
    }

    __device__ void fetchKept()
    {
        const SideStrips<Bf16> strips = sideStrips<kSide>(m_p, m_walk.firstHead);
        const int blockRow = m_row - m_warpRow;
        const int end = m_p.layout.tokens;
        fetchTile<kDim, T::kRows, T::kThreads>(m_firstKept, strips.firstKept, blockRow, end);
        if (T::kFirst)
            fetchTile<kDim, T::kRows, T::kThreads>(m_secondKept, strips.secondKept, blockRow, end);
    }

    // The first or the second matrix of a step; nothing past the last step.
    __device__ void fetch(Bf16* tile, const Step& step, bool first)
    {
        if (step.head >= m_walk.endHead)
            return;
        const SideStrips<Bf16> strips = sideStrips<kSide>(m_p, step.head);
        fetchTile<kDim, T::kColumns, T::kThreads>(
            tile, first ? strips.first : strips.second, step.at, m_p.layout.tokens);
    }

    // One tile of pairs. `current` holds the first matrix, `other` takes that of the next step.
    __device__ void add(const Step& step, const Step& next, const Bf16* current, Bf16* other)
    {
        const Columns pairs{m_row, step.at};
        const bool used = pairs.used();
        const int thread = static_cast<int>(threadIdx.x);
        const bool carries = kSide == Side::Keys && thread < T::kColumns;
        m_places.renew();
        cpAsyncWait<1>();
        __syncthreads(); // `current` is here, `other` and the columns are free
        fetch(other, next, true);
        cpAsyncCommit();
        const QueryRow column = carries ? baseTwoRow(m_p, step.at + thread, step.head) : QueryRow{};
        float scores[T::kColumns / 8][4];
        if (used)
            multiply<kDim>(scores, m_firstKept + m_warpRow * kDim, current, m_places);
        if (carries)
            m_columns[thread] = column;
        cpAsyncWait<1>();
        __syncthreads(); // the second matrix and the columns are here
        float gradients[T::kColumns / 8][4];
        if (used)
            weigh(pairs, scores, gradients);
        __syncthreads(); // the second matrix is free
        fetch(m_second, next, false);
        cpAsyncCommit();
        if (used && T::kFirst)
            addProduct<kDim>(m_firstSums, gradients, current, m_places);
    }

    // Scores become probabilities; adds to dV; makes the gradients of the scores.
    __device__ void weigh(
        const Columns& pairs, typename Columns::Tile& scores, typename Columns::Tile& gradients)
    {
        if (T::kFirst)
            multiply<kDim>(gradients, m_secondKept + m_warpRow * kDim, m_second, m_places);
        pairs.template bend<T::kFirst>(scores, gradients, m_queries, m_p.layout);
        pairs.weigh(
            scores, m_queries, m_p.layout.scale * kLog2E, pairs.masked(m_p.layout, m_queries));
        if (T::kValue)
            addProduct<kDim>(m_valueSums, scores, m_second, m_places);
        if (T::kFirst)
            pairs.descend(gradients, scores, m_queries);
    }

    // The tiles of the kept rows are free now, and each warp has read its own rows alone.
    __device__ void store() const
    {
        const AttentionLayout& l = m_p.layout;
        const int own = static_cast<int>(blockIdx.x);
        Bf16* rows = m_firstKept + m_warpRow * kDim;
        if (m_row >= l.tokens)
            return;
        if (kSide == Side::Keys && m_p.partial) {
            if (T::kFirst)
                storePartial(m_firstSums, 0);
            if (T::kValue)
                storePartial(m_valueSums, 1);
            return;
        }
        if (T::kFirst) {
            Strip<Bf16> to =
                kSide == Side::Keys ? l.key(m_p.gradQkv, own) : l.query(m_p.gradQkv, own);
            to.data = to.row(m_row);
            storeSlab<kDim>(m_firstSums, {l.scale, l.scale}, rows, to, l.tokens - m_row);
        }
        if (T::kValue) {
            Strip<Bf16> to = l.value(m_p.gradQkv, own);
            to.data = to.row(m_row);
            storeSlab<kDim>(m_valueSums, {1.0F, 1.0F}, rows, to, l.tokens - m_row);
        }
    }

    // Sums of this block's head. `which`: 0, of keys before the scale; 1, of values.
    __device__ void storePartial(const float (&sums)[kDim / 8][4], int which) const
    {
        const AttentionLayout& l = m_p.layout;
        const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = m_row + lane / 4 + 8 * half;
            if (row >= l.tokens)
                return;
            const std::int64_t at =
                (std::int64_t{which} * l.tokens + row) * l.heads + m_walk.firstHead;
            float* to = m_p.partial + at * kDim + lane % 4 * 2;
#pragma unroll
            for (int n = 0; n < kDim / 8; ++n)
                *reinterpret_cast<float2*>(to + 8 * n) =
                    make_float2(sums[n][2 * half], sums[n][2 * half + 1]);
        }
    }

    const BackwardParams<Bf16>& m_p;
    const Walk m_walk;
    const int m_warpRow;      // in the block
    const int m_row;          // the warp's first
    Bf16* const m_firstKept;  // (kRows, kDim)
    Bf16* const m_secondKept; // (kRows, kDim)
    Bf16* const m_first;      // (2, kColumns, kDim)
    Bf16* const m_second;     // (kColumns, kDim)
    QueryRow* const m_columns;
    PairQueries<kSide> m_queries;
    LanePlaces<kDim> m_places;
    float m_firstSums[kDim / 8][4]; // dQ or dK, before the scale
    float m_valueSums[kDim / 8][4]; // dV; not of all parts
};

// Grid (heads, or kv heads, tiles of own rows). The first keys and the last queries are in most
// pairs, and come first.
template <Part kPart, int kDim, int kRows>
__global__ void __launch_bounds__(BackwardTiles<kPart, kDim, kRows>::kThreads)
    attentionBackwardKernel(const BackwardParams<Bf16> p)
{
    if constexpr (kMultipliesBf16) {
        using T = BackwardTiles<kPart, kDim, kRows>;
        const unsigned tile = T::kSide == Side::Keys ? blockIdx.y : gridDim.y - 1 - blockIdx.y;
        BackwardBlock<kPart, kDim, kRows>(p, static_cast<int>(tile) * kRows).run();
    }
}

template <Part kPart, int kDim, int kRows>
Status launch(const BackwardParams<Bf16>& params, int heads, cudaStream_t stream)
{
    using T = BackwardTiles<kPart, kDim, kRows>;
    const dim3 grid(static_cast<unsigned>(heads), blocksFor(params.layout.tokens, kRows));
    return launchKernel("attentionBackward", listed<attentionBackwardKernel<kPart, kDim, kRows>>(),
        {grid, dim3(T::kThreads), T::kSharedBytes}, stream, params);
}

// A launch of the backward pass.
struct Backward {
    const AttentionBackwardArgs& args;
    BackwardParams<Bf16> params;
    AttentionChoice& choice;
    cudaStream_t stream;

    template <int kDim>
    Status launchKeys() const
    {
        constexpr AttentionKernel kKernel = AttentionKernel::KeyGradients;
        const int heads = params.partial ? args.heads : args.kvHeads;
        return withRows<kKernel, kDim>(rows(kKernel, heads), [&]<int kRows>() -> Status {
            if constexpr (kDim <= 128) {
                return launch<Part::KeyAndValueGradient, kDim, kRows>(params, heads, stream);
            } else {
                MR_TRY((launch<Part::ValueGradient, kDim, kRows>(params, heads, stream)));
                return launch<Part::KeyGradient, kDim, kRows>(params, heads, stream);
            }
        });
    }

    template <int kDim>
    Status launchQueries() const
    {
        constexpr AttentionKernel kKernel = AttentionKernel::QueryGradients;
        return withRows<kKernel, kDim>(rows(kKernel, args.heads), [&]<int kRows>() {
            return launch<Part::QueryGradient, kDim, kRows>(params, args.heads, stream);
        });
    }

    int rows(AttentionKernel kernel, int heads) const
    {
        return choice.rows({kernel, args.headDim, heads, args.qkv.dims[0], 0, args.mostKeys});
    }
};

} // namespace

Status launchAttentionBackwardMma(
    const AttentionBackwardArgs& args, AttentionChoice& choice, cudaStream_t stream)
{
    const Backward backward{args, backwardParams<Bf16>(args), choice, stream};
    return withHeadDim(args.headDim, [&]<int kDim>() -> Status {
        MR_TRY(backward.launchKeys<kDim>());
        if (backward.params.partial)
            MR_TRY(launchAttentionPartials(args, stream));
        return backward.launchQueries<kDim>();
    });
}

} // namespace mr::gpu
