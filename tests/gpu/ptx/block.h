// A block of threads that runs a program: its warps, its shared memory, who waits for whom.
//
// Within a warp the lanes whose next step is the same run together; lanes that went another way
// run later, those that are further behind first. Which warp runs, and for how many steps, is
// drawn from a seed. Barriers and instructions of a whole warp wait until all have arrived at the
// same step; a thread that has left never arrives.
//
// Threads  One at a time.
// Source   PTX ISA 9.0: bar, shfl, vote, ldmatrix, mma, cp.async.

#pragma once

#include "gpu/ptx/counters.h"
#include "gpu/ptx/memory.h"
#include "gpu/ptx/warp.h"

#include <millrace/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace mr::ptx {

struct Dims {
    std::uint32_t x = 1;
    std::uint32_t y = 1;
    std::uint32_t z = 1;

    std::uint64_t count() const { return static_cast<std::uint64_t>(x) * y * z; }
};

// Where the ISA leaves room.
struct Freedom {
    std::uint64_t seed = 1;
    bool copiesLate = false;         // cp.async arrives at its wait instead of at once
    bool truncatesProducts = false;  // tensor cores cut sums instead of rounding them
    bool descendingProducts = false; // ... and add from the last product to the first
    bool blursFunctions = false;     // approximate functions err by what is documented
};

struct Launch {
    const Program* program = nullptr;
    Dims grid;
    Dims block;
    std::size_t dynamicShared = 0;
    std::vector<std::byte> parameters;
    GlobalMemory* memory = nullptr;
    Freedom freedom;
    Counters* counters = nullptr;                       // null: nothing is counted
    const std::vector<std::uint32_t>* blocks = nullptr; // numbers of those that run; null: all
    std::vector<std::uint64_t>* executed = nullptr;     // times, by step
    std::uint64_t stepLimit = 0;                        // of all warps; 0: none
};

class Block
{
public:
    explicit Block(const Launch& launch);

    // Runs block (x, y, z) of the grid.
    Status run(Dims index);

    // For the steps:
    const Launch& launch() const { return m_launch; }
    Moment momentOf(const Warp& warp, int lane) const;
    // Null if the access is wrong; the first wrong one ends the block.
    std::byte* global(const Warp& warp, const Step& step, int lane, std::uint64_t address,
        std::size_t bytes, bool writes);
    std::byte* shared(const Warp& warp, const Step& step, int lane, std::uint64_t address,
        std::size_t bytes, bool writes);
    std::byte* local(const Warp& warp, const Step& step, int lane, std::uint64_t address,
        std::size_t bytes, bool writes);
    const std::byte* parameter(
        const Warp& warp, const Step& step, int lane, std::uint64_t address, std::size_t bytes);
    void copyLater(const Warp& warp, const Step& step, int lane, std::uint64_t shared,
        std::uint64_t global, std::size_t bytes, std::size_t read);
    void commitCopies(const Warp& warp, int lane);
    void waitForCopies(const Warp& warp, const Step& step, int lane, std::size_t pending);
    void fail(const Warp& warp, const Step& step, int lane, std::string what);
    float blurred(float exact, float error);
    // Null: nothing is counted.
    StepCount* counted(const Step& step)
    {
        return m_launch.counters ? &m_launch.counters->steps[step.index] : nullptr;
    }

private:
    struct Copy {
        std::uint64_t shared = 0;
        std::array<std::byte, 16> data = {};
        std::size_t bytes = 0;
        bool done = false;
    };
    struct Thread {
        std::vector<Copy> open;                // of the group that is not closed
        std::vector<std::vector<Copy>> groups; // oldest first
    };

    void begin(Dims index);
    void fill(Warp& warp, Dims index);
    void runWarp(Warp& warp, std::uint64_t& steps);
    void count(const Warp& warp, std::uint64_t steps);
    bool control(Warp& warp, const Step& step, Mask group, Mask on, std::uint32_t& at);
    bool meet(Warp& warp, const Step& step, Mask group, std::uint32_t& at);
    bool barrier();
    void arrive(Thread& thread, Copy& copy, const Warp& warp, const Step& step, int lane);

    Launch m_launch;
    std::vector<Warp> m_warps;
    std::vector<Thread> m_threads;
    std::vector<std::byte> m_sharedMemory;
    std::byte* m_shared = nullptr;
    std::size_t m_sharedBytes = 0;
    Shadow m_sharedShadow{0, false};
    std::vector<std::byte> m_local;
    Shadow m_localShadow{0, false};
    std::uint32_t m_number = 0; // of the block in the grid
    std::uint32_t m_barriers = 0;
    std::uint64_t m_steps = 0; // since the launch began, of all warps
    std::mt19937_64 m_random;
    Status m_status;
};

// Runs all blocks of a launch, one after the other, in an order drawn from the seed; counts and
// checks the limits of a launch first.
Status runGrid(const Launch& launch);

} // namespace mr::ptx
