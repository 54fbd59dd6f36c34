// The gated delta rule, backward, in three steps.
//
// 1. From first rows to last ones (gated_delta.cu): the state before each chunk of kRecurrentRows
//    rows, and c of each row.
// 2. From last rows to first ones, which needs no state of step 1: the gradient G of the state
//    after each chunk, and e = G^T k of each row. One pass over G a row, as in step 1.
// 3. All other gradients, a block for each chunk and key head: they are sums over pairs of rows of
//    the chunk, and over the states before and behind it. D[s][t] is the product of decays after
//    row t up to row s; no number is divided by a decay. Value heads of a key head are summed in
//    order.
//
// Expected: steps 1 and 2 take about a microsecond a row, step 3 is limited by its products without
// tensor cores.

#include "gpu/ops/delta_rows.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

constexpr auto kC = static_cast<int>(kRecurrentRows);
constexpr int kPairRow = kC + 1; // columns of one row apart lie in other banks
constexpr int kSumThreads = 256;

// Parts of GatedDeltaBackwardArgs::scratch.
struct DeltaScratch {
    float* gradBorders; // as borders
    float* changes;     // (rows, valueHeads valueDim): c
    float* errors;      // (rows, valueHeads valueDim): e
    float* gradQuery;   // (rows, keyHeads keyDim)
    float* gradKey;

    explicit DeltaScratch(const GatedDeltaBackwardArgs& args)
        : gradBorders(args.scratch.as<float>())
        , changes(gradBorders + args.borders.count())
        , errors(changes + args.gradOut.count())
        , gradQuery(errors + args.gradOut.count())
        , gradKey(gradQuery + args.mixed.dims[0] * args.shape.keyColumns())
    {
    }
};

// gradOut (rows, valueHeads valueDim), gradMixed (rows, columns), gradGates (rows, gateColumns) at
// firstGate, planes (kDeltaPlanes, rows, valueHeads).
template <typename T>
struct DeltaGradients {
    DeltaTensors<T> in;
    const T* gradOut;
    T* gradMixed;
    T* gradGates;
    const float* borders;
    float* planes;
    DeltaScratch scratch;

    __device__ std::int64_t valueColumns() const
    {
        return std::int64_t{in.shape.valueHeads} * in.shape.valueDim;
    }
    __device__ std::int64_t valueAt(std::int64_t row, int head) const
    {
        return row * valueColumns() + std::int64_t{head} * in.shape.valueDim;
    }
};

// G of one column: takes the terms of `row` and, with `hasNext`, those of the row before it.
// Returns the partial sum of that row's e. `border` not null: G between the two is stored there.
struct GradientMove {
    int row, next;
    bool hasNext;
    float move; // m = -beta e
    float* border;
    int borderRow; // elements
};

__device__ float moveGradient(
    const DeltaSlice& slice, const DeltaStage& stage, const GradientMove& m, int dim)
{
    const float* key = stage.key + m.row * dim;
    const float* nextKey = stage.key + m.next * dim;
    const float* nextQuery = stage.query + m.next * dim;
    const float decay = stage.decay[m.row];
    const float grad = m.hasNext ? stage.value[m.next * kDeltaSlice + slice.lane] : 0.0F;
    float sum = 0.0F;
    for (int i = slice.warp; i < dim; i += kDeltaWarps) {
        float& at = stage.state[i * kDeltaSlice + slice.lane];
        float g = decay * __fmaf_rn(key[i], m.move, at);
        if (m.border)
            m.border[std::int64_t{i} * m.borderRow] = g;
        if (m.hasNext)
            g = __fmaf_rn(nextQuery[i], grad, g);
        at = g;
        sum = __fmaf_rn(nextKey[i], g, sum);
    }
    return sum;
}

// Adds q gradOut^T of a staged row, and returns the partial sum of its e.
__device__ float startGradient(const DeltaSlice& slice, const DeltaStage& stage, int row, int dim)
{
    const float grad = stage.value[row * kDeltaSlice + slice.lane];
    float sum = 0.0F;
    for (int i = slice.warp; i < dim; i += kDeltaWarps) {
        float& at = stage.state[i * kDeltaSlice + slice.lane];
        at = __fmaf_rn(stage.query[row * dim + i], grad, at);
        sum = __fmaf_rn(stage.key[row * dim + i], at, sum);
    }
    return sum;
}

