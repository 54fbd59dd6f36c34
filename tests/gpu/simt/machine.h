// Machine: the threads of the block that runs, their waits, and their fibers.
//
// Threads   One. The host calls `run`; the running fiber calls everything below it.
// Ownership Fibers and shared memory, kept from block to block.
// Errors    The first fault stops the block; faultText() describes it.

#pragma once

#include "gpu/simt/fiber.h"
#include "gpu/simt/grid.h"
#include "gpu/simt/ready_set.h"
#include "gpu/simt/thread_side.h"

#include <array>
#include <memory>
#include <random>
#include <vector>

namespace mr::simt {

struct AsyncCopy {
    void* to;
    const void* from;
    bool valid;
    int group;
};

struct Thread {
    enum class State : std::uint8_t { Fresh, Running, AtBarrier, InWarp, Gone };

    State state = State::Fresh;
    uint3 index{};
    Fiber* fiber = nullptr;
    const CallSite* where = nullptr; // the barrier or meeting it waits at
    const Meeting* meeting = nullptr;
    void* operand = nullptr;
    std::vector<AsyncCopy> copies; // not arrived yet
    int closedGroups = 0;
};

class Machine
{
public:
    explicit Machine(const Schedule& schedule)
        : m_schedule(schedule)
        , m_random(schedule.seed)
    {
    }

    // Before the first block of a grid.
    void prepare(const Launch& launch);

    // False: a fault. Sets threadIdx and blockIdx.
    bool runBlock(uint3 block);

    void setSchedule(const Schedule& schedule);

    const Schedule& schedule() const noexcept { return m_schedule; }

    std::minstd_rand& random() noexcept { return m_random; }

    const std::string& fault() const noexcept { return m_fault; }

    // The running fiber:
    Thread& current() noexcept { return m_threads[static_cast<std::size_t>(m_current)]; }

    int currentIndex() const noexcept { return m_current; }

    std::size_t sharedBytes() const noexcept { return m_launch.sharedBytes; }

    unsigned char* shared() noexcept { return m_shared.get(); }

    void waitForBlock(const CallSite& where);
    void waitForWarp(const Meeting& meeting, void* operand, Apply apply);
    void runCurrent();
    // Nothing on the fiber's stack is destroyed, so the caller may hold no memory but `what`.
    [[noreturn]] void stop(std::string&& what);

private:
    struct AlignedDelete {
        void operator()(unsigned char* memory) const noexcept;
    };

    int pick() noexcept;
    void resume(int thread);
    bool arrived(int firstOfWarp, const Meeting& meeting) const;
    void finish(int firstOfWarp, const Meeting& meeting, Apply apply);
    void openBarrier();
    void dropFibers() noexcept;
    std::string place(int thread) const;
    std::string waitingThreads() const;

    Schedule m_schedule;
    std::minstd_rand m_random;
    Launch m_launch;
    std::unique_ptr<unsigned char, AlignedDelete> m_shared;
    std::vector<Thread> m_threads;
    std::vector<std::unique_ptr<Fiber>> m_fibers;
    std::vector<Fiber*> m_idle; // the last used first: its stack is warm
    ReadySet m_ready;
    std::array<unsigned, ReadySet::kThreads / kLanes> m_inWarp{}; // by warp: lanes at a meeting
    int m_blocks = 0;                                             // begun in this grid
    int m_current = 0;
    int m_left = 0;      // threads that have not returned
    int m_atBarrier = 0; // threads that wait there
    std::string m_fault;
};

// The one there is.
Machine& machine();

} // namespace mr::simt
