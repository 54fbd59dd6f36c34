// The operations a device can run. One virtual per op, one argument struct per op.
//
// Every op is enqueued on a stream and returns before the work is done. Shapes are written
// as (rows, cols) in the order of TensorView::dims. Argument checks live in op_checks.h and
// are shared by all backends, so all of them refuse the same calls with the same words.
//
// Types    "A" below is the compute type: BF16 or F32, the same for all tensors of one call
//          that are marked so. Arithmetic is in F32; a store to BF16 rounds to nearest even.
// Order    Every op gives the same bits on every run of one backend and instruction set, and
//          with any number of threads: reductions have a fixed order, nothing is atomic.
// Lengths  T tokens of a micro-batch, H hidden size, V vocabulary, Q = (heads + 2 kvHeads) *
//          headDim columns of a packed projection, I intermediate size.
// Starts   A view may start at any element, that is at a multiple of its element's bytes;
//          StepScalars start at a multiple of 8. Where all views of a call start at multiples of 16
//          bytes a device may move packs, which is faster. An op that treats elements alone, moves
//          rows or columns, or has its order written below gives the same bits either way. Any
//          other sum (columnEnergy, gradBias, a row's norm or softmax), a product and attention may
//          take another order, so callers that need equal bits start their views alike.
// Scratch  Ops that need scratch memory take it as an argument; none allocates.
// Weights  A gradient of weights is F32 ("G"), or, where the op does not add to it, A: the same F32
//          sum, rounded once. On CUDA a product may take another order for another type of result.
// Source   The comment on each op; model_semantics of the reference where it names none.

#pragma once

#include "core/device/adamw_factors.h"
#include "core/device/column_ops.h"
#include "core/device/input_codes.h"
#include "core/device/light_update.h"
#include "core/device/loss_ops.h"
#include "core/device/recurrent_ops.h"
#include "core/device/tensor.h"

#include <millrace/status.h>

#include <cstdint>