// Staged rows of the document that starts at `begin`, from the last to the first.
template <typename T>
__device__ void gradientRows(const DeltaGradients<T>& a, const DeltaSlice& slice, DeltaStage& stage,
    std::int64_t begin, std::int64_t first, int count)
{
    const DeltaShape& shape = a.in.shape;
    const bool isColumn = slice.column < shape.valueDim;
    putPartial(stage, 0, 0, slice, startGradient(slice, stage, count - 1, shape.keyDim));
    __syncthreads();
    for (int r = count - 1; r >= 0; --r) {
        const std::int64_t row = first + r;
        const int turn = (count - 1 - r) % 2;
        const float error = joinWarps(stage, turn, 0, slice.lane);
        const float scaled = stage.beta[r] * error;
        const bool isBorder = isColumn && row > begin && (row - begin) % kRecurrentRows == 0;
        float* border = a.scratch.gradBorders + a.in.borderOf(row, slice.head) + slice.column;
        const float sum = moveGradient(slice, stage,
            {r, max(r - 1, 0), r > 0, -scaled, isBorder ? border : nullptr, shape.valueDim},
            shape.keyDim);
        putPartial(stage, 1 - turn, 0, slice, sum);
        __syncthreads();
        if (slice.warp != 0 || !isColumn)
            continue;
        a.scratch.errors[a.valueAt(row, slice.head) + slice.column] = error;
        a.gradMixed[row * a.in.mixedColumns() + a.in.valueColumn(slice.head) + slice.column] =
            fromFloat<T>(scaled);
    }
}

template <typename T>
__device__ void gradientDocument(
    const DeltaGradients<T>& a, const DeltaSlice& slice, DeltaStage& stage, std::int64_t begin)
{
    const std::int64_t end = documentEnd(a.in, begin);
    loadState(a.in.shape, slice, stage, nullptr);
    for (std::int64_t last = end; last > begin;) {
        const std::int64_t first = begin + (last - 1 - begin) / kDeltaStage * kDeltaStage;
        stageRows(a.in, slice, stage, first, static_cast<int>(last - first),
            a.gradOut + std::int64_t{slice.head} * a.in.shape.valueDim, a.valueColumns());
        __syncthreads();
        gradientRows(a, slice, stage, begin, first, static_cast<int>(last - first));
        last = first;
    }
}

// deltaSlices().
template <typename T>
__global__ void __launch_bounds__(kDeltaThreads) deltaGradientKernel(DeltaGradients<T> a)
{
    DeltaStage stage(dynamicShared<float>(), a.in.shape.keyDim);
    const DeltaSlice slice(a.in.shape, static_cast<int>(blockIdx.y));
    const std::int64_t first = std::int64_t{blockIdx.x} * kRecurrentRows;
    const std::int64_t end = min(a.in.rows, first + kRecurrentRows);
    for (std::int64_t t = first; t < end; ++t)
        if (t == 0 || a.in.documentFrom[t] == t)
            gradientDocument(a, slice, stage, t);
}

// Shared memory of step 3. Row s, column t of a pair is at [s * kPairRow + t].
struct ChunkShared {
    float dots[kC * kPairRow];    // s >= t: q[s] k[t]; s < t: k[t] k[s]
    float weights[kC * kPairRow]; // s >= t: D gradOut[s] d[t]; s < t: D m[t] d[s], D of (t, s)
    float pairs[kC * kPairRow];   // D; then weights times dots, of both, for s > t
    float queryFactor[kC], keyFactor[kC], decay[kC], beta[kC];
    float start[kC]; // decay from before the chunk to the row
    float rest[kC];  // ... from the row to the chunk's end
    float terms[kC], ends[kC], warps[kDeltaWarps];
};

// One chunk and key head; a value head at a time.
template <typename T>
struct Chunk {
    const DeltaGradients<T>& a;
    ChunkShared& s;
    std::int64_t first; // row
    int count;
    bool hasBefore, hasAfter;
    int keyHead, head;

