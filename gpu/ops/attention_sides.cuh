// The two sides of attention's gradient. Kernels come in two kinds: a block keeps the rows of a
// tile of its own side, and walks over the rows of the other side that pair with them.
//   Keys     keeps K and V, walks over Q and dO of all heads of the group: dK and dV
//   Queries  keeps Q and dO, walks over K and V: dQ
//
// Threads  Any; endOfSight() and its callers: whole warps.

#pragma once

#include "gpu/ops/attention_layout.cuh"

#include <cstdint>

namespace mr::gpu {

enum class Side { Keys, Queries };

// Scores, or their transpose, are firstKept first^T; their gradients are secondKept second^T.
template <typename T>
struct SideStrips {
    Strip<const T> firstKept;
    Strip<const T> secondKept;
    Strip<const T> first;
    Strip<const T> second;
};

template <Side kSide, typename T>
__device__ SideStrips<T> sideStrips(const BackwardParams<T>& p, int head)
{
    const AttentionLayout& l = p.layout;
    const Strip<const T> query = l.query(p.qkv, head);
    const Strip<const T> gradOut = l.strip(p.gradOut, l.heads, head);
    const Strip<const T> key = l.key(p.qkv, head / l.group());
    const Strip<const T> value = l.value(p.qkv, head / l.group());
    if constexpr (kSide == Side::Keys)
        return {key, value, query, gradOut};
    else
        return {query, gradOut, key, value};
}

// Values of a row of the query side.
struct QueryRow {
    float lse;   // infinity for a row that does not exist: its probabilities become 0
    float delta; // row sum of out * gradOut
    int from;    // the first key it sees
};

inline constexpr int kNoRow = 0x7fffffff; // `from` of a row that does not exist: it sees nothing

template <typename T>
__device__ QueryRow queryRow(const BackwardParams<T>& p, int row, int head)
{
    if (row >= p.layout.tokens)
        return {__uint_as_float(0x7f800000U), 0.0F, kNoRow};
    const std::int64_t at = std::int64_t{row} * p.layout.heads + head;
    return {p.lse[at], p.delta[at], p.layout.visibleFrom[row]};
}

// The end of the rows from `low` on that see `key`: visibleFrom never falls, so they are adjacent.
// A whole warp calls; each round leaves a 32nd of the rows.
__device__ inline int endOfSight(const AttentionLayout& layout, int low, int key, int lane)
{
    int high = layout.tokens;
    while (low < high) {
        const int step = (high - low + kWarp - 1) / kWarp;
        const int probe = low + lane * step;
        const bool sees = probe < high && layout.visibleFrom[probe] <= key;
        const int seeing = static_cast<int>(warpSum(sees ? 1.0F : 0.0F));
        if (seeing == 0)
            return low;
        high = min(high, low + seeing * step);
        low = low + (seeing - 1) * step + 1;
    }
    return low;
}

// Walk of a block of `count` own rows from `row` on: rows [first, end) of the other side, for heads
// [firstHead, endHead).
struct Walk {
    int first;
    int end;
    int firstHead;
    int endHead;
};

// `own` is a kv head on the key side, a head on the query side. Precondition: row is a row.
template <Side kSide>
__device__ Walk walkOf(const AttentionLayout& layout, int row, int count, int own)
{
    const int last = min(row + count, layout.tokens) - 1;
    if constexpr (kSide == Side::Queries)
        return {layout.visibleFrom[row], last + 1, own, own + 1};
    const int end = endOfSight(layout, row, last, static_cast<int>(threadIdx.x % kWarp));
    return {row, end, own * layout.group(), (own + 1) * layout.group()};
}

} // namespace mr::gpu
