// The gated delta rule from a document's first chunk to its last: outputs, or for the backward pass
// what it needs of them.
//
// A chunk of kRecurrentRows rows is a few products of matrices. With S the state before it, X, P
// and the decays of DeltaPairs, B = diag(beta):
//     R = V - start (K S),   c = R - X (B R),   d = B c,   out = start (Q S) + P d,
//     S = decay of the chunk S + (rest K)^T d
// which is the rule row by row: c = v - exp(g) S^T k = R - L d, solved for c.
// Source: Yang et al., "Gated Delta Networks", arXiv 2412.06464, section 3.

#include "gpu/ops/delta_gradients.cuh"
#include "gpu/ops/delta_products.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

// state (valueHeads, keyDim, valueDim) or null. borders and changes (rows, valueHeads valueDim) go
// with backward, and out with forward; the others are null.
template <typename T>
struct DeltaForward {
    DeltaTensors<T> in;
    DeltaPairs pairs;
    T* out;
    float* state;
    float* borders;
    float* changes;
    bool continues;
    std::int64_t firstStart, endStart; // documents that start within
};

// R of the thread's rows; the warp's rows of v are in work, and become B R.
template <typename T>
__device__ void makeResiduals(DeltaSums& changes, const DeltaChunk<T>& chunk)
{
    const DeltaSlice& slice = chunk.slice;
    stageValues(chunk, chunk.in.mixed + chunk.in.valueColumn(slice.head), chunk.in.mixedColumns());
    DeltaSums reads;
    clearSums(reads);
    addKeyRows(reads, chunk, keysOf(chunk));
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
        const int t = slice.row + r;
        const auto values = loadPack<kOwnColumns>(chunk.s.work + t * kDeltaSlice + slice.column);
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            changes[r][c] = __fmaf_rn(-chunk.s.start[t], reads[r][c], values.at[c]);
    }
    putScaled(chunk, changes);
    __syncwarp(); // the tile was read
    stagePairs(chunk, chunk.pairs.inverse);
    __syncwarp();
}

// c of the thread's rows; work holds B R of all.
template <typename T>
__device__ void solveChanges(DeltaSums& changes, const DeltaChunk<T>& chunk)
{
    DeltaSums sums;
    clearSums(sums);
    addPairRows(sums, chunk);
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            changes[r][c] = changes[r][c] - sums[r][c];
}

template <typename T>
__device__ void storeChanges(const DeltaSums& changes, const DeltaChunk<T>& chunk, float* to)
{
    const DeltaShape& shape = chunk.in.shape;
    putRows(chunk, chunk.s.work, kDeltaSlice, changes);
    __syncwarp();
    storeValues(chunk, chunk.s.work, kDeltaSlice,
        to + std::int64_t{chunk.slice.head} * shape.valueDim,
        std::int64_t{shape.valueHeads} * shape.valueDim);
    __syncwarp(); // work was read
}

// The warp's rows of the output; work holds d of all.
template <typename T>
__device__ void storeOutputs(const DeltaForward<T>& a, const DeltaChunk<T>& chunk)
{
    const DeltaShape& shape = chunk.in.shape;
    DeltaSums reads;
    clearSums(reads);
    addKeyRows(reads, chunk, queriesOf(chunk));
    __syncwarp(); // the tile was read
    stagePairs(chunk, chunk.pairs.scores);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            reads[r][c] = chunk.s.start[chunk.slice.row + r] * reads[r][c];
    addPairRows(reads, chunk);
    __syncwarp(); // the tile was read
    putRows(chunk, chunk.s.tile, kTileRow, reads);
    __syncwarp();
    storeValues(chunk, chunk.s.tile, kTileRow,
        a.out + std::int64_t{chunk.slice.head} * shape.valueDim,
        std::int64_t{shape.valueHeads} * shape.valueDim);
}

// Rows of one chunk; `hasBorder`: the state before it is stored.
template <typename T>
__device__ void forwardChunk(const DeltaForward<T>& a, const DeltaChunk<T>& chunk, bool hasBorder)
{
    loadVectors(chunk);
    __syncthreads(); // the state is whole
    const float decay = chunk.decay();
    if (hasBorder)
        storeState(chunk.in.shape, chunk.slice, chunk.s,
            a.borders + a.in.borderOf(chunk.first, chunk.slice.head));
    DeltaSums changes;
    if (chunk.isActive())
        makeResiduals(changes, chunk);
    __syncthreads();
    if (chunk.isActive())
        solveChanges(changes, chunk);
    __syncthreads(); // B R was read
    if (chunk.isActive()) {
        if (a.changes)
            storeChanges(changes, chunk, a.changes);
        putScaled(chunk, changes);
    }
    __syncthreads();
    if (a.out && chunk.isActive())
        storeOutputs(a, chunk);
    updateState(chunk, keysOf(chunk).times(chunk.s.rest), decay);
}