    __device__ float query(int t, int i) const
    {
        const T* row = a.in.mixed + (first + t) * a.in.mixedColumns();
        return toFloat(row[a.in.queryColumn(keyHead) + i]) * s.queryFactor[t] *
               queryScale(a.in.shape);
    }
    __device__ float key(int t, int i) const
    {
        const T* row = a.in.mixed + (first + t) * a.in.mixedColumns();
        return toFloat(row[a.in.keyColumn(keyHead) + i]) * s.keyFactor[t];
    }
    __device__ float delta(int t, int c) const
    {
        return s.beta[t] * a.scratch.changes[a.valueAt(first + t, head) + c];
    }
    __device__ float move(int t, int c) const
    {
        return -(s.beta[t] * a.scratch.errors[a.valueAt(first + t, head) + c]);
    }
    __device__ float gradOut(int t, int c) const
    {
        return toFloat(a.gradOut[a.valueAt(first + t, head) + c]);
    }
    __device__ const float* stateBefore() const { return a.borders + a.in.borderOf(first, head); }
    __device__ const float* gradientAfter() const
    {
        return a.scratch.gradBorders + a.in.borderOf(first + count, head);
    }
};

template <typename T>
__device__ void loadFactors(const Chunk<T>& chunk)
{
    const int dim = chunk.a.in.shape.keyDim;
    const auto thread = static_cast<int>(threadIdx.x);
    for (int t = thread / kWarp; t < chunk.count; t += kDeltaWarps) {
        const T* row = chunk.a.in.mixed + (chunk.first + t) * chunk.a.in.mixedColumns();
        const float query = normFactor(row + chunk.a.in.queryColumn(chunk.keyHead), dim);
        const float key = normFactor(row + chunk.a.in.keyColumn(chunk.keyHead), dim);
        if (thread % kWarp == 0) {
            chunk.s.queryFactor[t] = query;
            chunk.s.keyFactor[t] = key;
        }
    }
}

// fn(s, t) of all pairs of the chunk's rows.
template <typename T, typename Fn>
__device__ void forPairs(const Chunk<T>& chunk, Fn fn)
{
    for (int pair = static_cast<int>(threadIdx.x); pair < chunk.count * kC; pair += kDeltaThreads)
        if (pair % kC < chunk.count)
            fn(pair / kC, pair % kC);
}

template <typename T>
__device__ void makeDots(const Chunk<T>& chunk)
{
    forPairs(chunk, [&](int s, int t) {
        float sum = 0.0F;
        for (int i = 0; i < chunk.a.in.shape.keyDim; ++i)
            sum = __fmaf_rn(s >= t ? chunk.query(s, i) : chunk.key(s, i), chunk.key(t, i), sum);
        chunk.s.dots[s * kPairRow + t] = sum;
    });
}

// Gates of the head, then D, a column a thread.
template <typename T>
__device__ void makeRatios(const Chunk<T>& chunk)
{
    const auto t = static_cast<int>(threadIdx.x);
    if (t < chunk.count) {
        const DeltaGate gate = deltaGate(chunk.a.in, chunk.first + t, chunk.head);
        chunk.s.decay[t] = exactExp(gate.g);
        chunk.s.beta[t] = gate.beta;
        chunk.s.terms[t] = 0.0F;
        chunk.s.ends[t] = 0.0F;
    }
    __syncthreads();
    if (t >= chunk.count)
        return;
    float ratio = 1.0F;
    chunk.s.pairs[t * kPairRow + t] = ratio;
    for (int s = t + 1; s < chunk.count; ++s) {
        ratio = ratio * chunk.s.decay[s];
        chunk.s.pairs[s * kPairRow + t] = ratio;
    }
    chunk.s.rest[t] = ratio;
    float start = 1.0F;
    for (int s = 0; s <= t; ++s)
        start = start * chunk.s.decay[s];
    chunk.s.start[t] = start;
}

template <typename T>
__device__ void makeWeights(const Chunk<T>& chunk)
{
    forPairs(chunk, [&](int s, int t) {
        float sum = 0.0F;
        for (int c = 0; c < chunk.a.in.shape.valueDim; ++c)
            sum = s >= t ? __fmaf_rn(chunk.gradOut(s, c), chunk.delta(t, c), sum)
                         : __fmaf_rn(chunk.move(t, c), chunk.delta(s, c), sum);
        const int ratio = s >= t ? s * kPairRow + t : t * kPairRow + s;
        chunk.s.weights[s * kPairRow + t] = chunk.s.pairs[ratio] * sum;
    });
    __syncthreads();
    forPairs(chunk, [&](int s, int t) {
        const int one = s * kPairRow + t;
        const int other = t * kPairRow + s;
        if (s > t)
            chunk.s.pairs[one] = __fmaf_rn(chunk.s.weights[one], chunk.s.dots[one],
                chunk.s.weights[other] * chunk.s.dots[other]);
    });
}

