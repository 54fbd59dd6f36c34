// Shared by all attention kernels: where the parts of a packed row lie, and their arguments.
//
// Units    Row numbers are int: visibleFrom, which names them, is I32. Offsets of elements are
//          64-bit.

#pragma once

#include "core/device/ops.h"
#include "gpu/device_math.cuh"

#include <cstdint>

namespace mr::gpu {

// headDim adjacent columns of a tall matrix.
template <typename T>
struct Strip {
    T* data;
    int stride; // elements from row to row; int spares the kernels registers

    __host__ __device__ T* row(std::int64_t index) const { return data + index * stride; }
};

// By value in every kernel's arguments. Precondition: at most 2^31 - 1025 tokens.
struct AttentionLayout {
    const std::int32_t* visibleFrom = nullptr; // (tokens)
    int tokens = 0;
    int heads = 0;
    int kvHeads = 0;
    int headDim = 0;
    float scale = 0.0F;
    float capOverScale = 0.0F; // soft-cap / scale; 0: no cap
    float scaleOverCap = 0.0F;

    // The dot product d that the softmax scales. With a soft-cap c,
    // scale d = c tanh(scale dot / c), so that later code needs no cap.
    __device__ float bent(float dot) const
    {
        return capOverScale != 0.0F ? capOverScale * tanhf(dot * scaleOverCap) : dot;
    }

    // d(bent) / d(dot), as a function of bent.
    __device__ float slope(float bent) const
    {
        const float t = bent * scaleOverCap;
        return fmaf(-t, t, 1.0F);
    }

    __host__ __device__ int group() const { return heads / kvHeads; }

    // Strip of head `index` in a matrix of `columns` heads.
    template <typename T>
    __host__ __device__ Strip<T> strip(T* matrix, int columns, int index) const
    {
        return {matrix + std::int64_t{index} * headDim, columns * headDim};
    }

    // Strips of a packed matrix.
    template <typename T>
    __host__ __device__ Strip<T> query(T* packed, int head) const
    {
        return strip(packed, heads + 2 * kvHeads, head);
    }

    template <typename T>
    __host__ __device__ Strip<T> key(T* packed, int kvHead) const
    {
        return strip(packed, heads + 2 * kvHeads, heads + kvHead);
    }

    template <typename T>
    __host__ __device__ Strip<T> value(T* packed, int kvHead) const
    {
        return strip(packed, heads + 2 * kvHeads, heads + kvHeads + kvHead);
    }
};

template <typename T>
struct ForwardParams {
    AttentionLayout layout;
    const T* qkv;   // (tokens, heads + 2 kvHeads, headDim)
    T* out;         // (tokens - firstQuery, heads, headDim)
    float* lse;     // (tokens - firstQuery, heads)
    int firstQuery; // rows before it are keys only
};

template <typename T>
struct BackwardParams {
    AttentionLayout layout;
    const T* qkv;       // (tokens, heads + 2 kvHeads, headDim)
    const T* gradOut;   // (tokens, heads, headDim)
    const float* lse;   // (tokens, heads)
    const float* delta; // (tokens, heads)
    T* gradQkv;         // as qkv
    // (2, tokens, heads, headDim): gradients of keys and values by query head. Null: a block of the
    // key side sums over the heads of its group.
    float* partial;
};

// The host's side of the two.
template <typename Args>
AttentionLayout attentionLayout(const Args& args)
{
    return {args.visibleFrom.template as<const std::int32_t>(), static_cast<int>(args.qkv.dims[0]),
        args.heads, args.kvHeads, args.headDim, args.scale,
        args.softcap > 0.0F ? args.softcap / args.scale : 0.0F,
        args.softcap > 0.0F ? args.scale / args.softcap : 0.0F};
}

template <typename T>
ForwardParams<T> forwardParams(const AttentionArgs& args)
{
    return {attentionLayout(args), args.qkv.as<const T>(), args.out.as<T>(), args.lse.as<float>(),
        static_cast<int>(args.firstQuery)};
}

template <typename T>
BackwardParams<T> backwardParams(const AttentionBackwardArgs& args)
{
    const std::int64_t partials =
        attentionPartials(args.qkv.dims[0], args.heads, args.kvHeads, args.headDim);
    const bool splits = partials > 0 && args.partial.data && args.partial.count() >= partials;
    return {attentionLayout(args), args.qkv.as<const T>(), args.gradOut.as<const T>(),
        args.lse.as<const float>(), args.delta.as<const float>(), args.gradQkv.as<T>(),
        splits ? args.partial.as<float>() : nullptr};
}

} // namespace mr::gpu
