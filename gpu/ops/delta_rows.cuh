// Shared by the kernels of the gated delta rule: what they read of rows, documents, gates, and the
// state of kDeltaSlice value columns that a block holds in shared memory.
//
// A block of kDeltaThreads owns a slice of one value head: lane l of every warp has column l, warp
// w the rows w, w + kDeltaWarps, ... of the state, so no thread touches another's part. A block
// takes the documents that start within kRecurrentRows rows, one after the other.
//
// Order    Sums over keyDim: the rows of a warp in order, then the warps in order.

#pragma once

#include "core/device/recurrent_ops.h"
#include "gpu/ops/exact_functions.cuh"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {

inline constexpr int kDeltaSlice = kWarp;
inline constexpr int kDeltaThreads = 256;
inline constexpr int kDeltaWarps = kDeltaThreads / kWarp;
inline constexpr int kDeltaStage = 8; // rows that wait in shared memory

// mixed (rows, columns), gates (rows, gateColumns) from b of head 0 on, logDecay and timeBias
// (valueHeads), documentFrom (rows).
template <typename T>
struct DeltaTensors {
    const T* mixed;
    const T* gates;
    const T* logDecay;
    const T* timeBias;
    const std::int32_t* documentFrom;
    std::int64_t rows, gateColumns;
    DeltaShape shape;

    __device__ int group() const { return shape.valueHeads / shape.keyHeads; }
    __device__ std::int64_t queryColumn(int keyHead) const
    {
        return std::int64_t{keyHead} * shape.keyDim;
    }
    __device__ std::int64_t keyColumn(int keyHead) const
    {
        return (std::int64_t{shape.keyHeads} + keyHead) * shape.keyDim;
    }
    __device__ std::int64_t valueColumn(int head) const
    {
        return 2 * std::int64_t{shape.keyHeads} * shape.keyDim +
               std::int64_t{head} * shape.valueDim;
    }
    __device__ std::int64_t mixedColumns() const { return valueColumn(shape.valueHeads); }
    // First element of a head's state in borders (blocks, valueHeads, keyDim, valueDim).
    __device__ std::int64_t borderOf(std::int64_t row, int head) const
    {
        return (row / kRecurrentRows * shape.valueHeads + head) * shape.keyDim * shape.valueDim;
    }
};

template <typename T, typename Args>
DeltaTensors<T> deltaTensors(const Args& args)
{
    return {args.mixed.template as<const T>(), args.gates.template as<const T>() + args.firstGate,
        args.logDecay.template as<const T>(), args.timeBias.template as<const T>(),
        args.documentFrom.template as<const std::int32_t>(), args.mixed.dims[0], args.gates.dims[1],
        args.shape};
}

struct DeltaGate {
    float beta;
    float rate;  // exp(logDecay)
    float slope; // of softplus
    float g;
};

template <typename T>
__device__ DeltaGate deltaGate(const DeltaTensors<T>& a, std::int64_t row, int head)
{
    const T* gates = a.gates + row * a.gateColumns;
    const float time = toFloat(gates[a.shape.valueHeads + head]) + toFloat(a.timeBias[head]);
    const float soft = exactSoftplus(time);
    const float rate = exactExp(toFloat(a.logDecay[head]));
    return {exactSigmoid(toFloat(gates[head])), rate, exactSigmoid(time), -(rate * soft)};
}