// The state's terms of the gradients of q and k at row t, element i.
struct StateTerms {
    float query = 0.0F, key = 0.0F, end = 0.0F;
};

template <typename T>
__device__ StateTerms stateTerms(const Chunk<T>& chunk, int t, int i)
{
    StateTerms sums;
    const int dim = chunk.a.in.shape.valueDim;
    if (chunk.hasBefore) {
        const float* state = chunk.stateBefore() + std::int64_t{i} * dim;
        for (int c = 0; c < dim; ++c) {
            sums.query = __fmaf_rn(chunk.gradOut(t, c), state[c], sums.query);
            sums.key = __fmaf_rn(chunk.move(t, c), state[c], sums.key);
        }
    }
    if (chunk.hasAfter) {
        const float* gradient = chunk.gradientAfter() + std::int64_t{i} * dim;
        for (int c = 0; c < dim; ++c)
            sums.end = __fmaf_rn(chunk.delta(t, c), gradient[c], sums.end);
    }
    return {chunk.s.start[t] * sums.query, chunk.s.start[t] * sums.key, chunk.s.rest[t] * sums.end};
}

// Terms of the gradients of q and k at row t, element i, from rows of the chunk.
template <typename T>
__device__ StateTerms pairTerms(const Chunk<T>& chunk, int t, int i)
{
    StateTerms sums;
    const float* weights = chunk.s.weights;
    for (int s = 0; s < chunk.count; ++s) {
        const float key = chunk.key(s, i);
        if (s <= t)
            sums.query = __fmaf_rn(weights[t * kPairRow + s], key, sums.query);
        if (s >= t)
            sums.key = __fmaf_rn(weights[s * kPairRow + t], chunk.query(s, i), sums.key);
        if (s != t) // D m d of (s, t) or (t, s): the later row first
            sums.key = __fmaf_rn(weights[min(s, t) * kPairRow + max(s, t)], key, sums.key);
    }
    return sums;
}

// Adds a head's terms of the gradients of normed q and k; a warp a row.
template <typename T>
__device__ void addKeyGradients(const Chunk<T>& chunk, bool isFirstHead)
{
    const int dim = chunk.a.in.shape.keyDim;
    const auto thread = static_cast<int>(threadIdx.x);
    for (int t = thread / kWarp; t < chunk.count; t += kDeltaWarps) {
        const std::int64_t at =
            ((chunk.first + t) * chunk.a.in.shape.keyHeads + chunk.keyHead) * dim;
        float term = 0.0F;
        float end = 0.0F;
        for (int i = thread % kWarp; i < dim; i += kWarp) {
            const StateTerms pair = pairTerms(chunk, t, i);
            const StateTerms state = stateTerms(chunk, t, i);
            float& query = chunk.a.scratch.gradQuery[at + i];
            float& key = chunk.a.scratch.gradKey[at + i];
            query = (isFirstHead ? 0.0F : query) + (pair.query + state.query);
            key = (isFirstHead ? 0.0F : key) + ((pair.key + state.key) + state.end);
            term = __fmaf_rn(chunk.query(t, i), state.query, term);
            term = __fmaf_rn(chunk.key(t, i), state.key, term);
            end = __fmaf_rn(chunk.key(t, i), state.end, end);
        }
        term = warpSum(term);
        end = warpSum(end);
        if (thread % kWarp == 0) {
            chunk.s.terms[t] = term;
            chunk.s.ends[t] = end;
        }
    }
}

// <G, S> over the whole chunk, in every thread.
template <typename T>
__device__ float wholeTerm(const Chunk<T>& chunk)
{
    const auto thread = static_cast<int>(threadIdx.x);
    float sum = 0.0F;
    if (chunk.hasBefore && chunk.hasAfter)
        for (int at = thread; at < chunk.a.in.shape.keyDim * chunk.a.in.shape.valueDim;
             at += kDeltaThreads)
            sum = __fmaf_rn(chunk.gradientAfter()[at], chunk.stateBefore()[at], sum);
    return chunk.s.start[chunk.count - 1] * blockSum(sum, chunk.s.warps, thread, kDeltaThreads);
}

