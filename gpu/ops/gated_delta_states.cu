// The gated delta rule, backward, from a document's last chunk to its first: the gradient G of the
// state after each chunk, e = G^T k of each row with the G behind it, and the gradient of v.
//
// It needs no state of the forward pass. With X, P and the decays of DeltaPairs, B = diag(beta):
//     b = rest (K G) + P^T gradOut,   e = b - X^T (B b),   m = -B e,   gradient of v = B e,
//     G = decay of the chunk G + (start Q)^T gradOut + (start K)^T m
// which is the rule row by row: e = b + L^T m, solved for e.

#include "gpu/ops/delta_gradients.cuh"
#include "gpu/ops/delta_products.cuh"

namespace mr::gpu {
namespace {

// rest (K G) of the thread's rows; leaves gradOut in work and P in the tile.
template <typename T>
__device__ void readGradient(
    DeltaSums& errors, const DeltaGradients<T>& a, const DeltaChunk<T>& chunk)
{
    stageValues(chunk, a.gradOut + std::int64_t{chunk.slice.head} * chunk.in.shape.valueDim,
        a.valueColumns());
    clearSums(errors);
    addKeyRows(errors, chunk, keysOf(chunk));
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            errors[r][c] = chunk.s.rest[chunk.slice.row + r] * errors[r][c];
    __syncwarp(); // the tile was read
    stagePairs(chunk, chunk.pairs.scores);
}

// e of the thread's rows, from b; work holds B b of all, the tile X.
template <typename T>
__device__ void solveErrors(DeltaSums& errors, const DeltaChunk<T>& chunk)
{
    DeltaSums sums;
    clearSums(sums);
    addPairColumns(sums, chunk);
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            errors[r][c] = errors[r][c] - sums[r][c];
}

// The warp's rows of e and of the gradient of v; leaves m in work.
template <typename T>
__device__ void storeErrors(
    DeltaSums& errors, const DeltaGradients<T>& a, const DeltaChunk<T>& chunk)
{
    const int head = chunk.slice.head;
    putRows(chunk, chunk.s.work, kDeltaSlice, errors);
    __syncwarp();
    storeValues(chunk, chunk.s.work, kDeltaSlice,
        a.scratch.errors + std::int64_t{head} * chunk.in.shape.valueDim, a.valueColumns());
    __syncwarp(); // work was read
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            errors[r][c] = -errors[r][c];
    putScaled(chunk, errors);
    __syncwarp();
    storeValues(chunk, chunk.s.work, kDeltaSlice, a.gradMixed + chunk.in.valueColumn(head),
        chunk.in.mixedColumns(), -1.0F);
}

// Rows of one chunk; `hasBorder`: the gradient of the state after it is stored.
template <typename T>
__device__ void gradientChunk(
    const DeltaGradients<T>& a, const DeltaChunk<T>& chunk, bool hasBorder)
{
    loadVectors(chunk);
    __syncthreads(); // G is whole
    const float decay = chunk.decay();
    if (hasBorder)
        storeState(chunk.in.shape, chunk.slice, chunk.s,
            a.scratch.gradBorders + a.in.borderOf(chunk.first + chunk.count, chunk.slice.head));
    DeltaSums errors;
    if (chunk.isActive())
        readGradient(errors, a, chunk);
    __syncthreads();
    if (chunk.isActive())
        addPairColumns(errors, chunk);
    updateState(chunk, queriesOf(chunk).times(chunk.s.start), decay);
    __syncthreads(); // work and tile were read
    if (chunk.isActive()) {
        putScaled(chunk, errors);
        stagePairs(chunk, chunk.pairs.inverse);
    }
    __syncthreads();
    if (chunk.isActive())
        solveErrors(errors, chunk);
    __syncthreads(); // B b was read
    if (chunk.isActive())
        storeErrors(errors, a, chunk);
    updateState(chunk, keysOf(chunk).times(chunk.s.start), 1.0F);
}

// The document that starts at `begin`.
template <typename T>
__device__ void gradientDocument(
    const DeltaGradients<T>& a, const DeltaSlice& slice, const DeltaShared& s, std::int64_t begin)
{
    const std::int64_t end = documentEnd(a.in, begin);
    loadState(a.in.shape, slice, s, nullptr);
    for (std::int64_t first = begin + (end - 1 - begin) / kRecurrentRows * kRecurrentRows;
         first >= begin; first -= kRecurrentRows) {
        const auto count = static_cast<int>(min(end - first, kRecurrentRows));
        const DeltaChunk<T> chunk{a.in, a.pairs, slice, s, first, count, first > begin};
        gradientChunk(a, chunk, first + count < end);
    }
    __syncthreads(); // G was written
}

// deltaSlices().
template <typename T>
__global__ void __launch_bounds__(kDeltaThreads, 2) deltaStatesKernel(DeltaGradients<T> a)
{
    const DeltaShared shared(dynamicShared<float>(), a.in.shape);
    const DeltaSlice slice(a.in.shape, static_cast<int>(blockIdx.y));
    const std::int64_t first = std::int64_t{blockIdx.x} * kRecurrentRows;
    const std::int64_t end = min(a.in.rows, first + kRecurrentRows);
    for (std::int64_t t = first; t < end; ++t)
        if (t == 0 || a.in.documentFrom[t] == t)
            gradientDocument(a, slice, shared, t);
}

} // namespace

template <typename T>
Status launchDeltaStates(const DeltaGradients<T>& a, cudaStream_t stream)
{
    return launchKernel("gatedDeltaBackward states", listed<deltaStatesKernel<T>>(),
        deltaSlices(a.in.shape, a.in.rows), stream, a);
}

template Status launchDeltaStates<Bf16>(const DeltaGradients<Bf16>& a, cudaStream_t stream);
template Status launchDeltaStates<float>(const DeltaGradients<float>& a, cudaStream_t stream);

} // namespace mr::gpu
