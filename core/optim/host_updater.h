// HostUpdater: the pool that runs AdamW on host memory while the device computes.
//
// One job is the update of some ranges once their gradient has arrived: the pool waits for the
// job's event and gate, reads the step's scalars, cuts the ranges into tiles, works on them with
// all its threads, and opens the job's gate at its generation. Bits do not depend on the number of
// threads: AdamW is elementwise.
//
// Threads  submit(), waitFor(): engine thread. The pool's own threads are named "update-0" ...
// Order    Jobs run one after the other in the order of submission, so the generations of one
//          gate ascend.
// Ownership Memory, events and gates of a job stay the caller's and must live, unchanged, until the
//          gate is open at its generation. Nothing is allocated after construction.
// Errors   An event that fails is posted to the latch; the pool then opens the gates of the
//          remaining jobs without touching a weight, each in its turn.
// Lifetime The destructor finishes the submitted jobs, or drops them if the latch has failed, and
//          joins. Events of jobs must therefore be able to pass: submit the device first.
// Units    Times are nanoseconds on the steady clock.

#pragma once

#include "core/base/failure_latch.h"
#include "core/device/adamw.h"
#include "core/device/compact_state.h"
#include "core/device/device.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace mr {

struct HostUpdateRange {
    AdamwRange range;          // compact state: only its gradient and count are read
    bool decayed = true;       // false: norms and biases
    CompactRange compact = {}; // weight null: the state is that of `range`
};

struct HostUpdateTimes {
    std::int64_t beginNs = 0; // the event had passed and a thread was free
    std::int64_t endNs = 0;   // the last tile was done
};

// Work of another kind, cut into pieces that the pool's threads take. Both are called on the pool.
class HostWork
{
public:
    // Once the job's event has passed: how many pieces there are.
    virtual std::size_t open() noexcept = 0;
    virtual void run(std::size_t piece) noexcept = 0;

protected:
    ~HostWork() = default;
};

struct HostUpdateJob {
    std::span<const HostUpdateRange> ranges;
    AdamwFactors factors;
    const StepScalars* scalars = nullptr; // host memory; read once the event has passed
    Event* after = nullptr;               // null: at once; not recorded again before the gate opens
    Gate* gate = nullptr;
    std::uint64_t generation = 0;
    HostUpdateTimes* times = nullptr; // written before the gate opens; may be null
    HostWork* work = nullptr;         // if set, it is the job; the first three are not read
    const Gate* afterGate = nullptr;  // null: none; its owner opens it after a failure, too
    std::uint64_t afterGeneration = 0;
};

class HostUpdater
{
public:
    // Tiles are cut at multiples of this from the start of a range; it divides by 1,024.
    static constexpr std::size_t kTileElements = std::size_t{1} << 15;
    // Jobs submitted but not finished, beyond which submit() blocks.
    static constexpr std::size_t kMaxJobs = 1024;

    // `threads` >= 1. `firstCore` >= 0 pins them to the physical cores firstCore, firstCore + 1,
    // ...; where that fails they run unpinned.
    HostUpdater(int threads, FailureLatch& latch, int firstCore = -1);
    ~HostUpdater();
    HostUpdater(const HostUpdater&) = delete;
    HostUpdater& operator=(const HostUpdater&) = delete;

    int threads() const noexcept { return static_cast<int>(m_threads.size()); }

    void submit(const HostUpdateJob& job);

    // Blocks until a submitted job opens `gate` at `generation`; for a device with streams that
    // cannot wait. Returns the latch's error.
    Status waitFor(const Gate& gate, std::uint64_t generation);

private:
    void threadLoop();
    bool prepareJob();
    void awaitGate(const HostUpdateJob& job) const;
    std::size_t openJob(const HostUpdateJob& job);
    void finishJob() noexcept;
    void runTile(std::size_t tile) noexcept;
    HostUpdateJob& currentJob() noexcept;

    FailureLatch& m_latch;

    // From the engine to the pool. Counts of jobs since the beginning, modulo 2^32; kMaxJobs
    // divides that. Words and not a mutex: see futex.h.
    std::vector<HostUpdateJob> m_jobs;
    std::uint32_t m_enqueued = 0; // engine thread
    std::uint32_t m_seenDone = 0; // engine thread
    std::atomic<std::uint32_t> m_submitted = 0;
    std::atomic<std::uint32_t> m_done = 0;
    std::atomic<bool> m_stopping = false;

    // Among the pool's threads.
    std::mutex m_mutex;
    std::condition_variable m_changed; // tiles to do, somebody needed to prepare, or the end
    bool m_preparing = false;          // guarded by m_mutex: one thread waits for the next job
    std::size_t m_tileCount = 0;       // the current job's; guarded by m_mutex
    std::size_t m_nextTile = 0;        // guarded by m_mutex
    std::size_t m_tilesDone = 0;       // guarded by m_mutex
    bool m_finished = false;           // guarded by m_mutex: no job will come
    StepScalars m_scalars;             // the current job's; constant while it has tiles

    std::vector<std::jthread> m_threads; // last: they use everything above
};

} // namespace mr