namespace mr {

class Stream;

// out[t] = scale table[ids[t]]
struct EmbedArgs {
    TensorView ids;     // (T), I32, each in [0, V); one outside is refused on a CPU, else NaN
    TensorView table;   // (V, H), A
    TensorView out;     // (T, H), A
    float scale = 1.0F; // rounded to A first
};

// gradTable[v] (+)= scale times the sum over t with ids[t] == v, t ascending, of gradOut[t]; of
// nothing where v is untrainedRow. An id from V on has no row.
struct EmbedBackwardArgs {
    TensorView ids;       // (T), I32
    TensorView order;     // (T), I32: 0 .. T-1 sorted by ids, ties ascending, those without a row
                          // in any order; made with the batch
    TensorView gradOut;   // (T, H), A
    TensorView gradTable; // (V, H), G
    bool accumulate = false;        // false: rows without a token become 0
    float scale = 1.0F;             // rounded to A first
    std::int64_t untrainedRow = -1; // as if no token had it; -1: none
};

// Factor that multiplies a normed value.
enum class NormGain : std::uint8_t {
    Weight,       // the normed value is rounded to A before the product (Llama's order)
    OnePlusWeight // 1 + weight in F32, and the product alone is rounded (Gemma's)
};

// y = gain * x / sqrt(mean(x^2) + eps) by rows, mean and rsqrt in F32. With `residual`, x is
// x + residual, rounded to A, and is stored in `sum`.
struct RmsNormArgs {
    TensorView x;        // (T, H), A
    TensorView residual; // (T, H), A; data null: none
    TensorView weight;   // (H), A
    TensorView sum;      // (T, H), A; only with residual; may be x or residual
    TensorView out;      // (T, H), A; not x
    TensorView rstd;     // (T), F32: 1 / sqrt(mean + eps), kept for backward
    float eps = 1e-5F;
    NormGain gain = NormGain::Weight;
};

// gradX = gradResidual + d(out)/d(x)^T gradOut; gradWeight (+)= sum over rows.
// Rows are summed in blocks of kNormRowBlock, then the blocks in order.
struct RmsNormBackwardArgs {
    TensorView gradOut;      // (T, H), A
    TensorView x;            // (T, H), A: input of the norm (RmsNormArgs::sum where there was one)
    TensorView weight;       // (H), A
    TensorView rstd;         // (T), F32
    TensorView gradResidual; // (T, H), A; data null: 0; may be gradX
    TensorView gradX;        // (T, H), A; not gradOut, not x
    TensorView gradWeight;   // (H), G; data null: not wanted
    TensorView partial;      // (ceil(T / kNormRowBlock), H), F32, scratch
    bool accumulate = false; // into gradWeight
    NormGain gain = NormGain::Weight;
};
inline constexpr std::int64_t kNormRowBlock = 64;

// y = x weight^T + bias
struct LinearArgs {
    TensorView x;      // (T, in), A
    TensorView weight; // (out, in), A
    TensorView bias;   // (out), A; data null: none
    TensorView out;    // (T, out), A or F32
};

// gradX = gradOut weight
struct LinearBackwardInputArgs {
    TensorView gradOut; // (T, out), A
    TensorView weight;  // (out, in), A
    TensorView gradX;   // (T, in), A
};

// gradWeight (+)= gradOut^T x, and gradBias (+)= the sum of gradOut by rows, in an order that
// depends on the shape alone.
// With `accumulate` the product is formed as without, then added in one F32 addition per
// element: the bits equal those of a product into scratch and an addition of its own. With
// `product` that is how a device adds, for one whose library adds otherwise.
struct LinearBackwardWeightArgs {
    TensorView gradOut;    // (T, out), A
    TensorView x;          // (T, in), A
    TensorView gradWeight; // (out, in), G
    TensorView gradBias;   // (out), the type of gradWeight; data null: none
    TensorView product;    // (out, in), F32, scratch; only with accumulate; data null: the sum
                           // is formed by the product itself
    bool accumulate = false;
};

// Some columns of a matrix, with others beside them.
struct ColumnWindow {
    TensorView matrix; // (rows, all columns)
    std::int64_t first = 0;
    std::int64_t count = 0;
};

constexpr ColumnWindow allColumns(const TensorView& matrix) noexcept
{
    return {matrix, 0, matrix.dims[1]};
}

// out (+)= scale op(a) op(b): every product of a low-rank adapter, whose modules lie side by side.
// The sum is in F32 and is scaled; with `accumulate` the old value is added, in F32. One rounding.
struct WindowProductArgs {
    ColumnWindow a;   // (m, k), A; (k, m) if transposeA
    ColumnWindow b;   // (k, n), A; (n, k) if transposeB
    ColumnWindow out; // (m, n), A or F32; overlaps neither
    bool transposeA = false;
    bool transposeB = false;
    float scale = 1.0F;
    bool accumulate = false;
};

// The rows of an adapted weight, V = weight + scale b a: norms = their lengths, and factors =
// magnitude / norm, 0 where the norm is. V is in F32 and stored nowhere. (Liu et al., "DoRA", arXiv
// 2402.09353, section 4.1.)
struct AdapterNormsArgs {
    TensorView weight;    // (rows, in), A
    TensorView a;         // (rank, in), A
    TensorView b;         // (rows, rank), A
    TensorView magnitude; // (rows), A
    TensorView norms;     // (rows), F32
    TensorView factors;   // (rows), F32
    float scale = 1.0F;
};

// out = factors x by columns; with a bias, which x has in it, out = fma(factors, x - bias, bias).
struct ScaleColumnsArgs {
    ColumnWindow x;     // (T, n), A
    TensorView factors; // (n), F32
    TensorView bias;    // (n), A; data null: none
    ColumnWindow out;   // (T, n), A; may be x
};

// out (+)= column sums of a b, over divisors; 0 where the divisor is. In an order that depends on
// the shape alone.
struct ColumnDotsArgs {
    ColumnWindow a;      // (T, n), A
    ColumnWindow b;      // (T, n), A
    TensorView divisors; // (n), F32, not negative
    TensorView out;      // (n), G
    bool accumulate = false;
};

// gradBias (+)= the sum of gradOut by rows, in an order that depends on the shape alone.
struct BiasGradientArgs {
    TensorView gradOut;  // (T, out), A
    TensorView gradBias; // (out), G
    bool accumulate = false;
};

// x as FP8 codes with one scale, x = code * scale: scale is the smallest power of two for which no
// element lies beyond the format, codes round to nearest even (core/device/fp8.h). So scales cost
// no bits, and the largest element depends on no order. Where x holds a NaN or an infinity the
// scale is NaN, and with it every product of these codes. Both sizes of x are multiples of
// kCodeBlock and not 0, and all tensors but `scale` start at multiples of 16 bytes.
struct QuantizeArgs {
    TensorView x;       // (rows, cols), BF16
    TensorView codes;   // (rows, cols), E4M3 or E5M2; data null: not wanted
    TensorView turned;  // (cols, rows), the type of codes: transposed; data null: not wanted
    TensorView scale;   // (1), F32
    TensorView partial; // (kQuantizePartials), I32, scratch
};
inline constexpr std::int64_t kCodeBlock = 16;
inline constexpr std::int64_t kQuantizePartials = 512;

// Weights that are held in 4 bits (NF4 with double quantisation). Element i lies in block
// b = i / kNf4Block, and is book[code of i] absmax(b), with absmax(b) = map[absmax code of b]
// nested[b / kNf4Nested] + offset: each operation in F32, the product rounded to BF16, which A
// holds exactly. `tables` has book, map, offset and nested, one behind the other.
// Source: Dettmers et al., "QLoRA", arXiv 2305.14314.
struct DequantizeNf4Args {
    TensorView codes;  // (ceil(n / 2)), U8: element 2 j in the upper half of byte j
    TensorView absmax; // (ceil(n / kNf4Block)), U8
    TensorView tables; // (kNf4Fixed + ceil(blocks / kNf4Nested)), F32
    TensorView out;    // (n), A
};
inline constexpr std::int64_t kNf4Block = 64;
inline constexpr std::int64_t kNf4Nested = 256; // blocks
inline constexpr std::int64_t kNf4Book = 16;
inline constexpr std::int64_t kNf4Map = 256;
inline constexpr std::int64_t kNf4Fixed = kNf4Book + kNf4Map + 1; // nested begins there

// out (+)= scaleA scaleB a b^T + bias. The sums are in F32, the scales are applied to them. m, n
// and k are multiples of kCodeBlock; a, b and out start at multiples of 16 bytes. With `accumulate`
// as in LinearBackwardWeightArgs. A device may have no such products: DeviceInfo::multipliesCodes.
struct CodeProductArgs {
    TensorView a;      // (m, k), E4M3 or E5M2
    TensorView b;      // (n, k), E4M3
    TensorView scaleA; // (1), F32
    TensorView scaleB; // (1), F32
    TensorView bias;   // (n), BF16; data null: none; not with accumulate
    TensorView out;    // (m, n), BF16 or F32; F32 with accumulate
    bool accumulate = false;
};

// Which elements of a head turn together.
enum class RopePairs : std::uint8_t {
    Halves,    // i with i + rotaryDim / 2
    Neighbours // 2 i with 2 i + 1
};

// Rotates heads [firstHead, firstHead + heads) of every row by the angle positions[t] * inv_freq,
// of each the first rotaryDim elements; all else stays. For q and k of a packed row: heads +
// kvHeads. inverse rotates back, which is the backward pass.
struct RopeArgs {
    TensorView x;         // (T, Q), A; in place
    TensorView positions; // (T), I32
    TensorView cosTable;  // (maxPosition, rotaryDim / 2), F32
    TensorView sinTable;  // as cosTable
    int heads = 0;
    int headDim = 0;
    int rotaryDim = 0; // even, at most headDim
    bool inverse = false;
    RopePairs pairs = RopePairs::Halves;
    int firstHead = 0;
};

// The heads of q or of k, which a model norms before it rotates them.
struct HeadNorm {
    TensorView projected; // (T, n * headDim), A: before the norm; n: heads for q, kvHeads for k
    TensorView rstd;      // (T, n), F32: as in RmsNormArgs, of each head
    TensorView weight;    // (headDim), A
};

// The heads of q and k of packed rows, each normed and rotated, in place (QK-norm). The bits are
// those of rmsNorm with a head as a row, stored as A, and then rope. Writes projected and rstd.
// Without kvHeads, heads [firstHead, firstHead + heads) of rows of any length.
struct HeadNormRopeArgs {
    TensorView qkv; // (T, Q), A; other columns stay
    HeadNorm queries;
    HeadNorm keys;
    TensorView positions; // this and the tables: as in RopeArgs; not read where nothing turns
    TensorView cosTable;
    TensorView sinTable;
    int heads = 0;
    int kvHeads = 0;
    int headDim = 0;
    int rotaryDim = 0; // even, at most headDim; 0: nothing turns
    float eps = 1e-5F;
    NormGain gain = NormGain::Weight;
    int firstHead = 0; // 0 with kvHeads
};

// The gradients of headNormRope. The bits are those of rope with `inverse`, stored as A, and then
// rmsNormBackward with a head as a row: token by token, of each the heads in order.
struct HeadNormRopeBackwardArgs {
    TensorView gradQkv; // (T, Q), A; in place, columns of v stay
    HeadNorm queries;   // as headNormRope left them
    HeadNorm keys;
    TensorView gradQueryWeight; // (headDim), G; data null: not wanted
    TensorView gradKeyWeight;   // (headDim), G; likewise
    TensorView partial;         // (headNormPartials(T, heads, kvHeads), headDim), F32, scratch
    TensorView positions;
    TensorView cosTable;
    TensorView sinTable;
    int heads = 0;
    int kvHeads = 0;
    int headDim = 0;
    int rotaryDim = 0;
    bool accumulate = false; // into the gradients of the weights
    NormGain gain = NormGain::Weight;
    int firstHead = 0;
};

// Blocks of kNormRowBlock heads: those of q, then those of k.
constexpr std::int64_t headNormPartials(
    std::int64_t tokens, std::int64_t heads, std::int64_t kvHeads) noexcept
{
    const auto blocks = [](std::int64_t rows) {
        return (rows + kNormRowBlock - 1) / kNormRowBlock;
    };
    return blocks(tokens * heads) + blocks(tokens * kvHeads);
}

// Causal attention over packed rows [q heads | k heads | v heads]. Query head h uses kv head
// floor(h / (heads / kvHeads)). Key j is visible to query i iff visibleFrom[i] <= j <= i: that
// one array holds batch borders, documents of a packed row, and a sliding window. It never falls
// from row to row, which lets a device skip whole tiles.
// With softcap c a score s becomes c tanh(s / c) before it is masked (Gemma 2).
// Softmax in F32. Memory O(T): no (T, T) tensor. A row nothing may be asked of (padding) has
// visibleFrom[i] = i.
struct AttentionArgs {
    TensorView qkv;         // (T, Q), A, after RoPE
    TensorView visibleFrom; // (T), I32
    TensorView out;         // (T - firstQuery, heads * headDim), A
    TensorView lse;         // (T - firstQuery, heads), F32: log of the sum of exponentials
    int heads = 0;
    int kvHeads = 0;
    int headDim = 0;
    float scale = 0.0F;          // scale of the logits: 1 / sqrt(headDim) in Llama
    std::int64_t firstQuery = 0; // rows before it are keys only (generation, one token a time)
    float softcap = 0.0F;        // 0: none
    // No query sees more keys, by visibleFrom; 0: not known. Helps a device to share out the work,
    // and changes no result.
    std::int64_t mostKeys = 0;
};

struct AttentionBackwardArgs {
    TensorView qkv;         // (T, Q), A
    TensorView visibleFrom; // (T), I32
    TensorView out;         // (T, heads * headDim), A
    TensorView lse;         // (T, heads), F32
    TensorView gradOut;     // (T, heads * headDim), A
    TensorView delta;       // (T, heads), F32, scratch: row sums of out * gradOut
    TensorView gradQkv;     // (T, Q), A; overwritten
    int heads = 0;
    int kvHeads = 0;
    int headDim = 0;
    float scale = 0.0F;
    float softcap = 0.0F;
    // (n), F32, scratch; data null: none. With attentionPartials() elements a device may sum the
    // gradients of keys and values by query head, and then over the heads of a group in order.
    TensorView partial = {};
    std::int64_t mostKeys = 0; // as in AttentionArgs
};

// Elements of the gradients of keys and values by query head; 0: every head has its own keys.
constexpr std::int64_t attentionPartials(
    std::int64_t tokens, std::int64_t heads, std::int64_t kvHeads, std::int64_t headDim) noexcept
{
    return heads > kvHeads ? 2 * tokens * heads * headDim : 0;
}

// Both are x sigmoid(u): silu(x) with u = x, the tanh form of GELU, x (1 + tanh(u / 2)) / 2, with
// u = 2 sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks and Gimpel, arXiv 1606.08415).
enum class GateActivation : std::uint8_t { Silu, GeluTanh };

// The constants of u and of its derivative: u = kGeluLinear x + kGeluCubic x^3.
inline constexpr float kGeluLinear = 1.59576912160573071F;  // 2 sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.0713548162726002527F; // 0.044715 of it

// out = activation(gate) * up, gateUp = [gate | up] by rows
struct SwigluArgs {
    TensorView gateUp; // (T, 2 I), A
    TensorView out;    // (T, I), A
    GateActivation activation = GateActivation::Silu;
};

struct SwigluBackwardArgs {
    TensorView gateUp;     // (T, 2 I), A
    TensorView gradOut;    // (T, I), A
    TensorView gradGateUp; // (T, 2 I), A; may be gateUp
    GateActivation activation = GateActivation::Silu;
};

// total[index] = sum of values in double, in an order that depends on n alone. One call per
// micro-batch.
struct SumArgs {
    TensorView values; // (n), F32
    TensorView total;  // (slots), F64
    std::int64_t index = 0;
};

// out = a + b, in F32, stored as A
struct AddArgs {
    TensorView a;   // any shape, A or F32
    TensorView b;   // count and type of a
    TensorView out; // count and type of a; may be a or b
};

// out = factor x, in F32, stored as A
struct ScaleArgs {
    TensorView x;   // any shape, A or F32
    TensorView out; // count and type of x; may be x
    float factor = 1.0F;
};

// Which draws a dropout takes. Its masks are those of every op with equal numbers here.
struct DropoutDraw {
    std::uint64_t key = 0;
    std::uint64_t counter = 0; // the upper half of Philox's: one mask each
    double probability = 0.0;  // of an element to become 0; in [0, 1)

