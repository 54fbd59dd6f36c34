// Counts of a kernel's steps: how often each runs and with how many lanes, the sectors of global
// memory and the waves of shared memory that it asks for; and the class of work it is.
//
// Steps are instructions of PTX. ptxas makes none of a move, and several of a division or of 64-bit
// arithmetic.
//
// Threads  One at a time.
// Units    "wave": one pass over the 32 banks of shared memory, 128 bytes at most.
// Source   CUDA C++ Programming Guide 13.0, "Shared Memory"; CUDA C++ Best Practices Guide 13.0,
//          "Coalesced Access to Global Memory".

#pragma once

#include "gpu/ptx/warp.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr::ptx {

inline constexpr std::uint64_t kSectorBytes = 32; // of global memory, moved together

struct StepCount {
    std::uint64_t times = 0;      // by warps
    std::uint64_t lanes = 0;      // that took part, over all times
    std::uint64_t sectors = 0;    // of global memory, once for all lanes of a warp
    std::uint64_t bytesUsed = 0;  // of these sectors, what some lane asked for
    std::uint64_t waves = 0;      // of shared memory
    std::uint64_t wavesLeast = 0; // ... if no bank had two words to give

    StepCount& operator+=(const StepCount& other);
};

// By step of the program, over the launches that it was given to.
struct Counters {
    std::vector<StepCount> steps;

    StepCount total() const;
};

using LaneAddresses = std::array<std::uint64_t, kLanes>;

// An access of these lanes to `bytes` of global memory each.
void countSectors(
    StepCount& count, const LaneAddresses& addresses, Mask lanes, std::uint64_t bytes);

// ... of shared memory. Lanes are served 128 bytes at a time; a bank gives its words of 4 bytes one
// after the other, a word to all lanes that ask for it.
void countWaves(StepCount& count, const LaneAddresses& addresses, Mask lanes, std::uint64_t bytes);

enum class StepClass : std::uint8_t {
    Move,       // also of parameters, and constants that ptxas adds to an address in the access
    Address,    // integers that end in an address
    Integer,    // ... that do not
    Float,      // sums, products, comparisons
    Special,    // approximate functions, and divisions and roots that begin with one
    Conversion, // to and from floating point
    Memory,     // global, shared, local; copies; ldmatrix
    Exchange,   // between lanes
    Product,    // mma
    Control,    // branches, comparisons of integers, logic of predicates, barriers, waits
    Count
};

inline constexpr std::size_t kStepClasses = static_cast<std::size_t>(StepClass::Count);

// By step.
std::vector<StepClass> classesOf(const Program& program);

// Steps [first, end).
struct StepRange {
    std::size_t first = 0;
    std::size_t end = 0;
};

// The loop without a loop inside in which most steps ran, if these are at least half of all; else
// the whole program.
StepRange hotSteps(const Program& program, const Counters& counters);

} // namespace mr::ptx
