#include "core/tier/disk_pump.h"

#include "core/base/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <string>

namespace mr {
namespace {

constexpr std::size_t kCompletionsAtOnce = 64;

std::size_t indexOf(DiskOp op) noexcept
{
    return static_cast<std::size_t>(op);
}

} // namespace

DiskPump::DiskPump(const DiskPumpParts& parts, const DiskPumpLimits& limits)
    : m_parts(parts)
    , m_limits(limits)
    , m_tiles(parts.names, limits.verify)
    , m_pieces(parts.io.capacity())
    , m_inFlight(parts.files.size())
    , m_completions(kCompletionsAtOnce)
{
    m_freePieces.reserve(m_pieces.size());
    m_again.reserve(m_pieces.size());
    for (std::size_t i = m_pieces.size(); i > 0; --i)
        m_freePieces.push_back(static_cast<std::uint32_t>(i - 1));
}

void DiskPump::run()
{
    while (true) {
        // Before the rings are looked at: jobs pushed before the stop are still done.
        const bool stopping = m_parts.shared.stopping.load(std::memory_order_acquire);
        if (m_parts.latch.failed())
            m_failed = true;
        m_blocked = false;
        sendAgain();
        for (std::size_t queue = 0; queue < kDiskQueues; ++queue) {
            m_queues[queue].seen = m_parts.shared.rings[queue].submitted();
            if (!m_failed)
                issueQueue(queue);
        }
        if (m_failed && m_requests == 0)
            dropRest(stopping);
        for (std::size_t queue = 0; queue < kDiskQueues; ++queue)
            retire(queue);
        if (stopping && isIdle())
            return;
        reap();
    }
}

const DiskJob& DiskPump::jobOf(const Piece& piece) const noexcept
{
    return m_parts.shared.rings[piece.queue].at(piece.job);
}

const DiskTile& DiskPump::tileOf(const DiskJob& job) const noexcept
{
    return m_parts.names.layout->tiles[static_cast<std::size_t>(job.tile.value)];
}

DiskPump::Active& DiskPump::activeOf(std::size_t queue, std::uint32_t job) noexcept
{
    return m_queues[queue].active[job % DiskJobRing::kMostJobs];
}

std::uint64_t& DiskPump::inFlight(const DiskJob& job) noexcept
{
    return m_inFlight[static_cast<std::size_t>(tileOf(job).file)][indexOf(job.op)];
}

std::uint64_t DiskPump::budget(DiskOp op) const noexcept
{
    return op == DiskOp::Read ? m_limits.readBytes : m_limits.writeBytes;
}

// Gives this queue's jobs the free places. A job with a full file does not keep the next one from
// another file: tiles take turns over the disks, and each disk must be kept busy.
void DiskPump::issueQueue(std::size_t queue)
{
    Queue& state = m_queues[queue];
    std::bitset<2 * kMostDiskFiles> fullFiles; // bits: file * 2 + direction
    for (std::uint32_t i = state.unissued; i != state.seen; ++i) {
        if (i == state.started && !begin(queue, i))
            return;
        const DiskJob& job = m_parts.shared.rings[queue].at(i);
        const auto file = static_cast<std::size_t>(tileOf(job).file);
        const std::size_t bit = file * 2 + indexOf(job.op);
        if (fullFiles.test(bit))
            return;
        if (issuePieces(queue, i))
            state.unissued += i == state.unissued ? 1 : 0;
        else
            fullFiles.set(bit);
    }
}

// True once job `index` has begun; false: it waits, or must not begin.
bool DiskPump::begin(std::size_t queue, std::uint32_t index)
{
    const DiskJob& job = m_parts.shared.rings[queue].at(index);
    if (!isReady(job)) {
        m_blocked = true;
        return false;
    }
    Active& active = activeOf(queue, index);
    active = {};
    if (job.times && job.times->beginNs == 0) // else another job of the same task was first
        job.times->beginNs = nowNs();
    Status status = job.after ? job.after->wait() : Status();
    if (status.ok())
        status = checkJob(job);
    if (status.ok())
        status = job.op == DiskOp::Read ? m_tiles.beginRead(job.tile, active.hashed)
                                        : m_tiles.beginWrite(job.tile, active.hashed);
    if (!status.ok()) {
        fail(status);
        return false;
    }
    m_queues[queue].started = index + 1;
    return true;
}

bool DiskPump::isReady(const DiskJob& job) const
{
    return (!job.after || job.after->done()) &&
           (!job.afterGate || job.afterGate->isOpen(job.afterGeneration));
}

Status DiskPump::checkJob(const DiskJob& job) const
{
    const std::vector<DiskTile>& tiles = m_parts.names.layout->tiles;
    if (job.tile.value < 0 || static_cast<std::size_t>(job.tile.value) >= tiles.size())
        return Status::error(
            ErrorKind::Internal, fmt::format("disk job of tile {}, of which there are {}",
                                     job.tile.value, tiles.size()));
    const auto address = reinterpret_cast<std::uintptr_t>(job.memory.data());
    if (address % kDiskPageBytes != 0 || job.memory.size() < diskPadded(tileOf(job).bytes))
        return Status::error(
            ErrorKind::Internal, fmt::format("disk {}: memory of {} bytes, {} after a multiple of "
                                             "4096, is too short or not aligned",
                                     m_parts.names.words(job.op, job.tile), job.memory.size(),
                                     address % kDiskPageBytes));
    return {};
}

// True if the whole job has become requests.
bool DiskPump::issuePieces(std::size_t queue, std::uint32_t index)
{
    const DiskJob& job = m_parts.shared.rings[queue].at(index);
    const DiskTile& tile = tileOf(job);
    Active& active = activeOf(queue, index);
    const std::uint64_t all = diskPadded(tile.bytes);
    std::uint64_t& flying = inFlight(job);
    while (active.issued < all) {
        const auto bytes = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(m_limits.requestBytes, all - active.issued));
        if (m_freePieces.empty() || (flying > 0 && flying + bytes > budget(job.op)))
            return false;
        const std::uint32_t slot = m_freePieces.back();
        m_pieces[slot] = {queue, index, active.issued, bytes, 0, {}, 0};
        if (!send(slot))
            return false;
        m_freePieces.pop_back();
        flying += bytes;
        if (job.op == DiskOp::Write && active.hashed)
            active.hash += diskBlockHash(job.memory.data() + active.issued,
                std::min<std::uint64_t>(bytes, tile.bytes - active.issued),
                active.issued / m_limits.requestBytes);
        active.issued += bytes;
        std::uint64_t together = 0;
        for (const auto& file : m_inFlight)
            together += file[0] + file[1];
        if (together > m_parts.shared.mostInFlightBytes.load(std::memory_order_relaxed))
            m_parts.shared.mostInFlightBytes.store(together, std::memory_order_relaxed);
    }
    return true;
}

bool DiskPump::send(std::uint32_t index) noexcept
{
    const Piece& piece = m_pieces[index];
    const DiskJob& job = jobOf(piece);
    const DiskTile& tile = tileOf(job);
    const std::uint64_t at = piece.at + piece.moved;
    if (!m_parts.io.submit({job.op, tile.file, tile.offset + at, job.memory.data() + at,
            piece.bytes - piece.moved, index}))
        return false;
    if (m_requests++ == 0)
        m_busySinceNs = nowNs();
    return true;
}

// Before anything new: these hold places of their budgets. After an error they are dropped.
void DiskPump::sendAgain() noexcept
{
    if (m_failed)
        m_again.clear();
    if (m_again.empty())
        return;
    const std::int64_t now = nowNs();
    std::erase_if(m_again,
        [&](std::uint32_t index) { return m_pieces[index].notBeforeNs <= now && send(index); });
}

} // namespace mr