// Gradients of gates: of b a warp a row, of a and logDecay a thread a row.
template <typename T>
__device__ void storeGates(const Chunk<T>& chunk, float whole)
{
    const DeltaShape& shape = chunk.a.in.shape;
    const auto thread = static_cast<int>(threadIdx.x);
    for (int t = thread / kWarp; t < chunk.count; t += kDeltaWarps) {
        const std::int64_t at = chunk.a.valueAt(chunk.first + t, chunk.head);
        float sum = 0.0F;
        for (int c = thread % kWarp; c < shape.valueDim; c += kWarp)
            sum = __fmaf_rn(chunk.a.scratch.errors[at + c], chunk.a.scratch.changes[at + c], sum);
        sum = warpSum(sum);
        const float beta = chunk.s.beta[t];
        if (thread % kWarp == 0)
            chunk.a.gradGates[(chunk.first + t) * chunk.a.in.gateColumns + chunk.head] =
                fromFloat<T>(sum * (beta * (1.0F - beta)));
    }
    if (thread >= chunk.count)
        return;
    float grad = whole;
    for (int s = thread; s < chunk.count; ++s) {
        grad = grad + chunk.s.terms[s];
        for (int t = 0; t < thread; ++t)
            grad = grad + chunk.s.pairs[s * kPairRow + t];
    }
    for (int t = 0; t < thread; ++t)
        grad = grad + chunk.s.ends[t];
    const std::int64_t row = chunk.first + thread;
    const DeltaGate gate = deltaGate(chunk.a.in, row, chunk.head);
    const float gradTime = -(gate.rate * gate.slope) * grad;
    chunk.a.gradGates[row * chunk.a.in.gateColumns + shape.valueHeads + chunk.head] =
        fromFloat<T>(gradTime);
    float* planes = chunk.a.planes + row * shape.valueHeads + chunk.head;
    planes[0] = gate.g * grad;
    planes[chunk.a.in.rows * shape.valueHeads] = gradTime;
}

// Through the norm of one head: n = scale factor x. A warp.
template <typename T>
__device__ void storeNormGradient(
    const T* x, const float* grad, float factor, float scale, T* to, int dim)
{
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    float dot = 0.0F;
    for (int i = lane; i < dim; i += kWarp)
        dot = __fmaf_rn(toFloat(x[i]), scale * grad[i], dot);
    dot = warpSum(dot) * factor;
    for (int i = lane; i < dim; i += kWarp)
        to[i] = fromFloat<T>(factor * __fmaf_rn(-(toFloat(x[i]) * factor), dot, scale * grad[i]));
}

template <typename T>
__device__ void storeKeyGradients(const Chunk<T>& chunk)
{
    const DeltaTensors<T>& in = chunk.a.in;
    for (int t = static_cast<int>(threadIdx.x) / kWarp; t < chunk.count; t += kDeltaWarps) {
        const std::int64_t row = (chunk.first + t) * in.mixedColumns();
        const std::int64_t at =
            ((chunk.first + t) * in.shape.keyHeads + chunk.keyHead) * in.shape.keyDim;
        const std::int64_t query = row + in.queryColumn(chunk.keyHead);
        const std::int64_t key = row + in.keyColumn(chunk.keyHead);
        storeNormGradient(in.mixed + query, chunk.a.scratch.gradQuery + at, chunk.s.queryFactor[t],
            queryScale(in.shape), chunk.a.gradMixed + query, in.shape.keyDim);
        storeNormGradient(in.mixed + key, chunk.a.scratch.gradKey + at, chunk.s.keyFactor[t], 1.0F,
            chunk.a.gradMixed + key, in.shape.keyDim);
    }
}

template <typename T>
__device__ void chunkGradients(Chunk<T>& chunk)
{
    loadFactors(chunk);
    __syncthreads();
    makeDots(chunk);
    for (int j = 0; j < chunk.a.in.group(); ++j) {
        chunk.head = chunk.keyHead * chunk.a.in.group() + j;
        makeRatios(chunk);
        __syncthreads();
        makeWeights(chunk);
        addKeyGradients(chunk, j == 0);
        const float whole = wholeTerm(chunk);
        storeGates(chunk, whole);
        __syncthreads(); // the head's numbers were read
    }
    storeKeyGradients(chunk);
    __syncthreads(); // factors were read
}