// The row behind the last of the document that starts at `start`.
template <typename T>
__device__ std::int64_t documentEnd(const DeltaTensors<T>& a, std::int64_t start)
{
    std::int64_t low = start + 1;
    std::int64_t high = a.rows;
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (a.documentFrom[middle] > start)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// The factor that norms a head of keyDim elements; a warp.
template <typename T>
__device__ float normFactor(const T* x, int dim)
{
    float squares = 0.0F;
    for (int i = static_cast<int>(threadIdx.x) % kWarp; i < dim; i += kWarp)
        squares = __fmaf_rn(toFloat(x[i]), toFloat(x[i]), squares);
    return __fdiv_rn(1.0F, __fsqrt_rn(warpSum(squares) + 1e-6F));
}

__device__ inline float queryScale(const DeltaShape& shape)
{
    return __fdiv_rn(1.0F, __fsqrt_rn(static_cast<float>(shape.keyDim)));
}

// Rows in shared memory. values: v or gradOut. All pointers to `floats()` elements.
struct DeltaStage {
    float* state;    // (keyDim, kDeltaSlice)
    float* query;    // (kDeltaStage, keyDim), normed
    float* key;      // (kDeltaStage, keyDim)
    float* value;    // (kDeltaStage, kDeltaSlice)
    float* decay;    // (kDeltaStage)
    float* beta;     // (kDeltaStage)
    float* partials; // (2, 2, kDeltaWarps, kDeltaSlice): of two sums, for rows in turn

    static constexpr std::int64_t floats(std::int64_t keyDim) noexcept
    {
        return keyDim * (kDeltaSlice + 2 * kDeltaStage) + kDeltaStage * (kDeltaSlice + 2) +
               4 * kDeltaWarps * kDeltaSlice;
    }

    __device__ DeltaStage(float* at, int keyDim)
        : state(at)
        , query(state + keyDim * kDeltaSlice)
        , key(query + kDeltaStage * keyDim)
        , value(key + kDeltaStage * keyDim)
        , decay(value + kDeltaStage * kDeltaSlice)
        , beta(decay + kDeltaStage)
        , partials(beta + kDeltaStage)
    {
    }
};

// A block's share of the work.
struct DeltaSlice {
    int head, keyHead;
    int column; // of the thread, within valueDim; may lie behind it
    int lane, warp;

    __device__ DeltaSlice(const DeltaShape& shape, int block)
    {
        const int slices = (shape.valueDim + kDeltaSlice - 1) / kDeltaSlice;
        head = block / slices;
        keyHead = head / (shape.valueHeads / shape.keyHeads);
        lane = static_cast<int>(threadIdx.x) % kWarp;
        warp = static_cast<int>(threadIdx.x) / kWarp;
        column = block % slices * kDeltaSlice + lane;
    }
};

// Rows [first, first + count) into shared memory, a warp a row; `values` (rows, ld) is v or gradOut
// at the head's first column.
template <typename T>
__device__ void stageRows(const DeltaTensors<T>& a, const DeltaSlice& slice, DeltaStage& stage,
    std::int64_t first, int count, const T* values, std::int64_t ld)
{
    const int dim = a.shape.keyDim;
    for (int r = slice.warp; r < count; r += kDeltaWarps) {
        const std::int64_t row = first + r;
        const T* mixed = a.mixed + row * a.mixedColumns();
        const T* query = mixed + a.queryColumn(slice.keyHead);
        const T* key = mixed + a.keyColumn(slice.keyHead);
        const float queryFactor = normFactor(query, dim);
        const float keyFactor = normFactor(key, dim);
        const float scale = queryScale(a.shape);
        for (int i = slice.lane; i < dim; i += kWarp) {
            stage.query[r * dim + i] = (toFloat(query[i]) * queryFactor) * scale;
            stage.key[r * dim + i] = toFloat(key[i]) * keyFactor;
        }
        stage.value[r * kDeltaSlice + slice.lane] =
            slice.column < a.shape.valueDim ? toFloat(values[row * ld + slice.column]) : 0.0F;
        if (slice.lane == 0) {
            const DeltaGate gate = deltaGate(a, row, slice.head);
            stage.decay[r] = exactExp(gate.g);
            stage.beta[r] = gate.beta;
        }
    }
}

// The sum of all warps' partial sums of one column, in each of them. `turn` says which of two
// buffers; a barrier stands between two uses of one.
__device__ inline float joinWarps(const DeltaStage& stage, int turn, int which, int lane)
{
    const float* partials = stage.partials + (turn * 2 + which) * kDeltaWarps * kDeltaSlice;
    float sum = partials[lane];
    for (int w = 1; w < kDeltaWarps; ++w)
        sum = sum + partials[w * kDeltaSlice + lane];
    return sum;
}

__device__ inline void putPartial(
    const DeltaStage& stage, int turn, int which, const DeltaSlice& slice, float sum)
{
    stage.partials[((turn * 2 + which) * kDeltaWarps + slice.warp) * kDeltaSlice + slice.lane] =
        sum;
}

// A head's state (keyDim, valueDim) and the slice of it in shared memory, by the threads that own
// its parts. `dense` null: zero.
__device__ inline void loadState(
    const DeltaShape& shape, const DeltaSlice& slice, const DeltaStage& stage, const float* dense)
{
    for (int i = slice.warp; i < shape.keyDim; i += kDeltaWarps)
        stage.state[i * kDeltaSlice + slice.lane] =
            dense && slice.column < shape.valueDim
                ? dense[std::int64_t{i} * shape.valueDim + slice.column]
                : 0.0F;
}

__device__ inline void storeState(
    const DeltaShape& shape, const DeltaSlice& slice, const DeltaStage& stage, float* dense)
{
    if (slice.column < shape.valueDim)
        for (int i = slice.warp; i < shape.keyDim; i += kDeltaWarps)
            dense[std::int64_t{i} * shape.valueDim + slice.column] =
                stage.state[i * kDeltaSlice + slice.lane];
}

// A block for each slice of each head (y) and each kRecurrentRows rows (x).
inline LaunchShape deltaSlices(const DeltaShape& shape, std::int64_t rows)
{
    const int slices = (shape.valueDim + kDeltaSlice - 1) / kDeltaSlice;
    LaunchShape launch;
    launch.grid = dim3(static_cast<unsigned>(recurrentBlocks(rows)),
        static_cast<unsigned>(shape.valueHeads * slices));
    launch.block = dim3(kDeltaThreads);
    launch.sharedBytes = static_cast<std::size_t>(DeltaStage::floats(shape.keyDim)) * sizeof(float);
    return launch;
}

// States at borders, and c of each row, to `changes` (rows, valueHeads valueDim). In
// gated_delta.cu.
Status launchDeltaBorders(const GatedDeltaBackwardArgs& args, float* changes, cudaStream_t stream);

} // namespace mr::gpu
