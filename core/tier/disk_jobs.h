// Jobs that the engine thread gives to the disk thread, and the ring that carries them.
//
// Threads   DiskJobRing: push() by one thread, the rest by one other, done() by any. Wait-free.
// Ownership What a job points to stays the caller's and must live, unchanged, until the gate is
//           open at the job's generation.
// Order     Taking a job out comes after everything the pushing thread did before push().
// Units     Counts of jobs since the beginning, modulo 2^32.

#pragma once

#include "core/device/device.h"
#include "core/tier/disk_io.h"
#include "core/tier/disk_layout.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

// A queue for each use of its jobs, in order of preference.
enum class DiskQueue : std::uint8_t { Weights, Boundaries, StateIn, Out };
inline constexpr std::size_t kDiskQueues = 4;

struct DiskTimes {
    // Its event and gate had passed and its turn had come. Jobs of one task share these: the first
    // of them begins and the last one ends. 0 before.
    std::int64_t beginNs = 0;
    std::int64_t endNs = 0; // its last byte was there
};

struct DiskJob {
    DiskOp op = DiskOp::Read;
    DiskQueue queue = DiskQueue::Weights;
    DiskTileId tile;
    // From the tile to here or from here to the tile; starts at a multiple of 4,096 and has at
    // least diskPadded(bytes of the tile). What lies after the tile's own bytes is moved, not kept.
    std::span<std::byte> memory;
    Event* after = nullptr;          // null: none; not recorded again before the gate opens
    const Gate* afterGate = nullptr; // null: none
    std::uint64_t afterGeneration = 0;
    Gate* gate = nullptr;
    std::uint64_t generation = 0;
    DiskTimes* times = nullptr; // written before the gate opens; may be null
};

class DiskJobRing
{
public:
    static constexpr std::uint32_t kMostJobs = 1024; // divides 2^32

    // False: full.
    bool push(const DiskJob& job) noexcept
    {
        if (m_pushed - m_done.load(std::memory_order_acquire) == kMostJobs)
            return false;
        m_jobs[m_pushed % kMostJobs] = job;
        // Sequentially consistent with the disk thread's "I am going to sleep".
        m_submitted.store(++m_pushed, std::memory_order_seq_cst);
        return true;
    }

    std::uint32_t submitted() const noexcept { return m_submitted.load(std::memory_order_seq_cst); }
    std::uint32_t done() const noexcept { return m_done.load(std::memory_order_relaxed); }
    // `index` from done() to submitted().
    const DiskJob& at(std::uint32_t index) const noexcept { return m_jobs[index % kMostJobs]; }
    // From here on the oldest job's place may be filled again.
    void retire() noexcept { m_done.store(done() + 1, std::memory_order_release); }

private:
    std::vector<DiskJob> m_jobs = std::vector<DiskJob>(kMostJobs);
    std::uint32_t m_pushed = 0; // the pushing thread's
    std::atomic<std::uint32_t> m_submitted = 0;
    std::atomic<std::uint32_t> m_done = 0;
};

// Between the two threads of a DiskStore.
struct DiskShared {
    std::array<DiskJobRing, kDiskQueues> rings;
    std::atomic<std::uint32_t> retired = 0; // jobs of all queues; a futex word
    std::atomic<bool> sleeping = false;     // the disk thread waits, or is about to
    std::atomic<bool> stopping = false;

    // Written by the disk thread, read by any.
    std::array<std::atomic<std::uint64_t>, kDiskQueues> bytesRead{};
    std::array<std::atomic<std::uint64_t>, kDiskQueues> bytesWritten{};
    std::atomic<std::int64_t> busyNs = 0;
    std::atomic<std::uint64_t> mostInFlightBytes = 0;
    std::atomic<std::uint64_t> retries = 0;
    std::atomic<std::uint64_t> verifiedTiles = 0;
};

} // namespace mr
