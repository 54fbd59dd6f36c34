// The backward pass of the gated delta rule: its tensors, scratch and steps.

#pragma once

#include "gpu/ops/delta_rows.cuh"

namespace mr::gpu {

// Parts of GatedDeltaBackwardArgs::scratch behind those of DeltaPairs.
struct DeltaScratch {
    float* lower;       // DeltaPairs::lower
    float* gradBorders; // as borders
    float* changes;     // (rows, valueHeads valueDim): c
    float* errors;      // (rows, valueHeads valueDim): e
    float* gradQuery;   // (rows, keyHeads keyDim)
    float* gradKey;

    explicit DeltaScratch(const GatedDeltaBackwardArgs& args)
        : lower(args.scratch.as<float>() + deltaForwardScratch(args.mixed.dims[0], args.shape))
        , gradBorders(lower + args.mixed.dims[0] * args.shape.valueHeads * kRecurrentRows)
        , changes(gradBorders + args.borders.count())
        , errors(changes + args.gradOut.count())
        , gradQuery(errors + args.gradOut.count())
        , gradKey(gradQuery + args.mixed.dims[0] * args.shape.keyColumns())
    {
    }
};

// gradOut (rows, valueHeads valueDim), gradMixed (rows, columns), gradGates (rows, gateColumns) at
// firstGate, borders (blocks, valueHeads, keyDim, valueDim), planes (kDeltaPlanes, rows,
// valueHeads).
template <typename T>
struct DeltaGradients {
    DeltaTensors<T> in;
    DeltaPairs pairs;
    const T* gradOut;
    T* gradMixed;
    T* gradGates;
    float* borders;
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

// Steps of the backward pass, in this order behind launchDeltaPairs(), each for both types.

// gated_delta.cu: states at borders, and c of each row.
template <typename T>
Status launchDeltaBorders(const DeltaGradients<T>& a, cudaStream_t stream);

// gated_delta_states.cu: gradients of states at borders and of v, and e of each row.
template <typename T>
Status launchDeltaStates(const DeltaGradients<T>& a, cudaStream_t stream);

// gated_delta_chunks.cu: gradients of q, k and gates.
template <typename T>
Status launchDeltaChunks(const DeltaGradients<T>& a, cudaStream_t stream);

} // namespace mr::gpu