// Grid (blocks of kRecurrentRows rows, keyHeads): the chunks that start within.
template <typename T>
__global__ void __launch_bounds__(kDeltaThreads) deltaChunkKernel(DeltaGradients<T> a)
{
    ChunkShared& shared = *dynamicShared<ChunkShared>();
    const std::int64_t begin = std::int64_t{blockIdx.x} * kRecurrentRows;
    const std::int64_t end = min(a.in.rows, begin + kRecurrentRows);
    for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t document = a.in.documentFrom[t];
        if ((t - document) % kRecurrentRows != 0)
            continue;
        const std::int64_t documentEndRow = documentEnd(a.in, document);
        const auto count = static_cast<int>(min(documentEndRow - t, kRecurrentRows));
        Chunk<T> chunk{a, shared, t, count, t > document, t + count < documentEndRow,
            static_cast<int>(blockIdx.y), 0};
        chunkGradients(chunk);
    }
}

// out[head] (+)= the column of `plane` (rows, heads): blocks of kRecurrentRows rows in order, then
// the blocks in order. A block a head.
template <typename Out>
__global__ void __launch_bounds__(kSumThreads)
    deltaSumKernel(const float* plane, Out* out, std::int64_t rows, bool accumulate)
{
    __shared__ float sums[kSumThreads];
    const std::int64_t heads = gridDim.x;
    const auto thread = static_cast<int>(threadIdx.x);
    float total = 0.0F;
    for (std::int64_t first = 0; first < rows; first += kSumThreads * kRecurrentRows) {
        const std::int64_t begin = first + thread * kRecurrentRows;
        const std::int64_t end = min(rows, begin + kRecurrentRows);
        float sum = 0.0F;
        for (std::int64_t row = begin; row < end; ++row)
            sum = sum + plane[row * heads + blockIdx.x];
        sums[thread] = sum;
        __syncthreads();
        for (int i = 0; thread == 0 && i < kSumThreads; ++i)
            total = total + sums[i];
        __syncthreads();
    }
    if (thread != 0)
        return;
    Out& to = out[blockIdx.x];
    to = fromFloat<Out>(accumulate ? toFloat(to) + total : total);
}

template <typename Out>
Status sumHeads(const float* plane, const TensorView& out, std::int64_t rows, bool accumulate,
    cudaStream_t stream)
{
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(out.dims[0]));
    shape.block = dim3(kSumThreads);
    return launchKernel("gatedDeltaBackward sums", listed<deltaSumKernel<Out>>(), shape, stream,
        plane, out.as<Out>(), rows, accumulate);
}

Status sumPlane(const float* plane, const TensorView& out, std::int64_t rows, bool accumulate,
    cudaStream_t stream)
{
    if (out.data == nullptr)
        return {};
    return out.dtype == DType::BF16 ? sumHeads<Bf16>(plane, out, rows, accumulate, stream)
                                    : sumHeads<float>(plane, out, rows, accumulate, stream);
}

template <typename T>
Status backward(const GatedDeltaBackwardArgs& args, cudaStream_t stream)
{
    const DeltaGradients<T> a{deltaTensors<T>(args), args.gradOut.as<const T>(),
        args.gradMixed.as<T>(), args.gradGates.as<T>() + args.firstGate,
        args.borders.as<const float>(), args.partial.as<float>(), DeltaScratch(args)};
    MR_TRY(launchDeltaBorders(args, a.scratch.changes, stream));
    MR_TRY(launchKernel("gatedDeltaBackward states", listed<deltaGradientKernel<T>>(),
        deltaSlices(args.shape, a.in.rows), stream, a));
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(recurrentBlocks(a.in.rows)),
        static_cast<unsigned>(args.shape.keyHeads));
    shape.block = dim3(kDeltaThreads);
    shape.sharedBytes = sizeof(ChunkShared);
    return launchKernel("gatedDeltaBackward", listed<deltaChunkKernel<T>>(), shape, stream, a);
}

} // namespace

Status launchGatedDeltaBackward(const GatedDeltaBackwardArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.mixed.dims[0];
    if (args.scratch.data == nullptr)
        return Status::error(
            ErrorKind::InvalidArgument, "gatedDeltaBackward: the CUDA device needs scratch");
    if (rows > 0)
        MR_TRY(args.mixed.dtype == DType::BF16 ? backward<Bf16>(args, stream)
                                               : backward<float>(args, stream));
    const auto* planes = args.partial.as<const float>();
    MR_TRY(sumPlane(planes, args.gradLogDecay, rows, args.accumulate, stream));
    return sumPlane(
        planes + rows * args.shape.valueHeads, args.gradTimeBias, rows, args.accumulate, stream);
}

} // namespace mr::gpu
