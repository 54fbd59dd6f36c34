// elementKernel(): the frame of every op that treats element i of some tensors alone.
//
// A thread takes kUnroll packs, a block's width apart, so that every access of a warp is one
// stretch of memory. All its loads are written before its first store: the tensors may be the same
// (in place), so the compiler could not move a load up past a store itself, and a card is busy
// only with enough loads in flight. Elements past the last whole pack are taken one by one.
//
// An Op is a struct of pointers with
//     template <int kCount> struct Held;                 the packs that a thread reads
//     template <int kCount> Held<kCount> load(at) const;
//     template <int kCount> void store(at, const Held<kCount>&) const;
// and, where it may turn out on the device that there is nothing to do, bool skips() const.
//
// Threads  Engine thread for launchElements().
// Errors   Those of launchKernel().

#pragma once

#include "gpu/ops/packs.cuh"

namespace mr::gpu {

inline constexpr int kElementThreads = 256;

// The last block may end in a pack that is not whole. A function of its own keeps tests out of the
// frame.
template <typename Op, int kPack, int kUnroll>
__device__ void lastElements(const Op& op, std::int64_t first, std::int64_t count)
{
    constexpr std::int64_t kApart = std::int64_t{kElementThreads} * kPack;
#pragma unroll 1
    for (int u = 0; u < kUnroll; ++u) {
        const std::int64_t at = first + u * kApart;
        if (at + kPack <= count)
            op.template store<kPack>(at, op.template load<kPack>(at));
        else
            for (std::int64_t i = at; i < count; ++i)
                op.template store<1>(i, op.template load<1>(i));
    }
}

// Grid.x covers `count` elements, kElementThreads * kUnroll * kPack a block.
template <typename Op, int kPack, int kUnroll>
__global__ void __launch_bounds__(kElementThreads) elementKernel(Op op, std::int64_t count)
{
    constexpr std::int64_t kApart = std::int64_t{kElementThreads} * kPack;
    const std::int64_t first = std::int64_t{blockIdx.x} * kUnroll * kApart +
                               static_cast<std::int64_t>(threadIdx.x) * kPack;
    if constexpr (requires { op.skips(); })
        if (op.skips())
            return;
    if ((std::int64_t{blockIdx.x} + 1) * kUnroll * kApart > count) {
        lastElements<Op, kPack, kUnroll>(op, first, count);
        return;
    }
    typename Op::template Held<kPack> held[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
        held[u] = op.template load<kPack>(first + u * kApart);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
        op.template store<kPack>(first + u * kApart, held[u]);
}

// `packed`: the tensors of the op take packs of kPack.
template <int kPack, int kUnroll, typename Op>
Status launchElements(
    const char* name, const Op& op, std::int64_t count, bool packed, cudaStream_t stream)
{
    LaunchShape shape;
    shape.block = dim3(kElementThreads);
    if (packed) {
        shape.grid = dim3(blocksFor(count, std::int64_t{kElementThreads} * kUnroll * kPack));
        return launchKernel(
            name, listed<elementKernel<Op, kPack, kUnroll>>(), shape, stream, op, count);
    }
    shape.grid = dim3(blocksFor(count, std::int64_t{kElementThreads} * kUnroll));
    return launchKernel(name, listed<elementKernel<Op, 1, kUnroll>>(), shape, stream, op, count);
}

} // namespace mr::gpu
