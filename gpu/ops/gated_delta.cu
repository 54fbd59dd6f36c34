// The gated delta rule from a document's first row to its last, row by row: outputs, or for the
// backward pass what it needs of them.
//
//     u = S^T k,   c = v - exp(g) u,   d = beta c,   S = fma(k, d, exp(g) S),   out = S^T q
//
// One pass over the state a row: it also gives u of the next row. A row costs one barrier.

#include "gpu/ops/delta_rows.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

// state (valueHeads, keyDim, valueDim) or null. borders and changes (rows, valueHeads valueDim) go
// with backward, and out with forward; the others are null.
template <typename T>
struct DeltaForward {
    DeltaTensors<T> in;
    T* out;
    float* state;
    float* borders;
    float* changes;
    bool continues;
    std::int64_t firstStart, endStart; // documents that start within
};

// S^T key of one column, of the rows that the warp owns.
__device__ float readColumn(
    const DeltaSlice& slice, const DeltaStage& stage, const float* key, int dim)
{
    float sum = 0.0F;
    for (int i = slice.warp; i < dim; i += kDeltaWarps)
        sum = __fmaf_rn(key[i], stage.state[i * kDeltaSlice + slice.lane], sum);
    return sum;
}

// The state of a column over one row: gives the output's and the next read's partial sum.
struct ColumnSums {
    float out, read;
};

__device__ ColumnSums moveColumn(
    const DeltaSlice& slice, const DeltaStage& stage, int row, int next, float delta, int dim)
{
    const float* key = stage.key + row * dim;
    const float* query = stage.query + row * dim;
    const float* after = stage.key + next * dim;
    const float decay = stage.decay[row];
    ColumnSums sums{0.0F, 0.0F};
#pragma unroll 4
    for (int i = slice.warp; i < dim; i += kDeltaWarps) {
        float& at = stage.state[i * kDeltaSlice + slice.lane];
        const float s = __fmaf_rn(key[i], delta, decay * at);
        at = s;
        sums.out = __fmaf_rn(query[i], s, sums.out);
        sums.read = __fmaf_rn(after[i], s, sums.read);
    }
    return sums;
}

// Staged rows; all threads.
template <typename T>
__device__ void forwardRows(const DeltaForward<T>& a, const DeltaSlice& slice, DeltaStage& stage,
    std::int64_t first, int count)
{
    const int dim = a.in.shape.keyDim;
    const std::int64_t columns = std::int64_t{a.in.shape.valueHeads} * a.in.shape.valueDim;
    const bool isColumn = slice.column < a.in.shape.valueDim;
    const std::int64_t at = std::int64_t{slice.head} * a.in.shape.valueDim + slice.column;
    putPartial(stage, 0, 1, slice, readColumn(slice, stage, stage.key, dim));
    __syncthreads();
    for (int r = 0; r < count; ++r) {
        const float read = joinWarps(stage, r % 2, 1, slice.lane);
        const float change =
            __fmaf_rn(-stage.decay[r], read, stage.value[r * kDeltaSlice + slice.lane]);
        const ColumnSums sums =
            moveColumn(slice, stage, r, min(r + 1, count - 1), stage.beta[r] * change, dim);
        const int turn = (r + 1) % 2;
        putPartial(stage, turn, 0, slice, sums.out);
        putPartial(stage, turn, 1, slice, sums.read);
        __syncthreads();
        if (slice.warp != 0 || !isColumn)
            continue;
        if (a.changes)
            a.changes[(first + r) * columns + at] = change;
        if (a.out)
            a.out[(first + r) * columns + at] = fromFloat<T>(joinWarps(stage, turn, 0, slice.lane));
    }
}

// The document that starts at `begin`.
template <typename T>
__device__ void forwardDocument(
    const DeltaForward<T>& a, const DeltaSlice& slice, DeltaStage& stage, std::int64_t begin)
{
    const DeltaShape& shape = a.in.shape;
    const std::int64_t end = documentEnd(a.in, begin);
    float* kept =
        a.state ? a.state + std::int64_t{slice.head} * shape.keyDim * shape.valueDim : nullptr;
    loadState(shape, slice, stage, begin == 0 && a.continues ? kept : nullptr);
    for (std::int64_t first = begin; first < end; first += kDeltaStage) {
        if (a.borders && first > begin && (first - begin) % kRecurrentRows == 0)
            storeState(shape, slice, stage, a.borders + a.in.borderOf(first, slice.head));
        const int count = static_cast<int>(min(end - first, std::int64_t{kDeltaStage}));
        stageRows(a.in, slice, stage, first, count, a.in.mixed + a.in.valueColumn(slice.head),
            a.in.mixedColumns());
        __syncthreads();
        forwardRows(a, slice, stage, first, count);
    }
    if (kept && end == a.in.rows)
        storeState(shape, slice, stage, kept);
}

// deltaSlices().
template <typename T>
__global__ void __launch_bounds__(kDeltaThreads) gatedDeltaKernel(DeltaForward<T> a)
{
    DeltaStage stage(dynamicShared<float>(), a.in.shape.keyDim);
    const DeltaSlice slice(a.in.shape, static_cast<int>(blockIdx.y));
    const std::int64_t first = std::int64_t{blockIdx.x} * kRecurrentRows;
    const std::int64_t end = min(a.endStart, first + kRecurrentRows);
    for (std::int64_t t = max(first, a.firstStart); t < end; ++t)
        if (t == 0 || a.in.documentFrom[t] == t)
            forwardDocument(a, slice, stage, t);
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
    const DeltaForward<T> a{deltaTensors<T>(args), args.out.as<T>(), args.state.as<float>(),
        nullptr, nullptr, args.continues, 0, 0};
    if (!args.continues)
        return runForward(a, 0, a.in.rows, stream);
    // The document of row 0 reads the state that the last one stores.
    MR_TRY(runForward(a, 0, 1, stream));
    return a.in.rows == 1 ? Status() : runForward(a, 1, a.in.rows, stream);
}

template <typename T>
Status forwardForBackward(const GatedDeltaBackwardArgs& args, float* changes, cudaStream_t stream)
{
    const DeltaForward<T> a{
        deltaTensors<T>(args), nullptr, nullptr, args.borders.as<float>(), changes, false, 0, 0};
    return runForward(a, 0, a.in.rows, stream);
}

} // namespace

Status launchGatedDelta(const GatedDeltaArgs& args, cudaStream_t stream)
{
    if (args.mixed.dims[0] == 0)
        return {};
    return args.mixed.dtype == DType::BF16 ? forward<Bf16>(args, stream)
                                           : forward<float>(args, stream);
}

Status launchDeltaBorders(const GatedDeltaBackwardArgs& args, float* changes, cudaStream_t stream)
{
    return args.mixed.dtype == DType::BF16 ? forwardForBackward<Bf16>(args, changes, stream)
                                           : forwardForBackward<float>(args, changes, stream);
}

} // namespace mr::gpu
