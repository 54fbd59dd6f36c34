// Shared by the kernels of the gated delta rule: what they read of rows, documents and gates, and
// the numbers of pairs of rows that deltaPairsKernel leaves for the others.
//
// Chunks of kRecurrentRows rows count from each document's first row. A block takes the documents,
// or the chunks, that start within kRecurrentRows rows.

#pragma once

#include "core/device/recurrent_ops.h"
#include "gpu/ops/exact_functions.cuh"
#include "gpu/ops/packs.cuh"

#include <cuda_runtime_api.h>

namespace mr::gpu {

inline constexpr auto kDeltaRows = static_cast<int>(kRecurrentRows);
inline constexpr int kDeltaThreads = 256;
inline constexpr int kDeltaWarps = kDeltaThreads / kWarp;

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

// Parts of GatedDeltaArgs::scratch and, at its start, of GatedDeltaBackwardArgs::scratch. With
// D[s][t] the product of decays after row t up to row s of a chunk, B = diag(beta):
//     L[s][t] = D[s][t] (k[s] k[t]) for s > t,   X = (I + L B)^-1 L,
//     P[s][t] = D[s][t] (q[s] k[t]) for s >= t,   all others 0
struct DeltaPairs {
    float* inverse;     // (rows, valueHeads, kRecurrentRows): X, and so the next two
    float* scores;      // P
    float* lower;       // L, for the backward pass; null: not wanted
    float* start;       // (valueHeads, rows): decay from before the chunk to the row
    float* rest;        // (valueHeads, rows): decay from the row to the chunk's end
    float* beta;        // (valueHeads, rows)
    float* queryFactor; // (keyHeads, rows): of the norm, without queryScale()
    float* keyFactor;   // (keyHeads, rows)
    std::int64_t rows;
    int valueHeads;

    DeltaPairs(float* scratch, float* lowerScratch, std::int64_t rowCount, const DeltaShape& shape)
        : inverse(scratch)
        , scores(inverse + rowCount * shape.valueHeads * kRecurrentRows)
        , lower(lowerScratch)
        , start(scores + rowCount * shape.valueHeads * kRecurrentRows)
        , rest(start + rowCount * shape.valueHeads)
        , beta(rest + rowCount * shape.valueHeads)
        , queryFactor(beta + rowCount * shape.valueHeads)
        , keyFactor(queryFactor + rowCount * shape.keyHeads)
        , rows(rowCount)
        , valueHeads(shape.valueHeads)
    {
    }

    // A row of X or P.
    __device__ std::int64_t pairsAt(std::int64_t row, int head) const
    {
        return (row * valueHeads + head) * kRecurrentRows;
    }
    __device__ std::int64_t rowAt(std::int64_t row, int head) const { return head * rows + row; }
};

// Fills `pairs`. In gated_delta_pairs.cu, for both types.
template <typename T>
Status launchDeltaPairs(
    const DeltaTensors<T>& tensors, const DeltaPairs& pairs, cudaStream_t stream);

} // namespace mr::gpu
