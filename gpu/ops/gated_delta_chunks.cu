// The gated delta rule, backward: gradients of q, k and gates, a block for each chunk and key head.
//
// With S the state before the chunk, G the gradient of the state behind it, D[s][t] the product of
// decays after row t up to row s, and m = -beta e:
//     V[s][t] = D[s][t] (gradOut[s] d[t]) for s >= t,   W[s][t] = D[s][t] (m[s] d[t]) for s > t
//     gradient of q = start (gradOut S^T) + V K
//     gradient of k = start (m S^T) + rest (d G^T) + V^T Q + (W + W^T) K
// A decay is passed by all terms that it is a factor of: pairs (s, t) on both sides of its row,
// those of S in rows from it on, those of G in rows before it, and <G, S>. Value heads of a key
// head are summed in order.

#include "gpu/ops/delta_gate_gradients.cuh"

namespace mr::gpu {
namespace {

// Factors of rows, which the value heads share.
template <typename T>
__device__ void loadFactors(const Chunk<T>& chunk)
{
    const auto t = static_cast<int>(threadIdx.x);
    if (t >= chunk.count)
        return;
    const DeltaPairs& pairs = chunk.a.pairs;
    const std::int64_t at = pairs.rowAt(chunk.first + t, chunk.keyHead());
    chunk.s.queryFactor[t] = pairs.queryFactor[at] * queryScale(chunk.a.in.shape);
    chunk.s.keyFactor[t] = pairs.keyFactor[at];
}

// Numbers of the head by row, then D, a column a thread.
template <typename T>
__device__ void loadHead(const Chunk<T>& chunk)
{
    const auto t = static_cast<int>(threadIdx.x);
    if (t < kDeltaRows) {
        chunk.s.start[t] = 0.0F;
        chunk.s.rest[t] = 0.0F;
    }
    if (t < chunk.count) {
        const std::int64_t at = chunk.a.pairs.rowAt(chunk.first + t, chunk.head);
        chunk.s.decay[t] = exactExp(deltaGate(chunk.a.in, chunk.first + t, chunk.head).g);
        chunk.s.beta[t] = chunk.a.pairs.beta[at];
        chunk.s.start[t] = chunk.a.pairs.start[at];
        chunk.s.rest[t] = chunk.a.pairs.rest[at];
        chunk.s.terms[t] = 0.0F;
        chunk.s.ends[t] = 0.0F;
    }
    __syncthreads();
    if (t >= chunk.count)
        return;
    float ratio = 1.0F;
    chunk.s.scores[t * kMatrixRow + t] = ratio;
    for (int s = 1; s < chunk.count; ++s) // all lanes are in one row
        if (s > t) {
            ratio = ratio * chunk.s.decay[s];
            chunk.s.scores[s * kMatrixRow + t] = ratio;
        }
}

// V, W and `pairs`, of gradOut d^T in the place of W and m d^T.
template <typename T>
__device__ void storeWeights(const Chunk<T>& chunk, const ChunkSums& moves)
{
    const SumPlace place;
#pragma unroll
    for (int r = 0; r < kSumRows; ++r) {
        const int s = place.row + r;
        const bool isRow = s < chunk.count;
        const std::int64_t row = chunk.a.pairs.pairsAt(chunk.first + s, chunk.head);
#pragma unroll
        for (int c = 0; c < kSumColumns; ++c) {
            const int t = place.column + c * kSumLanes;
            const int at = s * kMatrixRow + t;
            const float ratio = isRow && t <= s ? chunk.s.scores[at] : 0.0F;
            const float score = chunk.s.overlaps[at];
            chunk.s.scores[at] = ratio * score;
            chunk.s.overlaps[at] = t < s ? ratio * moves[r][c] : 0.0F;
            if (isRow && t < s)
                chunk.s.pairs[at] = __fmaf_rn(score, chunk.a.pairs.scores[row + t],
                    moves[r][c] * chunk.a.pairs.lower[row + t]);
        }
    }
}

// `pairs` are the products of V and W, s > t, with the dot products that D is a factor of there.
template <typename T>
__device__ void makeWeights(const Chunk<T>& chunk)
{
    const auto delta = [&](int t, int c) { return chunk.delta(t, c); };
    const bool isActive = SumPlace().warpRow < chunk.count;
    ChunkSums sums;
    clearSums(sums);
    addProduct(
        sums, chunk, [&](int t, int c) { return chunk.gradOut(t, c); }, chunk.count, delta);
    if (isActive)
        forSums(
            sums, [&](float& sum, int s, int t) { chunk.s.overlaps[s * kMatrixRow + t] = sum; });
    clearSums(sums);
    addProduct(
        sums, chunk, [&](int t, int c) { return chunk.move(t, c); }, chunk.count, delta);
    if (isActive)
        storeWeights(chunk, sums);
}

// Row t of sums times factors[t].
__device__ void scaleRows(ChunkSums& sums, const float* factors)
{
    forSums(sums, [&](float& sum, int t, int) { sum = factors[t] * sum; });
}

// terms[t] += the dot product of row t of sums with at(t, i), elements of a piece. A warp with
// rows.
template <typename T, typename At>
__device__ void addDots(float* terms, ChunkSums& sums, const Chunk<T>& chunk, int piece, At at)
{
    const SumPlace place;
#pragma unroll
    for (int r = 0; r < kSumRows; ++r) {
        const int t = place.row + r;
        float dot = 0.0F;
#pragma unroll
        for (int c = 0; c < kSumColumns; ++c) {
            const int i = piece + place.column + c * kSumLanes;
            if (t < chunk.count && i < chunk.a.in.shape.keyDim)
                dot = __fmaf_rn(at(t, i), sums[r][c], dot);
        }
        for (int lane = kSumLanes / 2; lane > 0; lane /= 2)
            dot = dot + __shfl_xor_sync(kAllLanes, dot, lane);
        if (place.column == 0 && t < chunk.count)
            terms[t] = terms[t] + dot;
    }
}

// To gradQuery or gradKey; the first head's replace what is there.
template <typename T>
__device__ void storeSums(
    const ChunkSums& sums, const Chunk<T>& chunk, int piece, float* to, bool isFirstHead)
{
    const DeltaShape& shape = chunk.a.in.shape;
    const SumPlace place;
    const std::int64_t columns = std::int64_t{shape.keyHeads} * shape.keyDim;
    float* row = to + (chunk.first + place.row) * columns +
                 std::int64_t{chunk.keyHead()} * shape.keyDim + piece + place.column;
#pragma unroll
    for (int r = 0; r < kSumRows; ++r, row += columns)
#pragma unroll
        for (int c = 0; c < kSumColumns; ++c) {
            const bool isWanted =
                place.row + r < chunk.count && piece + place.column + c * kSumLanes < shape.keyDim;
            float* at = row + c * kSumLanes;
            if (isWanted)
                *at = isFirstHead ? sums[r][c] : *at + sums[r][c];
        }
}

// A product with a state: its decays by row, where dot products with q or k and where sums are
// added.
struct StateProduct {
    const float* state; // (keyDim, valueDim)
    const float* decays;
    float* dots;
    float* to;
};

// Adds decays (left state^T), elements [piece, piece + kDeltaRows). at(t, i) is what the dot
// products are with.
template <typename T, typename Left, typename At>
__device__ void addStateTerms(
    const Chunk<T>& chunk, int piece, const StateProduct& product, Left left, At at)
{
    const DeltaShape& shape = chunk.a.in.shape;
    const float* state = product.state + std::int64_t{piece} * shape.valueDim;
    ChunkSums sums;
    clearSums(sums);
    addProduct(sums, chunk, left, shape.keyDim - piece,
        [&](int i, int c) { return state[std::int64_t{i} * shape.valueDim + c]; });
    if (SumPlace().warpRow >= chunk.count)
        return;
    scaleRows(sums, product.decays);
    addDots(product.dots, sums, chunk, piece, at);
    storeSums(sums, chunk, piece, product.to, false);
}

// Elements [piece, piece + kDeltaRows) of the gradient of normed q.
template <typename T>
__device__ void addQueryGradients(const Chunk<T>& chunk, int piece, bool isFirstHead)
{
    float* const to = chunk.a.scratch.gradQuery;
    ChunkSums sums;
    clearSums(sums);
    stageKeys(chunk, piece, [&](int t, int i) { return chunk.key(t, i); });
    addMatrixRows(sums, chunk, chunk.s.scores);
    storeSums(sums, chunk, piece, to, isFirstHead);
    __syncthreads(); // keys were read
    if (chunk.hasBefore)
        addStateTerms(
            chunk, piece, {chunk.stateBefore(), chunk.s.start, chunk.s.terms, to},
            [&](int t, int c) { return chunk.gradOut(t, c); },
            [&](int t, int i) { return chunk.query(t, i); });
}

// Elements [piece, piece + kDeltaRows) of the gradient of normed k.
template <typename T>
__device__ void addKeyGradients(const Chunk<T>& chunk, int piece, bool isFirstHead)
{
    float* const to = chunk.a.scratch.gradKey;
    const auto key = [&](int t, int i) { return chunk.key(t, i); };
    ChunkSums sums;
    clearSums(sums);
    stageKeys(chunk, piece, [&](int t, int i) { return chunk.query(t, i); });
    addMatrixColumns(sums, chunk, chunk.s.scores);
    stageKeys(chunk, piece, key);
    addMatrixRows(sums, chunk, chunk.s.overlaps);
    addMatrixColumns(sums, chunk, chunk.s.overlaps);
    storeSums(sums, chunk, piece, to, isFirstHead);
    __syncthreads(); // keys were read
    if (chunk.hasBefore)
        addStateTerms(
            chunk, piece, {chunk.stateBefore(), chunk.s.start, chunk.s.terms, to},
            [&](int t, int c) { return chunk.move(t, c); }, key);
    if (chunk.hasAfter)
        addStateTerms(
            chunk, piece, {chunk.gradientAfter(), chunk.s.rest, chunk.s.ends, to},
            [&](int t, int c) { return chunk.delta(t, c); }, key);
}

template <typename T>
__device__ void chunkGradients(Chunk<T>& chunk)
{
    loadFactors(chunk);
    for (int j = 0; j < chunk.a.in.group(); ++j) {
        chunk.head = chunk.keyHead() * chunk.a.in.group() + j;
        loadHead(chunk);
        __syncthreads();
        makeWeights(chunk);
        sumPairs(chunk);
        __syncthreads(); // pairs were read
        for (int piece = 0; piece < chunk.a.in.shape.keyDim; piece += kDeltaRows) {
            addQueryGradients(chunk, piece, j == 0);
            addKeyGradients(chunk, piece, j == 0);
        }
        storeBetaGradients(chunk);
        storeDecayGradients(chunk, wholeTerm(chunk));
        __syncthreads(); // the head's numbers were read
    }
    storeKeyGradients(chunk);
    __syncthreads(); // factors were read
}

// Grid (blocks of kRecurrentRows rows, keyHeads): the chunks that start within.
template <typename T>
__global__ void __launch_bounds__(kDeltaThreads, 2) deltaChunkKernel(DeltaGradients<T> a)
{
    ChunkShared& shared = *dynamicShared<ChunkShared>();
    for (int i = 0; i < kDeltaRows; ++i) {
        const std::int64_t t = std::int64_t{blockIdx.x} * kRecurrentRows + i;
        if (t >= a.in.rows)
            return;
        const std::int64_t document = a.in.documentFrom[t];
        if ((t - document) % kRecurrentRows != 0)
            continue;
        const std::int64_t end = documentEnd(a.in, document);
        const auto count = static_cast<int>(min(end - t, kRecurrentRows));
        Chunk<T> chunk{a, shared, t, count, t > document, t + count < end, 0};
        chunkGradients(chunk);
    }
}

} // namespace

template <typename T>
Status launchDeltaChunks(const DeltaGradients<T>& a, cudaStream_t stream)
{
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(recurrentBlocks(a.in.rows)),
        static_cast<unsigned>(a.in.shape.keyHeads));
    shape.block = dim3(kDeltaThreads);
    shape.sharedBytes = sizeof(ChunkShared);
    return launchKernel("gatedDeltaBackward", listed<deltaChunkKernel<T>>(), shape, stream, a);
}

template Status launchDeltaChunks<Bf16>(const DeltaGradients<Bf16>& a, cudaStream_t stream);
template Status launchDeltaChunks<float>(const DeltaGradients<float>& a, cudaStream_t stream);

} // namespace mr::gpu
