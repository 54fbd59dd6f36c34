// DiskPump: the disk thread's work: jobs in, requests out, completions back, gates open.
//
// Each queue is a pipe: its jobs start in order, the next while the one before is still moving,
// and their gates open in order. Free places go to the queue that is more urgent; reads and
// writes have budgets of their own on each file, so that a burst of writes cannot keep out the
// reads the device waits for.
//
// Threads   Created and run on the disk thread.
// Ownership None; all it is given outlives it.
// Errors    The first goes to the latch. Then nothing is started, requests in flight are waited
//           for, and the gates of the remaining jobs are opened without a byte moved.
// Lifetime  run() returns once it was told to stop and every job has its gate open.
// Units     Bytes; nothing is allocated after construction but the words of an error.

#pragma once

#include "core/base/failure_latch.h"
#include "core/tier/disk_file.h"
#include "core/tier/disk_jobs.h"
#include "core/tier/disk_tiles.h"
#include "core/tier/disk_verdict.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

struct DiskPumpParts {
    const DiskNames& names;
    DiskFiles files;
    DiskIo& io;
    FailureLatch& latch;
    DiskShared& shared;
};

struct DiskPumpLimits {
    std::uint32_t requestBytes = kDiskRequestBytes; // whole pages
    std::uint64_t readBytes = 0;                    // in flight per file
    std::uint64_t writeBytes = 0;
    DiskVerify verify = DiskVerify::Sampled;
};

class DiskPump
{
public:
    DiskPump(const DiskPumpParts& parts, const DiskPumpLimits& limits);

    void run();

private:
    // A job from its start until its gate is open.
    struct Active {
        std::uint64_t issued = 0; // bytes of it that became requests
        std::uint64_t moved = 0;
        std::uint64_t hash = 0;
        bool hashed = false;
        bool complete = false;
    };
    // A part of a job that is one request.
    struct Piece {
        std::size_t queue = 0;
        std::uint32_t job = 0;
        std::uint64_t at = 0; // within the tile
        std::uint32_t bytes = 0;
        std::uint32_t moved = 0; // done by an attempt that was cut short
        DiskAttempts attempts;
        std::int64_t notBeforeNs = 0; // in the list of those to be asked again
    };
    // Positions in one ring: done() <= unissued <= started <= submitted().
    struct Queue {
        std::vector<Active> active = std::vector<Active>(DiskJobRing::kMostJobs);
        std::uint32_t unissued = 0; // the first job with bytes that are no request yet
        std::uint32_t started = 0;  // the first job that has not begun
        std::uint32_t seen = 0;     // last value of submitted()
    };

    const DiskJob& jobOf(const Piece& piece) const noexcept;
    const DiskTile& tileOf(const DiskJob& job) const noexcept;
    Active& activeOf(std::size_t queue, std::uint32_t job) noexcept;
    std::uint64_t& inFlight(const DiskJob& job) noexcept;
    std::uint64_t budget(DiskOp op) const noexcept;
    std::int64_t resultOf(const Piece& piece, std::int64_t result) const noexcept;

    void issueQueue(std::size_t queue);
    bool begin(std::size_t queue, std::uint32_t index);
    bool isReady(const DiskJob& job) const;
    Status checkJob(const DiskJob& job) const;
    bool issuePieces(std::size_t queue, std::uint32_t index);
    bool send(std::uint32_t piece) noexcept;
    void sendAgain() noexcept;

    void reap();
    std::chrono::microseconds patience() noexcept;
    void complete(const DiskCompletion& completion);
    void finishPiece(std::uint32_t index);
    void finishJob(std::size_t queue, std::uint32_t index);
    void failPiece(const Piece& piece, std::int64_t result);

    void fail(const Status& status) noexcept;
    void dropRest(bool stopping) noexcept;
    void retire(std::size_t queue) noexcept;
    bool isIdle() const noexcept;
    void countBusy() noexcept;

    DiskPumpParts m_parts;
    DiskPumpLimits m_limits;
    DiskTiles m_tiles;
    std::array<Queue, kDiskQueues> m_queues;
    std::vector<Piece> m_pieces;
    std::vector<std::uint32_t> m_freePieces;
    std::vector<std::uint32_t> m_again;
    std::vector<std::array<std::uint64_t, 2>> m_inFlight; // bytes by file and DiskOp
    std::vector<DiskCompletion> m_completions;
    std::size_t m_requests = 0; // that the means has
    std::int64_t m_busySinceNs = 0;
    bool m_blocked = false; // a queue waits for a gate or an event, and nobody will wake us
    bool m_failed = false;
    bool m_broken = false; // the means itself; it is not asked again
};

} // namespace mr