    bool operator==(const DropoutDraw&) const = default;
};

// The words of kept elements are this or more.
constexpr std::uint32_t dropoutThreshold(double probability) noexcept
{
    return static_cast<std::uint32_t>(probability * 0x1p32);
}

// The factor of kept elements.
constexpr float dropoutScale(double probability) noexcept
{
    return static_cast<float>(1.0 / (1.0 - probability));
}

// d = x dropoutScale() where element i is kept, else 0: word i % 4 of philox(key, i / 4, counter)
// decides (core/base/philox.h). out = d, or out + d by one fma; a dropped element then stays as it
// is. (Srivastava et al., "Dropout", JMLR 15 (2014); scaled in training.)
struct DropoutArgs {
    TensorView x;   // any shape, A
    TensorView out; // count and type of x; may be x
    DropoutDraw draw;
    bool accumulate = false;
};

// sum = x where keep == 0 (sum is not read: it may hold anything), else fma(keep, sum, x): a
// running sum (keep 1) or one that fades. One rounding an element, the same bits on every device.
// Where scalars.finite is 0 the sum stays as it is; with keep == 0 it then becomes zeros.
struct AccumulateArgs {
    TensorView sum;     // (n), F32
    TensorView x;       // (n), BF16 or F32; may be sum
    TensorView scalars; // (16), U8: StepScalars, read when the op runs; data null: x is finite
    float keep = 1.0F;  // in [0, 1]
};

// A finished gradient: out = round(a + b), nearest even; F32 is stored as it is, and so is a sum
// that was rounded when it was stored.
struct FinishGradientArgs {
    TensorView sum;    // (n), F32: the accumulator; or BF16 where out is and nothing is second
    TensorView second; // (n), F32: that of a tied head; data null: none
    TensorView out;    // (n), BF16 or F32; F32 may be `sum`
};

// blockSums[b] = sum of x^2 over elements [1024 b, 1024 (b + 1)) of `x`, in F32, in a fixed
// tree: 16 lanes (lane l sums l, l + 16, ... in order by fma), then lanes 16 -> 8 -> 4 -> 2 -> 1 by
// adding the upper half to the lower. Squares of BF16 are exact in F32.
struct NormBlocksArgs {
    TensorView x;         // (n), BF16 or F32
    TensorView blockSums; // (ceil(n / 1024)), F32
};

// Scalars of a step, or of one of its groups, once its gradients are finished. Lives in device
// memory; copied to the host as it is.
struct StepScalars {
    double gradNorm = 0.0;   // sqrt of the sum over blocks
    float clipFactor = 1.0F; // min(1, clip / (norm + 1e-6)); 1 without clipping
    std::int32_t finite = 1; // 0: a NaN or infinity; every update that reads this does nothing
};
static_assert(sizeof(StepScalars) == 16);

// Joins the block sums in double, in chunks of 1,024: 32 lanes (lane l sums l, l + 32, ... of its
// chunk in order), lanes 16 -> 8 -> 4 -> 2 -> 1 by adding the upper half to the lower, then the
// chunks in order. One long chain would keep a device waiting for its own additions: 7 million
// block sums of a 7B model. PyTorch's clip_grad_norm_ rule for the factor.
struct NormJoinArgs {
    TensorView blockSums;  // (blocks of all groups), F32
    TensorView chunkSums;  // (ceil(blocks / 1024)), F64: scratch
    TensorView scalars;    // (16), U8: one StepScalars
    double clipNorm = 0.0; // 0 does not clip
};

// One AdamW update of a range. The written order of operations is that of
// core/device/adamw.h, and every device follows it to the bit.
struct AdamwArgs {
    TensorView high;    // (n), U16: upper half of the F32 master, the BF16 weight
    TensorView low;     // (n), I16: the rest (see core/device/adamw.h)
    TensorView m;       // (n), F32
    TensorView v;       // (n), F32
    TensorView grad;    // (n), BF16 or F32
    TensorView scalars; // (16), U8: StepScalars, read when the op runs
    AdamwFactors factors;
    bool decayed = true; // false: factors.decay is not applied (norms, biases)
};

// One AdamW update of a range in the compact state, 5.25 bytes an element. The codec and the
// written order of operations are those of core/device/compact_state.h, and every device follows
// them to the bit. A range begins at a multiple of 32 of its parameter group, and 32 elements have
// one pair of scales.
struct AdamwCompactArgs {
    TensorView weight;    // (n), U16: BF16
    TensorView remainder; // (n), I8
    TensorView m;         // (n), I8
    TensorView v;         // (n), U8
    TensorView mScale;    // (ceil(n / 32)), F32
    TensorView vScale;    // (ceil(n / 32)), F32
    TensorView grad;      // (n), BF16 or F32
    TensorView scalars;   // (16), U8: StepScalars, read when the op runs
    AdamwFactors factors;
    bool decayed = true; // false: factors.decay is not applied (norms, biases)
};

// F32 value = join(high, low). Lossless; see core/device/adamw.h.
struct JoinArgs {
    TensorView high; // (n), U16
    TensorView low;  // (n), I16
    TensorView out;  // (n), F32
};

struct SplitArgs {
    TensorView value; // (n), F32
    TensorView high;  // (n), U16
    TensorView low;   // (n), I16
};

// BF16 <-> F32, nearest even.
struct CastArgs {
    TensorView from; // (n)
    TensorView to;   // (n)
};

struct FillArgs {
    TensorView out; // any shape, A
    float value = 0.0F;
};

// energy[c] = sum over r of grad[r, c]^2, or of |grad[r, c]|
struct ColumnEnergyArgs {
    TensorView grad;       // (rows, cols), A
    TensorView energy;     // (cols), F32; overwritten
    bool absolute = false; // the sum of |grad| instead of the squares
};

// out[r, k] = x[r, columns[k]]
struct GatherColumnsArgs {
    TensorView x;       // (rows, cols), A
    TensorView columns; // (k), I32, distinct, in any order; k may be 0
    TensorView out;     // (rows, k), A
};

// out[r, columns[k]] = x[r, k]; other columns are left alone.
struct ScatterColumnsArgs {
    TensorView x;       // (rows, k), A
    TensorView columns; // (k), I32, distinct, in any order; k may be 0
    TensorView out;     // (rows, cols), A
};

class Ops
{
public:
    virtual ~Ops() = default;

