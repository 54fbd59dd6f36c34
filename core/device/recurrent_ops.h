// Layers with a state that goes from token to token, and gates: causal convolution, the gated delta
// rule, the gated norm, the gate of attention. See ops.h.
//
// Documents  documentFrom (T), I32, holds the first row of each row's document. It is never
//            negative and never falls from row to row, and documentFrom[documentFrom[t]] is
//            documentFrom[t]. Nothing passes from one document to another.
// Generation Rows may come in several calls. A call with `continues` starts in the middle of the
//            document of row 0, from what the call before left in `history` or `state`.
// Source     Yang et al., "Gated Delta Networks", arXiv 2412.06464; the layers of Qwen 3.5.
//
// Threads  Values.

#pragma once

#include "core/device/tensor.h"

#include <cstdint>

namespace mr {

// Rows of a chunk of the delta rule, counted from each document's first row, and of a block of
// rows that is summed before blocks are joined.
inline constexpr std::int64_t kRecurrentRows = 64;

constexpr std::int64_t recurrentBlocks(std::int64_t rows) noexcept
{
    return (rows + kRecurrentRows - 1) / kRecurrentRows;
}

inline constexpr std::int64_t kLeastTaps = 2;
inline constexpr std::int64_t kMostTaps = 8;

// Depthwise convolution over the rows of a document:
//     c[t] = sum over j of weight[ch][j] x[t - K + 1 + j],   out = c, or c sigmoid(c) with silu
// j ascending, by fma, in F32. Rows before the document's first are zero.
struct CausalConvArgs {
    TensorView x;            // (T, cols), A: columns [firstColumn, firstColumn + channels) are read
    TensorView weight;       // (channels, K), A; K in [kLeastTaps, kMostTaps]
    TensorView documentFrom; // (T), I32
    TensorView out;          // (T, channels), A; not x
    TensorView history;      // (K - 1, channels), A; data null: none. The K - 1 inputs before row 0
                             // where the call continues; then those before the next row
    std::int64_t firstColumn = 0;
    bool silu = true;
    bool continues = false; // only with history; row 0 then has documentFrom 0
};

// gradX overwrites its window and leaves other columns. The rows of gradWeight are summed in blocks
// of kRecurrentRows in order, then the blocks in order. c is made again from x.
struct CausalConvBackwardArgs {
    TensorView x;            // (T, cols), A
    TensorView weight;       // (channels, K), A
    TensorView documentFrom; // (T), I32
    TensorView gradOut;      // (T, channels), A
    TensorView gradX;        // (T, cols), A; neither x nor gradOut
    TensorView gradWeight;   // (channels, K), G; data null: not wanted
    TensorView partial;      // (recurrentBlocks(T), channels * K), F32, scratch
    std::int64_t firstColumn = 0;
    bool silu = true;
    bool accumulate = false; // into gradWeight
};

// Value head j uses key head j / (valueHeads / keyHeads).
struct DeltaShape {
    int keyHeads = 0;
    int valueHeads = 0; // a multiple of keyHeads
    int keyDim = 0;
    int valueDim = 0;

    constexpr std::int64_t keyColumns() const noexcept { return std::int64_t{keyHeads} * keyDim; }
    constexpr std::int64_t valueColumns() const noexcept
    {
        return std::int64_t{valueHeads} * valueDim;
    }
    constexpr std::int64_t columns() const noexcept { return 2 * keyColumns() + valueColumns(); }

