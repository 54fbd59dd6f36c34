// Sums in the order of core/device/light_update.h, by the threads of a block along x.
//
// A node is 256 elements, and the 8 lanes of its sum belong to kSumLanes / kPack adjacent threads,
// kPack lanes each: in F32 the threads of a node read one sector of 32 bytes at a time, 4 or 8 of
// them before they add the first. Nodes of a warp are joined by shuffles, those of warps in shared
// memory, and what rounds of a block give by a counter: each is a level of one balanced tree.
//
// A node that does not exist counts as 0. That changes no bit: no sum is -0, because lanes begin
// with +0.
//
// Threads  All threads of a block call sumAsRow() together, with equal counts where it has more
//          than a warp along x.

#pragma once

#include "core/device/light_update.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {

inline constexpr int kLanesOfSum = static_cast<int>(kSumLanes);
inline constexpr int kTreeLevels = 40;
inline constexpr int kMostSumThreads = 512;

// a + b stands where their parent does; nodes past the last power of two are zeros of the caller.
template <int kNodes>
__device__ float joinNodes(float (&nodes)[kNodes])
{
#pragma unroll
    for (int apart = 1; apart < kNodes; apart *= 2)
#pragma unroll
        for (int i = 0; i < kNodes; i += 2 * apart)
            nodes[i] = nodes[i] + nodes[i + apart];
    return nodes[0];
}

// Nodes of one level in ascending order, joined as they come. One thread; memory of kTreeLevels
// floats, `apart` from one to the next.
class NodeCounter
{
public:
    __device__ NodeCounter(float* memory, int apart)
        : m_memory(memory)
        , m_apart(apart)
    {
    }

    __device__ void add(float node)
    {
        int level = 0;
        for (; (m_count >> level & 1) != 0; ++level)
            node = m_memory[level * m_apart] + node;
        m_memory[level * m_apart] = node;
        ++m_count;
    }

    __device__ float total() const
    {
        float sum = 0.0F;
        for (int level = 0; m_count >> level != 0; ++level)
            if ((m_count >> level & 1) != 0)
                sum = m_memory[level * m_apart] + sum;
        return sum;
    }

private:
    float* m_memory;
    int m_apart;
    std::int64_t m_count = 0;
};

// Shared memory of one sum. Rounds take turns with `warps`, so that one barrier a round is enough.
struct SumMemory {
    float warps[2][kWarp];
    float levels[kTreeLevels];
};

// Pairwise over threads `apart`, 2 * apart, ... below `width` away. All lanes of a warp.
__device__ inline float joinThreads(float node, int apart, int width)
{
    for (; apart < width; apart *= 2)
        node = node + __shfl_xor_sync(kAllLanes, node, apart);
    return node;
}

// ((0+4) + (2+6)) + ((1+5) + (3+7)) of the lanes of adjacent threads. All lanes of a warp.
template <int kPack>
__device__ float joinLanes(float (&lanes)[kPack])
{
#pragma unroll
    for (int apart = kLanesOfSum / 2; apart > 0; apart /= 2)
#pragma unroll
        for (int k = 0; k < kPack; ++k)
            if (apart >= kPack)
                lanes[k] = lanes[k] + __shfl_xor_sync(kAllLanes, lanes[k], apart / kPack);
            else if (k < apart)
                lanes[k] = lanes[k] + lanes[k + apart];
    return lanes[0];
}

// The node of elements [first, first + 256) below `count`, in each of its threads; all lanes of a
// warp. Terms is a struct with
//     struct Held;                                      the pack that a thread reads
//     Held load(at) const;                              of elements [at, at + kPack)
//     void add(float (&lanes)[kPack], const Held&) const;
template <int kPack, typename Terms>
__device__ float sumNode(std::int64_t first, std::int64_t count, const Terms& terms)
{
    constexpr int kThreadsOfNode = kLanesOfSum / kPack;
    constexpr int kHeldPacks = kPack == 1 ? 8 : 4;
    const std::int64_t at = first + threadIdx.x % kThreadsOfNode * kPack;
    float lanes[kPack] = {};
    if (first + kColumnsOfBlock <= count) {
#pragma unroll 1
        for (int i = 0; i < kColumnsOfBlock; i += kHeldPacks * kLanesOfSum) {
            typename Terms::Held held[kHeldPacks];
#pragma unroll
            for (int k = 0; k < kHeldPacks; ++k)
                held[k] = terms.load(at + i + k * kLanesOfSum);
#pragma unroll
            for (int k = 0; k < kHeldPacks; ++k)
                terms.add(lanes, held[k]);
        }
    } else {
#pragma unroll 1
        for (std::int64_t i = at; i < count; i += kLanesOfSum)
            terms.add(lanes, terms.load(i));
    }
    return joinLanes<kPack>(lanes);
}

// The sum over `count` elements, a multiple of kPack, in thread 0 along x.
// blockDim.x: sumThreads(); with more than a warp blockDim.y is 1.
template <int kPack, typename Terms>
__device__ float sumAsRow(std::int64_t count, SumMemory& shared, const Terms& terms)
{
    constexpr int kThreadsOfNode = kLanesOfSum / kPack;
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    const std::int64_t mine = std::int64_t{thread / kThreadsOfNode} * kColumnsOfBlock;
    if (threads <= kWarp)
        return joinThreads(sumNode<kPack>(mine, count, terms), kThreadsOfNode, threads);
    const std::int64_t ofRound = std::int64_t{threads / kThreadsOfNode} * kColumnsOfBlock;
    NodeCounter rounds(shared.levels, 1);
    int turn = 0;
    for (std::int64_t first = 0; first < count; first += ofRound) {
        float sum = joinThreads(sumNode<kPack>(first + mine, count, terms), kThreadsOfNode, kWarp);
        float(&warps)[kWarp] = shared.warps[turn];
        turn = 1 - turn;
        if (thread % kWarp == 0)
            warps[thread / kWarp] = sum;
        __syncthreads();
        if (thread >= kWarp)
            continue;
        sum = joinThreads(thread < threads / kWarp ? warps[thread] : 0.0F, 1, threads / kWarp);
        if (thread == 0)
            rounds.add(sum);
    }
    return rounds.total();
}

// Threads along x for a sum over `count` elements: a power of two, all nodes at once if they fit.
inline unsigned sumThreads(std::int64_t count, int pack) noexcept
{
    const std::int64_t nodes = (count + kColumnsOfBlock - 1) / kColumnsOfBlock;
    auto threads = static_cast<unsigned>(kLanesOfSum / pack);
    for (std::int64_t held = 1; held < nodes && threads < kMostSumThreads; held *= 2)
        threads *= 2;
    return threads;
}

} // namespace mr::gpu
