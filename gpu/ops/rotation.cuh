// Shared by rope.cu and the kernels of normed heads: one pack of angles, one rotated element.

#pragma once

#include "gpu/ops/packs.cuh"

namespace mr::gpu {

// F32 tables come in packs of 4 at most.
template <int kPack>
__device__ void loadTable(const float* from, float (&to)[kPack])
{
    constexpr int kPart = kPack < kPackOf<float> ? kPack : kPackOf<float>;
#pragma unroll
    for (int i = 0; i < kPack; i += kPart) {
        const auto part = loadPack<kPart>(from + i);
        for (int k = 0; k < kPart; ++k)
            to[i + k] = part.at[k];
    }
}

// One element of a rotated pair, of itself and the other.
__device__ inline float rotated(float own, float other, float cosine, float sine, bool isUpper)
{
    return isUpper ? own * cosine + other * sine : own * cosine - other * sine;
}

} // namespace mr::gpu
