// How long a launch takes on a card at least, from what it was counted to ask for and what is
// published about the card. Nothing here was measured.
//
// Source   Cards: NVIDIA's pages and white papers on GA102 (RTX 3060: the page of the card), AD102,
//          GB202 and H100, data sheet of the H200. Rates of an SM: CUDA C++ Programming Guide 13.0,
//          "Compute Capabilities" and "Arithmetic Instructions".

#pragma once

#include "bench/ptx_rig.h"
#include "gpu/ops/attention_choice.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace mr::bench {

struct Card {
    const char* name;
    const char* target; // whose PTX and machine code it runs
    int computeMajor;
    int multiprocessors;
    double clockHz;          // boost
    double bytesPerSecond;   // of memory
    double multiplyAdds;     // of an SM in a cycle: BF16 by tensor cores, sums in F32
    std::uint64_t threads;   // of an SM
    std::uint64_t blocks;    // ... at most
    std::size_t sharedBytes; // of an SM

    gpu::AttentionCard attention() const { return {computeMajor, multiprocessors, sharedBytes}; }
};

std::span<const Card> cards();

// Work of all blocks of a launch.
struct Work {
    double bytesAsked = 0;    // whole sectors, each time a warp asks
    double bytesOfMemory = 0; // whole sectors, once each
    double instructions = 0;  // of warps
    double special = 0;       // ... of the units for approximate functions
    double waves = 0;
    double products = 0; // mma
};

Work workOf(const CountedLaunch& launch);

enum class Limit : std::uint8_t { Memory, Issue, Special, Shared, TensorCores };

struct Expected {
    double seconds = 0;
    Limit limit = Limit::Memory;
};

Expected expectedTime(const Work& work, const Card& card);

// Blocks that the card holds at once; 0 if the kernel was not compiled for it.
std::uint64_t slotsOf(const CountedLaunch& launch, const Card& card);

} // namespace mr::bench