    bool operator==(const DeltaShape&) const = default;
};

// Per value head, with b and a of a row's gates, all in F32 and stored once:
//     q = q (sum q^2 + 1e-6)^-1/2 keyDim^-1/2,   k = k (sum k^2 + 1e-6)^-1/2
//     beta = sigmoid(b),   g = -exp(logDecay) softplus(a + timeBias)    softplus(x) = x above 20
//     S = exp(g) S,   d = beta (v - S^T k),   S = S + k d^T,   out = S^T q
// S (keyDim, valueDim) is zero before a document's first row.
struct GatedDeltaArgs {
    TensorView mixed;        // (T, shape.columns()), A: heads of q, of k, of v
    TensorView gates;        // (T, cols), A: b in [firstGate, + valueHeads), a in those after it
    TensorView logDecay;     // (valueHeads), A
    TensorView timeBias;     // (valueHeads), A
    TensorView documentFrom; // (T), I32
    TensorView out;          // (T, shape.valueColumns()), A
    TensorView state;        // (valueHeads, keyDim, valueDim), F32; data null: none. S before row 0
                             // where the call continues; then S after the last row
    TensorView scratch;      // (deltaForwardScratch(T, shape)), F32; data null: none. The CPU
                             // device needs none, the CUDA device does
    DeltaShape shape;
    std::int64_t firstGate = 0;
    bool continues = false; // only with state; row 0 then has documentFrom 0
};

// Elements of GatedDeltaArgs::scratch: by row and value head two rows of matrices over the rows of
// its chunk, two products of decays and beta; by row and key head the factors that norm q and k.
constexpr std::int64_t deltaForwardScratch(std::int64_t rows, const DeltaShape& shape) noexcept
{
    return rows * ((2 * kRecurrentRows + 3) * shape.valueHeads + 2 * std::int64_t{shape.keyHeads});
}

// gradGates overwrites its 2 valueHeads columns. Gradients of q and k are summed over the value
// heads of a key head, ascending; those of logDecay and timeBias over rows in blocks of
// kRecurrentRows in order, then the blocks in order.
// A chunk that starts at row t, which is not its document's first, has the state before it at
// borders[t / kRecurrentRows]; such rows are at least kRecurrentRows apart.
struct GatedDeltaBackwardArgs {
    TensorView mixed; // these five: as in GatedDeltaArgs
    TensorView gates;
    TensorView logDecay;
    TensorView timeBias;
    TensorView documentFrom;
    TensorView gradOut;      // (T, shape.valueColumns()), A
    TensorView gradMixed;    // (T, shape.columns()), A; not mixed
    TensorView gradGates;    // (T, cols), A; not gates
    TensorView gradLogDecay; // (valueHeads), G; data null: not wanted
    TensorView gradTimeBias; // (valueHeads), G; likewise
    TensorView borders;      // (recurrentBlocks(T), valueHeads, keyDim, valueDim), F32, scratch
    TensorView partial;      // (kDeltaPlanes, T, valueHeads), F32, scratch
    TensorView scratch;      // (deltaScratch(T, shape)), F32; data null: none. The CPU
                             // device needs none, the CUDA device does
    DeltaShape shape;
    std::int64_t firstGate = 0;
    bool accumulate = false; // into gradLogDecay and gradTimeBias
};
inline constexpr std::int64_t kDeltaPlanes = 2; // terms of gradLogDecay, of gradTimeBias

// Elements of GatedDeltaBackwardArgs::scratch: those of the forward pass, and a third matrix;
// gradients of states at borders; v - S^T k and the gradient of d by row and value head; gradients
// of normed q and k by row and key head.
constexpr std::int64_t deltaScratch(std::int64_t rows, const DeltaShape& shape) noexcept
{
    const std::int64_t state = std::int64_t{shape.keyDim} * shape.valueDim;
    return deltaForwardScratch(rows, shape) + rows * kRecurrentRows * shape.valueHeads +
           recurrentBlocks(rows) * shape.valueHeads * state +
           2 * rows * (shape.valueColumns() + shape.keyColumns());
}

// Per head of dim: r = 1 / sqrt(mean(x^2) + eps), out = weight (x r) (z sigmoid(z)), in F32 and
// stored once. weight is shared by heads.
struct GatedNormArgs {
    TensorView x;      // (T, n * dim), A
    TensorView gate;   // (T, cols), A: z in columns [firstColumn, firstColumn + n * dim)
    TensorView weight; // (dim), A
    TensorView out;    // (T, n * dim), A; not x
    TensorView rstd;   // (T, n), F32: r, kept for backward
    std::int64_t firstColumn = 0;
    float eps = 1e-6F;
};

// gradGate overwrites its window. gradWeight is summed over heads, token by token, in blocks of
// kNormRowBlock heads, then over the blocks in order.
struct GatedNormBackwardArgs {
    TensorView gradOut; // (T, n * dim), A
    TensorView x;       // these four: as in GatedNormArgs
    TensorView gate;
    TensorView weight;
    TensorView rstd;
    TensorView gradX;      // (T, n * dim), A; neither gradOut nor x
    TensorView gradGate;   // (T, cols), A; may be gate
    TensorView gradWeight; // (dim), G; data null: not wanted
    TensorView partial;    // (recurrentBlocks(T * n), dim), F32, scratch
    std::int64_t firstColumn = 0;
    bool accumulate = false; // into gradWeight
};

// Queries that come with gates: `joined` is [q and gate of each head in turn | k | v], `qkv` the
// packed rows of attention. Copies q, k and v to qkv or, with `back`, from there; gates stay.
struct SplitQueriesArgs {
    TensorView joined; // (T, (2 heads + 2 kvHeads) headDim), A
    TensorView qkv;    // (T, (heads + 2 kvHeads) headDim), A
    int heads = 0;
    int kvHeads = 0;
    int headDim = 0;
    bool back = false;
};

// out = x sigmoid(gate)
struct GateHeadsArgs {
    TensorView x;      // (T, heads * headDim), A
    TensorView joined; // as in SplitQueriesArgs
    TensorView out;    // (T, heads * headDim), A; may be x
    int heads = 0;
    int kvHeads = 0;
    int headDim = 0;
};

// gradX = gradOut s, and the gradient of the gate is gradOut x s (1 - s), with s = sigmoid(gate).
struct GateHeadsBackwardArgs {
    TensorView gradOut;    // (T, heads * headDim), A
    TensorView x;          // (T, heads * headDim), A
    TensorView joined;     // as in SplitQueriesArgs
    TensorView gradX;      // (T, heads * headDim), A; may be gradOut
    TensorView gradJoined; // as joined, and may be it; q, k and v stay
    int heads = 0;
    int kvHeads = 0;
    int headDim = 0;
};

} // namespace mr
