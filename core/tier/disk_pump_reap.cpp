// The way back: completions, verdicts, gates, and the end after an error.

#include "core/base/clock.h"
#include "core/base/futex.h"
#include "core/tier/disk_pump.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

namespace mr {
namespace {

using std::chrono::microseconds;

constexpr microseconds kIdlePoll{20'000};          // how soon a failure elsewhere is seen
constexpr microseconds kBlockedPoll{250};          // how soon an opened gate is: nobody tells us
constexpr microseconds kAgainPoll{100};            // how exactly a pause is kept
constexpr std::int64_t kShortestPauseNs = 100'000; // doubled with every busy answer: 25 ms at last

std::uint64_t bytesOfBlock(const DiskTile& tile, std::uint64_t at, std::uint32_t bytes) noexcept
{
    return std::min<std::uint64_t>(bytes, tile.bytes - at);
}

} // namespace

microseconds DiskPump::patience() noexcept
{
    // Said before the rings are looked at once more, so that a push either is seen here or sees it.
    m_parts.shared.sleeping.store(true, std::memory_order_seq_cst);
    for (std::size_t queue = 0; queue < kDiskQueues; ++queue)
        if (m_parts.shared.rings[queue].submitted() != m_queues[queue].seen)
            return microseconds{0};
    if (!m_again.empty())
        return kAgainPoll;
    return m_blocked ? kBlockedPoll : kIdlePoll;
}

void DiskPump::reap()
{
    if (m_broken) {
        std::this_thread::sleep_for(m_blocked ? kBlockedPoll : kIdlePoll);
        return;
    }
    const microseconds limit = patience();
    const int count = m_parts.io.reap(m_completions, limit);
    m_parts.shared.sleeping.store(false, std::memory_order_relaxed);
    for (int i = 0; i < count; ++i)
        complete(m_completions[static_cast<std::size_t>(i)]);
    if (m_requests > 0 || count > 0)
        countBusy();
    if (count >= 0)
        return;
    fail(Status::error(ErrorKind::Io,
        std::string(m_parts.io.name()) + " broke: " + std::generic_category().message(-count) +
            (count == -EBADR ? " (completions were lost)." : ".") + diskWayOut()));
    m_broken = true;
    m_requests = 0; // nobody will tell of them any more; the means waits for them when it closes
}

void DiskPump::countBusy() noexcept
{
    const std::int64_t now = nowNs();
    m_parts.shared.busyNs.fetch_add(now - m_busySinceNs, std::memory_order_relaxed);
    m_busySinceNs = now;
}

void DiskPump::complete(const DiskCompletion& completion)
{
    --m_requests;
    if (m_failed)
        return; // only waited for
    const auto index = static_cast<std::uint32_t>(completion.tag);
    Piece& piece = m_pieces[index];
    const DiskVerdict verdict = judgeCompletion(jobOf(piece).op, piece.bytes - piece.moved,
        resultOf(piece, completion.result), piece.attempts);
    if (verdict.action == DiskAction::Done)
        return finishPiece(index);
    if (verdict.action == DiskAction::Fail)
        return failPiece(piece, completion.result);
    m_parts.shared.retries.fetch_add(1, std::memory_order_relaxed);
    piece.moved += verdict.moved;
    piece.notBeforeNs = verdict.action == DiskAction::AgainLater
                            ? nowNs() + (kShortestPauseNs << (piece.attempts.busy - 1))
                            : 0;
    m_again.push_back(index);
}

// The last page of somebody else's file may end anywhere: a read of it that comes to the end is
// whole.
std::int64_t DiskPump::resultOf(const Piece& piece, std::int64_t result) const noexcept
{
    const DiskTile& tile = tileOf(jobOf(piece));
    const DiskFile& file = *m_parts.files[static_cast<std::size_t>(tile.file)];
    const std::uint64_t first = tile.offset + piece.at + piece.moved;
    const bool isEnd =
        result > 0 && tile.isReadOnly && first + static_cast<std::uint64_t>(result) == file.bytes();
    return isEnd ? static_cast<std::int64_t>(piece.bytes - piece.moved) : result;
}

void DiskPump::finishPiece(std::uint32_t index)
{
    const Piece piece = m_pieces[index];
    m_freePieces.push_back(index);
    const DiskJob& job = jobOf(piece);
    const DiskTile& tile = tileOf(job);
    Active& active = activeOf(piece.queue, piece.job);
    inFlight(job) -= piece.bytes;
    if (job.op == DiskOp::Read && active.hashed)
        active.hash += diskBlockHash(job.memory.data() + piece.at,
            bytesOfBlock(tile, piece.at, piece.bytes), piece.at / m_limits.requestBytes);
    auto& counter = job.op == DiskOp::Read ? m_parts.shared.bytesRead[piece.queue]
                                           : m_parts.shared.bytesWritten[piece.queue];
    counter.fetch_add(piece.bytes, std::memory_order_relaxed);
    active.moved += piece.bytes;
    if (active.moved == diskPadded(tile.bytes))
        finishJob(piece.queue, piece.job);
}

void DiskPump::finishJob(std::size_t queue, std::uint32_t index)
{
    const DiskJob& job = m_parts.shared.rings[queue].at(index);
    Active& active = activeOf(queue, index);
    if (job.op == DiskOp::Write) {
        m_tiles.endWrite(job.tile, active.hashed, active.hash);
    } else {
        if (active.hashed)
            m_parts.shared.verifiedTiles.fetch_add(1, std::memory_order_relaxed);
        if (const Status status = m_tiles.endRead(job.tile, active.hashed, active.hash);
            !status.ok())
            return fail(status);
    }
    if (job.times)
        job.times->endNs = nowNs();
    active.complete = true;
}

void DiskPump::failPiece(const Piece& piece, std::int64_t result)
{
    const DiskJob& job = jobOf(piece);
    const std::uint64_t at = piece.at + piece.moved;
    const Status status = diskFailure(m_parts.names.scene(job.op, job.tile, at,
                                          piece.bytes - piece.moved, job.memory.data() + at),
        result);
    // Somebody else's hand on the file explains more than an error number.
    const Status touched = m_parts.files[static_cast<std::size_t>(tileOf(job).file)]->check();
    fail(touched.ok() ? status
                      : Status::error(ErrorKind::Io, touched.message() + " " + status.message()));
}

void DiskPump::fail(const Status& status) noexcept
{
    m_parts.latch.fail(status);
    m_failed = true;
}

// After an error and once nothing is in flight: opens the gates of jobs that will not run, so that
// nobody waits for them. A job is dropped when its turn has come, so that streams that run on keep
// out of each other's memory; at the end jobs are dropped without their turn, which may never come.
void DiskPump::dropRest(bool stopping) noexcept
{
    for (std::size_t queue = 0; queue < kDiskQueues; ++queue) {
        const DiskJobRing& ring = m_parts.shared.rings[queue];
        Queue& state = m_queues[queue];
        std::uint32_t i = ring.done();
        for (; i != state.seen; ++i) {
            const DiskJob& job = ring.at(i);
            Active& active = activeOf(queue, i);
            const bool begun = static_cast<std::int32_t>(i - state.started) < 0;
            if (!begun && !stopping && !isReady(job)) {
                m_blocked = true;
                break;
            }
            if (begun && !active.complete && job.op == DiskOp::Write)
                m_tiles.poison(job.tile);
            if (job.times)
                job.times->endNs = nowNs();
            active.complete = true;
        }
        state.started = state.unissued = i;
    }
}

// Opens gates in the order of the queue: a job that overtook the one before waits for it here.
void DiskPump::retire(std::size_t queue) noexcept
{
    DiskJobRing& ring = m_parts.shared.rings[queue];
    const std::uint32_t end = m_queues[queue].started;
    bool any = false;
    while (ring.done() != end && activeOf(queue, ring.done()).complete) {
        const DiskJob& job = ring.at(ring.done());
        job.gate->open(job.generation);
        ring.retire();
        m_parts.shared.retired.fetch_add(1, std::memory_order_release);
        any = true;
    }
    if (any)
        futexWakeAll(m_parts.shared.retired);
}

bool DiskPump::isIdle() const noexcept
{
    if (m_requests > 0)
        return false;
    for (std::size_t queue = 0; queue < kDiskQueues; ++queue)
        if (m_parts.shared.rings[queue].done() != m_queues[queue].seen)
            return false;
    return true;
}

} // namespace mr
