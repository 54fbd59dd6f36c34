// Services for a thread of a running kernel: its indices, shared memory, barriers, warp functions,
// asynchronous copies.
//
// Threads  Inside a kernel that runGrid() runs.
// Errors   A misuse stops the grid; the call does not return.

#pragma once

#include "gpu/simt/call_site.h"
#include "gpu/simt/vector_types.h"

#include <cstdint>
#include <cstring>

// Built-in variables of the running thread; threadIdx is set at each switch.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace mr::simt {

inline constexpr int kLanes = 32;

int laneIndex() noexcept;

// The bytes of Launch::sharedBytes, aligned to 128.
unsigned char* dynamicSharedMemory();

void syncBlock(const CallSite& where);

// A call that all lanes of `mask` make together, from one line.
struct Meeting {
    const char* what;
    unsigned mask;
    const CallSite& where;
};

// `operands` by lane; those of lanes outside `mask` are not to be touched.
using Apply = void (*)(void* const* operands, unsigned mask);

// Returns when all lanes of the mask came, after the last of them ran `apply` for all.
void meet(const Meeting& meeting, void* operand, Apply apply);

void syncWarp(unsigned mask, const CallSite& where);
unsigned ballot(const Meeting& meeting, bool predicate);

// `bits` of the lane `source`.
std::uint64_t shuffleBits(const Meeting& meeting, std::uint64_t bits, int source);

template <typename T, typename SourceOf>
T shuffle(const Meeting& meeting, T value, const SourceOf& sourceOf)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = shuffleBits(meeting, bits, sourceOf(laneIndex()));
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// As documented in gpu/ptx.cuh; the whole warp.
void loadMatrices(std::uint32_t* r, const void* row, bool transpose, const CallSite& where);
void multiplyFragments(
    float* d, const std::uint32_t* a, const std::uint32_t* b, const CallSite& where);

// 16 bytes, zeros if not `valid`. They arrive when their group is waited for.
void copyAsync(void* to, const void* from, bool valid);
void closeCopies();
void waitForCopies(int pendingGroups);

} // namespace mr::simt