    virtual Status embed(const EmbedArgs& args, Stream& stream) = 0;
    virtual Status embedBackward(const EmbedBackwardArgs& args, Stream& stream) = 0;
    virtual Status rmsNorm(const RmsNormArgs& args, Stream& stream) = 0;
    virtual Status rmsNormBackward(const RmsNormBackwardArgs& args, Stream& stream) = 0;
    virtual Status linear(const LinearArgs& args, Stream& stream) = 0;
    virtual Status linearBackwardInput(const LinearBackwardInputArgs& args, Stream& stream) = 0;
    virtual Status linearBackwardWeight(const LinearBackwardWeightArgs& args, Stream& stream) = 0;
    virtual Status windowProduct(const WindowProductArgs& args, Stream& stream) = 0;
    virtual Status adapterNorms(const AdapterNormsArgs& args, Stream& stream) = 0;
    virtual Status scaleColumns(const ScaleColumnsArgs& args, Stream& stream) = 0;
    virtual Status columnDots(const ColumnDotsArgs& args, Stream& stream) = 0;
    virtual Status biasGradient(const BiasGradientArgs& args, Stream& stream) = 0;
    virtual Status quantize(const QuantizeArgs& args, Stream& stream) = 0;
    virtual Status encodeInputs(const EncodeInputsArgs& args, Stream& stream) = 0;
    virtual Status decodeInputs(const DecodeInputsArgs& args, Stream& stream) = 0;
    virtual Status dequantizeNf4(const DequantizeNf4Args& args, Stream& stream) = 0;
    virtual Status codeProduct(const CodeProductArgs& args, Stream& stream) = 0;
    virtual Status rope(const RopeArgs& args, Stream& stream) = 0;
    virtual Status headNormRope(const HeadNormRopeArgs& args, Stream& stream) = 0;
    virtual Status headNormRopeBackward(const HeadNormRopeBackwardArgs& args, Stream& stream) = 0;
    virtual Status attention(const AttentionArgs& args, Stream& stream) = 0;
    virtual Status attentionBackward(const AttentionBackwardArgs& args, Stream& stream) = 0;
    virtual Status causalConv(const CausalConvArgs& args, Stream& stream) = 0;
    virtual Status causalConvBackward(const CausalConvBackwardArgs& args, Stream& stream) = 0;
    virtual Status gatedDelta(const GatedDeltaArgs& args, Stream& stream) = 0;
    virtual Status gatedDeltaBackward(const GatedDeltaBackwardArgs& args, Stream& stream) = 0;
    virtual Status gatedNorm(const GatedNormArgs& args, Stream& stream) = 0;
    virtual Status gatedNormBackward(const GatedNormBackwardArgs& args, Stream& stream) = 0;
    virtual Status splitQueries(const SplitQueriesArgs& args, Stream& stream) = 0;
    virtual Status gateHeads(const GateHeadsArgs& args, Stream& stream) = 0;
    virtual Status gateHeadsBackward(const GateHeadsBackwardArgs& args, Stream& stream) = 0;
    virtual Status swiglu(const SwigluArgs& args, Stream& stream) = 0;
    virtual Status swigluBackward(const SwigluBackwardArgs& args, Stream& stream) = 0;
    virtual Status softcap(const SoftcapArgs& args, Stream& stream) = 0;
    virtual Status crossEntropy(const CrossEntropyArgs& args, Stream& stream) = 0;
    virtual Status softmaxPart(const SoftmaxPartArgs& args, Stream& stream) = 0;
    virtual Status joinSoftmax(const JoinSoftmaxArgs& args, Stream& stream) = 0;
    virtual Status softmaxGradient(const SoftmaxGradientArgs& args, Stream& stream) = 0;
    virtual Status sum(const SumArgs& args, Stream& stream) = 0;
    virtual Status add(const AddArgs& args, Stream& stream) = 0;
    virtual Status scale(const ScaleArgs& args, Stream& stream) = 0;
    virtual Status dropout(const DropoutArgs& args, Stream& stream) = 0;
    virtual Status accumulate(const AccumulateArgs& args, Stream& stream) = 0;
    virtual Status finishGradient(const FinishGradientArgs& args, Stream& stream) = 0;
    virtual Status normBlocks(const NormBlocksArgs& args, Stream& stream) = 0;
    virtual Status normJoin(const NormJoinArgs& args, Stream& stream) = 0;
    virtual Status adamw(const AdamwArgs& args, Stream& stream) = 0;
    virtual Status adamwCompact(const AdamwCompactArgs& args, Stream& stream) = 0;
    virtual Status rowSquares(const RowSquaresArgs& args, Stream& stream) = 0;
    virtual Status columnSquares(const ColumnSquaresArgs& args, Stream& stream) = 0;
    virtual Status averageSquares(const AverageSquaresArgs& args, Stream& stream) = 0;
    virtual Status lightStepSize(const StepSizeArgs& args, Stream& stream) = 0;
    virtual Status projectionSigns(const ProjectionSignsArgs& args, Stream& stream) = 0;
    virtual Status projectGradient(const ProjectGradientArgs& args, Stream& stream) = 0;
    virtual Status projectedStep(const ProjectedStepArgs& args, Stream& stream) = 0;
    virtual Status selectRows(const SelectRowsArgs& args, Stream& stream) = 0;
    virtual Status rowAdamw(const RowAdamwArgs& args, Stream& stream) = 0;
    virtual Status lightUpdate(const LightUpdateArgs& args, Stream& stream) = 0;
    virtual Status join(const JoinArgs& args, Stream& stream) = 0;
    virtual Status split(const SplitArgs& args, Stream& stream) = 0;
    virtual Status cast(const CastArgs& args, Stream& stream) = 0;
    virtual Status fill(const FillArgs& args, Stream& stream) = 0;
    virtual Status columnEnergy(const ColumnEnergyArgs& args, Stream& stream) = 0;
    virtual Status gatherColumns(const GatherColumnsArgs& args, Stream& stream) = 0;
    virtual Status scatterColumns(const ScatterColumnsArgs& args, Stream& stream) = 0;
    virtual Status copyColumns(const CopyColumnsArgs& args, Stream& stream) = 0;
};

} // namespace mr