// The document that starts at `begin`.
template <typename T>
__device__ void forwardDocument(
    const DeltaForward<T>& a, const DeltaSlice& slice, const DeltaShared& s, std::int64_t begin)
{
    const DeltaShape& shape = a.in.shape;
    const std::int64_t end = documentEnd(a.in, begin);
    float* kept =
        a.state ? a.state + std::int64_t{slice.head} * shape.keyDim * shape.valueDim : nullptr;
    loadState(shape, slice, s, begin == 0 && a.continues ? kept : nullptr);
    for (std::int64_t first = begin; first < end; first += kRecurrentRows) {
        const auto count = static_cast<int>(min(end - first, kRecurrentRows));
        const bool goesOn = first + count < end || (kept && end == a.in.rows);
        const DeltaChunk<T> chunk{a.in, a.pairs, slice, s, first, count, goesOn};
        forwardChunk(a, chunk, a.borders && first > begin);
    }
    __syncthreads(); // the state is whole
    if (kept && end == a.in.rows)
        storeState(shape, slice, s, kept);
}

// deltaSlices().
template <typename T>
__global__ void __launch_bounds__(kDeltaThreads, 2) gatedDeltaKernel(DeltaForward<T> a)
{
    const DeltaShared shared(dynamicShared<float>(), a.in.shape);
    const DeltaSlice slice(a.in.shape, static_cast<int>(blockIdx.y));
    const std::int64_t first = std::int64_t{blockIdx.x} * kRecurrentRows;
    const std::int64_t end = min(a.endStart, first + kRecurrentRows);
    for (std::int64_t t = max(first, a.firstStart); t < end; ++t)
        if (t == 0 || a.in.documentFrom[t] == t)
            forwardDocument(a, slice, shared, t);
}

// Documents that start at rows [first, end).
template <typename T>
Status runForward(DeltaForward<T> a, std::int64_t first, std::int64_t end, cudaStream_t stream)
{
    a.firstStart = first;
    a.endStart = end;
    return launchKernel(
        "gatedDelta", listed<gatedDeltaKernel<T>>(), deltaSlices(a.in.shape, end), stream, a);
}

template <typename T>
Status forward(const GatedDeltaArgs& args, cudaStream_t stream)
{
    const DeltaForward<T> a{deltaTensors<T>(args),
        DeltaPairs(args.scratch.as<float>(), nullptr, args.mixed.dims[0], args.shape),
        args.out.as<T>(), args.state.as<float>(), nullptr, nullptr, args.continues, 0, 0};
    MR_TRY(launchDeltaPairs(a.in, a.pairs, stream));
    if (!args.continues)
        return runForward(a, 0, a.in.rows, stream);
    // The document of row 0 reads the state that the last one stores.
    MR_TRY(runForward(a, 0, 1, stream));
    return a.in.rows == 1 ? Status() : runForward(a, 1, a.in.rows, stream);
}

} // namespace

Status launchGatedDelta(const GatedDeltaArgs& args, cudaStream_t stream)
{
    if (args.scratch.data == nullptr)
        return Status::error(
            ErrorKind::InvalidArgument, "gatedDelta: the CUDA device needs scratch");
    if (args.mixed.dims[0] == 0)
        return {};
    return args.mixed.dtype == DType::BF16 ? forward<Bf16>(args, stream)
                                           : forward<float>(args, stream);
}

template <typename T>
Status launchDeltaBorders(const DeltaGradients<T>& a, cudaStream_t stream)
{
    const DeltaForward<T> forward{
        a.in, a.pairs, nullptr, nullptr, a.borders, a.scratch.changes, false, 0, 0};
    return runForward(forward, 0, a.in.rows, stream);
}

template Status launchDeltaBorders<Bf16>(const DeltaGradients<Bf16>& a, cudaStream_t stream);
template Status launchDeltaBorders<float>(const DeltaGradients<float>& a, cudaStream_t stream);

} // namespace mr::gpu
