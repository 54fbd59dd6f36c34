// Work of a warp on one tile of pairs (own rows, columns of the other side) in attention's
// gradient: scores S to probabilities P, dP to dS, products with a tile. See
// attention_mma_backward.cu, which names them.

#pragma once

#include "gpu/launch.h"
#include "gpu/ops/attention_choice.h"
#include "gpu/ops/attention_sides.cuh"
#include "gpu/ops/attention_tiles.cuh"

#include <cstddef>
#include <cstdint>

namespace mr::gpu {

// Gradients that a launch makes. At head_dim 256 dK and dV together would take every register of a
// thread, so each gets a launch of its own (5 products instead of 4).
enum class Part { QueryGradient, KeyAndValueGradient, KeyGradient, ValueGradient };

template <Part kPart, int kDim, int kOwnRows>
struct BackwardTiles {
    static constexpr AttentionKernel kKernel = kPart == Part::QueryGradient
                                                   ? AttentionKernel::QueryGradients
                                                   : AttentionKernel::KeyGradients;
    static constexpr AttentionTile kTile = attentionTile(kKernel, kDim, kOwnRows);
    static constexpr int kThreads = kTile.warps * kWarp;
    static constexpr int kRows = kOwnRows;
    static constexpr int kColumns = kTile.columns; // rows of a tile that moves
    static constexpr int kMoved = kColumns * kDim; // its elements
    static constexpr Side kSide = kPart == Part::QueryGradient ? Side::Queries : Side::Keys;
    static constexpr bool kFirst = kPart != Part::ValueGradient; // dQ or dK, which need dP
    static constexpr bool kValue =
        kPart == Part::KeyAndValueGradient || kPart == Part::ValueGradient;
    static constexpr std::size_t kSharedBytes = kTile.sharedBytes;
    static_assert(kSharedBytes <= kMaxSharedBytes && kThreads >= kColumns);
    static_assert(kRows == kTile.warps * kSlab);
    static_assert(kSharedBytes ==
                  (2 * kRows + 3 * kColumns) * kDim * sizeof(Bf16) + kColumns * sizeof(QueryRow));
};

// The query rows of a tile of pairs as one thread sees them: on the key side they are its columns
// and shared by the block, on the query side its two rows. lse is in base 2, as exp2 wants it.
template <Side kSide>
struct PairQueries {
    const QueryRow* columns;
    QueryRow rows[2];

    __device__ const QueryRow& of(int column, int half) const
    {
        return kSide == Side::Keys ? columns[column] : rows[half];
    }
};

__device__ inline QueryRow baseTwoRow(const BackwardParams<Bf16>& p, int row, int head)
{
    QueryRow q = queryRow(p, row, head);
    q.lse = q.lse * kLog2E;
    return q;
}

// sums = rows columns^T, for a warp's slab.
template <int kDim, int kTiles>
__device__ void multiply(
    float (&sums)[kTiles][4], const Bf16* rows, const Bf16* columns, const LanePlaces<kDim>& places)
{
    clear(sums);
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
        Fragment a;
        loadLeft<kDim>(a, rows, 0, k, places);
#pragma unroll
        for (int n = 0; n < kTiles / 2; ++n) {
            Fragment b;
            loadRightByRows<kDim>(b, columns, n * 16, k, places);
            mmaPair(sums[2 * n], sums[2 * n + 1], a, b);
        }
    }
}

// sums += weights tile, weights rounded to BF16.
template <int kDim, int kTiles>
__device__ void addProduct(float (&sums)[kDim / 8][4], const float (&weights)[kTiles][4],
    const Bf16* tile, const LanePlaces<kDim>& places)
{
#pragma unroll
    for (int k = 0; k < kTiles / 2; ++k) {
        Fragment a;
        packLeft(a, weights, k);
#pragma unroll
        for (int n = 0; n < kDim / 16; ++n) {
            Fragment b;
            loadRightByColumns<kDim>(b, tile, k * 16, n, places);
            mmaPair(sums[2 * n], sums[2 * n + 1], a, b);
        }
    }
}

// The 16 own rows from `row` on with the kColumns rows of the other side from `at` on.
template <Side kSide, int kColumns>
struct Pairs {
    using Tile = float[kColumns / 8][4];

    int row;
    int at;

    // False where every key comes after every query.
    __device__ bool used() const
    {
        return kSide == Side::Keys ? at + kColumns > row : at < row + kSlab;
    }

    // Whether some query does not see some key. Rows past the last one see nothing.
    __device__ bool masked(const AttentionLayout& layout, const PairQueries<kSide>& queries) const
    {
        if (kSide == Side::Keys)
            return row + kSlab - 1 > at || queries.columns[kColumns - 1].from > row;
        const int last = min(row + kSlab, layout.tokens) - 1;
        return at + kColumns - 1 > row || (row <= last && layout.visibleFrom[last] > at);
    }

    // Takes a soft-cap into the scores, and its slope into the gradients of probabilities: each
    // becomes delta + slope * (gradient - delta), and descend() subtracts delta again.
    template <bool kGradients>
    __device__ void bend(Tile& scores, Tile& gradients, const PairQueries<kSide>& queries,
        const AttentionLayout& layout) const
    {
        if (layout.capOverScale == 0.0F)
            return;
        const int lane = static_cast<int>(threadIdx.x % kWarp);
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                scores[n][i] = layout.bent(scores[n][i]);
                const float delta = queries.of(8 * n + lane % 4 * 2 + i % 2, i / 2).delta;
                if (kGradients)
                    gradients[n][i] =
                        fmaf(gradients[n][i] - delta, layout.slope(scores[n][i]), delta);
            }
    }

    // Scores become probabilities.
    __device__ void weigh(
        Tile& scores, const PairQueries<kSide>& queries, float scale2, bool masks) const
    {
        const int lane = static_cast<int>(threadIdx.x % kWarp);
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int column = 8 * n + lane % 4 * 2 + i % 2;
                const int own = row + lane / 4 + i / 2 * 8;
                const QueryRow& q = queries.of(column, i / 2);
                const int query = kSide == Side::Keys ? at + column : own;
                const int key = kSide == Side::Keys ? own : at + column;
                const float p = exp2Fast(fmaf(scores[n][i], scale2, -q.lse));
                scores[n][i] = masks && (key > query || key < q.from) ? 0.0F : p;
            }
    }

    // Gradients of probabilities become those of scores, before the scale.
    __device__ void descend(
        Tile& gradients, const Tile& weights, const PairQueries<kSide>& queries) const
    {
        const int lane = static_cast<int>(threadIdx.x % kWarp);
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const QueryRow& q = queries.of(8 * n + lane % 4 * 2 + i % 2, i / 2);
                gradients[n][i] = weights[n][i] * (gradients[n][i] - q.delta);
            }
    }
};

} // namespace mr::gpu
