// Packs of adjacent elements in kernels, and the launch shapes that go with them.
//
// A kernel is written once for packs of kPack elements: 16 bytes where the tensors allow it, one
// element otherwise. The launcher chooses by fitsPacks().
//
// Threads  Engine thread for the host part.
// Units    Lengths are elements.

#pragma once

#include "core/device/tensor.h"
#include "gpu/device_math.cuh"
#include "gpu/launch.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace mr::gpu {

template <int kCount, typename T>
__device__ Pack<T, kCount> loadPack(const T* from)
{
    return *reinterpret_cast<const Pack<T, kCount>*>(from);
}

// To global memory.
template <int kCount, typename T>
__device__ void storePack(T* to, const Pack<T, kCount>& pack)
{
    if constexpr (sizeof(pack) == sizeof(uint4)) {
        uint4 bits;
        memcpy(&bits, &pack, sizeof(bits));
        storeGlobal(to, bits);
    } else if constexpr (sizeof(pack) == sizeof(uint2)) {
        uint2 bits;
        memcpy(&bits, &pack, sizeof(bits));
        storeGlobal(to, bits);
    } else {
        *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
    }
}

// To shared memory.
template <int kCount, typename T>
__device__ void stagePack(T* to, const Pack<T, kCount>& pack)
{
    *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
}

// Rounded to T; BF16 two by two, which is one instruction.
template <typename T, int kCount>
__device__ Pack<T, kCount> roundPack(const float (&x)[kCount])
{
    Pack<T, kCount> pack;
    if constexpr (std::is_same_v<T, Bf16> && kCount % 2 == 0) {
        for (int i = 0; i < kCount; i += 2) {
            const std::uint32_t pair = packBf16(x[i], x[i + 1]);
            pack.at[i].bits = static_cast<std::uint16_t>(pair);
            pack.at[i + 1].bits = static_cast<std::uint16_t>(pair >> 16);
        }
    } else {
        for (int i = 0; i < kCount; ++i)
            pack.at[i] = fromFloat<T>(x[i]);
    }
    return pack;
}

// Whether every tensor starts where a pack of `count` of its elements may start. Null does.
template <typename... Views>
bool fitsPacks(int count, const Views&... views) noexcept
{
    const auto starts = [count](const TensorView& view) {
        const std::size_t packBytes = static_cast<std::size_t>(count) * sizeOf(view.dtype);
        return reinterpret_cast<std::uintptr_t>(view.data) % packBytes == 0;
    };
    return (starts(views) && ...);
}

inline constexpr int kRowBlockThreads = 256;

// Blocks of (lanes, rows): grid.x covers `rows`, grid.y the `items` of a row. A thread takes
// `perThread` items, a block's lanes apart. Short rows share a block. At least a warp of
// lanes where the row has as many, so that a warp reads adjacent packs.
// Precondition: items > 0, and at most 65535 * kRowBlockThreads * perThread of them.
inline LaunchShape rowShape(std::int64_t rows, std::int64_t items, int perThread) noexcept
{
    const std::int64_t wanted = std::max<std::int64_t>(
        (items + perThread - 1) / perThread, std::min<std::int64_t>(items, kWarp));
    unsigned lanes = 1;
    while (lanes < kRowBlockThreads && lanes < wanted)
        lanes *= 2;
    const unsigned rowsPerBlock = kRowBlockThreads / lanes;
    LaunchShape shape;
    shape.grid =
        dim3(blocksFor(rows, rowsPerBlock), blocksFor(items, std::int64_t{lanes} * perThread));
    shape.block = dim3(lanes, rowsPerBlock);
    return shape;
}

// The row of a thread of rowShape().
__device__ inline std::int64_t rowOfThread()
{
    return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
}

// Item `u` of a thread of rowShape().
__device__ inline std::int64_t itemOfThread(int perThread, int u)
{
    return (std::int64_t{blockIdx.y} * perThread + u) * blockDim.x + threadIdx.x;
}

} // namespace mr::gpu
