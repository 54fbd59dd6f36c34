// Gradients of one chunk that pass through gates and norms: the end of gated_delta_chunks.cu.

#pragma once

#include "gpu/ops/delta_chunk.cuh"

namespace mr::gpu {

// pairTerms[r]: the sum of `pairs` over s >= r > t. All threads.
template <typename T>
__device__ void sumPairs(const Chunk<T>& chunk)
{
    const auto thread = static_cast<int>(threadIdx.x);
    __syncthreads();
    if (thread < chunk.count) {
        float sum = 0.0F;
        for (int s = chunk.count - 1; s > thread; --s) {
            float& pair = chunk.s.pairs[s * kMatrixRow + thread];
            sum = sum + pair;
            pair = sum;
        }
    }
    __syncthreads();
    const int lane = thread % kWarp;
    for (int r = thread / kWarp; r < chunk.count; r += kDeltaWarps) {
        float sum = 0.0F;
        for (int t = lane; t < r; t += kWarp)
            sum = sum + chunk.s.pairs[r * kMatrixRow + t];
        sum = warpSum(sum);
        if (lane == 0)
            chunk.s.pairTerms[r] = sum;
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

// The gradient of b, a warp a row.
template <typename T>
__device__ void storeBetaGradients(const Chunk<T>& chunk)
{
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    for (int t = static_cast<int>(threadIdx.x) / kWarp; t < chunk.count; t += kDeltaWarps) {
        const std::int64_t at = chunk.a.valueAt(chunk.first + t, chunk.head);
        float sum = 0.0F;
        for (int c = lane; c < chunk.a.in.shape.valueDim; c += kWarp)
            sum = __fmaf_rn(chunk.a.scratch.errors[at + c], chunk.a.scratch.changes[at + c], sum);
        sum = warpSum(sum);
        const float beta = chunk.s.beta[t];
        if (lane == 0)
            chunk.a.gradGates[(chunk.first + t) * chunk.a.in.gateColumns + chunk.head] =
                fromFloat<T>(sum * (beta * (1.0F - beta)));
    }
}

// Gradients of a and logDecay, a thread a row.
template <typename T>
__device__ void storeDecayGradients(const Chunk<T>& chunk, float whole)
{
    const auto row = static_cast<int>(threadIdx.x);
    if (row >= chunk.count)
        return;
    const int heads = chunk.a.in.shape.valueHeads;
    float grad = whole + chunk.s.pairTerms[row];
    for (int t = 0; t < chunk.count; ++t)
        grad = grad + (t < row ? chunk.s.ends[t] : chunk.s.terms[t]);
    const DeltaGate gate = deltaGate(chunk.a.in, chunk.first + row, chunk.head);
    const float gradTime = -(gate.rate * gate.slope) * grad;
    chunk.a.gradGates[(chunk.first + row) * chunk.a.in.gateColumns + heads + chunk.head] =
        fromFloat<T>(gradTime);
    float* planes = chunk.a.planes + (chunk.first + row) * heads + chunk.head;
    planes[0] = gate.g * grad;
    planes[chunk.a.in.rows * heads] = gradTime;
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
            ((chunk.first + t) * in.shape.keyHeads + chunk.keyHead()) * in.shape.keyDim;
        const std::int64_t query = row + in.queryColumn(chunk.keyHead());
        const std::int64_t key = row + in.keyColumn(chunk.keyHead());
        const float factor =
            chunk.a.pairs.queryFactor[chunk.a.pairs.rowAt(chunk.first + t, chunk.keyHead())];
        storeNormGradient(in.mixed + query, chunk.a.scratch.gradQuery + at, factor,
            queryScale(in.shape), chunk.a.gradMixed + query, in.shape.keyDim);
        storeNormGradient(in.mixed + key, chunk.a.scratch.gradKey + at, chunk.s.keyFactor[t], 1.0F,
            chunk.a.gradMixed + key, in.shape.keyDim);
    }
}

} // namespace mr::gpu
