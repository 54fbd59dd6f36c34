// The two kinds of CpuStream, and the state that all streams of one device share.
//
// Threads  As in cpu_stream.h; CpuStreamSet: engine thread.

#pragma once

#include "core/device/cpu/cpu_event.h"
#include "core/device/cpu/cpu_link.h"
#include "core/device/cpu/cpu_memory.h"
#include "core/device/cpu/cpu_stream.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace mr {

class ThreadedStream;

struct CpuCores {
    int first = -1; // -1: not pinned
    int count = 1;
};

struct CpuShared {
    CpuShared(std::size_t memoryBytes, double linkBytesPerSecond, CpuCores pinTo)
        : memory(memoryBytes)
        , toDevice(linkBytesPerSecond)
        , toHost(linkBytesPerSecond)
        , cores(pinTo)
    {
    }

    void submit() noexcept;

    CpuMemory memory;
    CpuFailure failure;
    PointPool points;
    CpuLink toDevice;
    CpuLink toHost;
    const CpuCores cores;
    LinkBytes copied;                      // engine thread, which enqueues
    std::vector<ThreadedStream*> threaded; // not owned; those that live
};

// Points, events and copies, the same for both kinds.
class CpuStreamBase : public CpuStream
{
public:
    CpuStreamBase(std::string_view name, CpuShared& shared)
        : m_shared(shared)
        , m_name(name)
    {
    }

    std::string_view name() const noexcept override { return m_name; }

    Status record(Event& event) override;
    Status waitFor(Event& event) override;
    Status copy(std::byte* to, std::span<const std::byte> from) override;

protected:
    // Skipped on a lost device and after an abandoned wait; a failure makes the device lost.
    void runTask(Task& task) noexcept;
    virtual void waitForPoint(const Point& point) = 0;

    CpuShared& m_shared;
    const std::string m_name;
    bool m_abandoned = false; // touched by the thread that runs tasks only
};

class InlineStream final : public CpuStreamBase
{
public:
    using CpuStreamBase::CpuStreamBase;

    using CpuStreamBase::waitFor;
    // Internal if the gate is closed: nobody could open it while the engine thread waits here.
    Status waitFor(Gate& gate, std::uint64_t generation) override;

protected:
    Task& nextTask() override { return m_task; }
    void commitTask() override { runTask(m_task); }
    void waitForPoint(const Point&) override {} // all enqueued work has run

private:
    Task m_task{};
};

class ThreadedStream final : public CpuStreamBase
{
public:
    ThreadedStream(std::string_view name, CpuShared& shared);
    ~ThreadedStream() override;

    using CpuStreamBase::waitFor;
    Status waitFor(Gate& gate, std::uint64_t generation) override;

    // Lets the worker run the work enqueued so far. Never blocks.
    void publish() noexcept;

protected:
    Task& nextTask() override;
    void commitTask() override { ++m_enqueued; }
    void waitForPoint(const Point& point) override;

private:
    struct FreeRing {
        void operator()(Task* ring) const noexcept;
    };

    Status workerLoop(const std::stop_token& stop);

    // Counts of tasks since the beginning, modulo 2^32; kMaxTasks divides that.
    std::uint32_t m_enqueued = 0;               // engine thread
    std::uint32_t m_seenDone = 0;               // engine thread: m_done when it last looked
    std::atomic<std::uint32_t> m_published = 0; // written by the engine, read by the worker
    std::atomic<std::uint32_t> m_done = 0;      // the other way; read only when the ring looks full
    std::stop_token m_stop;                     // worker thread
    std::unique_ptr<Task, FreeRing> m_ring;     // kMaxTasks slots
    std::jthread m_worker;                      // last: it uses everything above
};

} // namespace mr
