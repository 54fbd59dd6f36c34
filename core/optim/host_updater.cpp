#include "core/optim/host_updater.h"

#include "core/base/clock.h"
#include "core/base/futex.h"
#include "core/base/thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string>

namespace mr {
namespace {

// How soon a stop or a failure is seen where no word changes.
constexpr std::chrono::milliseconds kPoll{20};
constexpr std::chrono::microseconds kGatePoll{50};

std::size_t tilesOf(const HostUpdateRange& part) noexcept
{
    return (part.range.count + HostUpdater::kTileElements - 1) / HostUpdater::kTileElements;
}

const std::byte* gradientAt(const AdamwRange& range, std::size_t first) noexcept
{
    return static_cast<const std::byte*>(range.grad) + first * sizeOf(range.gradType);
}

AdamwRange tileOf(const AdamwRange& range, std::size_t tile) noexcept
{
    const std::size_t first = tile * HostUpdater::kTileElements;
    AdamwRange part = range;
    part.high += first;
    part.low += first;
    part.m += first;
    part.v += first;
    part.grad = gradientAt(range, first);
    part.count = std::min(range.count - first, HostUpdater::kTileElements);
    return part;
}

static_assert(HostUpdater::kTileElements % kCompactGroup == 0);

CompactRange tileOf(const CompactRange& range, std::size_t tile) noexcept
{
    const std::size_t first = tile * HostUpdater::kTileElements;
    const std::size_t group = first / kCompactGroup;
    return {range.weight + first, range.remainder + first, range.m + first, range.v + first,
        range.mScale + group, range.vScale + group,
        std::min(range.count - first, HostUpdater::kTileElements)};
}

void updateTile(const HostUpdateRange& part, std::size_t tile, const AdamwFactors& factors,
    float clipFactor) noexcept
{
    if (!part.compact.weight)
        return adamwUpdate(tileOf(part.range, tile), factors, clipFactor, part.decayed);
    adamwCompactUpdate(tileOf(part.compact, tile),
        gradientAt(part.range, tile * HostUpdater::kTileElements), part.range.gradType, factors,
        clipFactor, part.decayed);
}

} // namespace

HostUpdater::HostUpdater(int threads, FailureLatch& latch, int firstCore)
    : m_latch(latch)
    , m_jobs(kMaxJobs)
{
    for (int i = 0; i < std::max(1, threads); ++i)
        m_threads.push_back(startThread(
            {fmt::format("update-{}", i), firstCore < 0 ? -1 : firstCore + i, 1},
            [this](const std::stop_token&) -> Status {
                threadLoop();
                return {};
            },
            [this](const Status& status) { m_latch.fail(status); }));
}

HostUpdater::~HostUpdater()
{
    m_stopping.store(true, std::memory_order_release);
    futexWakeAll(m_submitted);
}

void HostUpdater::submit(const HostUpdateJob& job)
{
    assert(job.gate && (job.work || job.scalars));
    while (m_enqueued - m_seenDone == kMaxJobs) {
        m_seenDone = m_done.load(std::memory_order_acquire);
        if (m_enqueued - m_seenDone == kMaxJobs)
            futexWait(m_done, m_seenDone, kPoll);
    }
    m_jobs[m_enqueued % kMaxJobs] = job;
    m_submitted.store(++m_enqueued, std::memory_order_release);
    futexWakeAll(m_submitted);
}

Status HostUpdater::waitFor(const Gate& gate, std::uint64_t generation)
{
    while (!m_latch.failed()) {
        const std::uint32_t done = m_done.load(std::memory_order_relaxed);
        if (gate.isOpen(generation))
            break; // by the job, or since something failed meanwhile
        futexWait(m_done, done, kPoll);
    }
    return m_latch.status();
}

HostUpdateJob& HostUpdater::currentJob() noexcept
{
    return m_jobs[m_done.load(std::memory_order_relaxed) % kMaxJobs];
}

void HostUpdater::threadLoop()
{
    std::unique_lock lock(m_mutex);
    while (!m_finished) {
        if (m_nextTile < m_tileCount) {
            const std::size_t tile = m_nextTile++;
            lock.unlock();
            runTile(tile);
            lock.lock();
            if (++m_tilesDone == m_tileCount) { // this thread prepares the next job: wake no other
                m_tileCount = m_nextTile = m_tilesDone = 0;
                finishJob();
            }
        } else if (m_tileCount == 0 && !m_preparing) {
            m_preparing = true;
            lock.unlock();
            const bool more = prepareJob();
            lock.lock();
            m_preparing = false;
            m_finished = !more;
            if (more) {
                m_tileCount = openJob(currentJob());
                if (m_tileCount == 0)
                    finishJob();
            }
            m_changed.notify_all();
        } else {
            m_changed.wait(lock);
        }
    }
}

// Waits for the next job and its event. False: the end.
bool HostUpdater::prepareJob()
{
    const std::uint32_t current = m_done.load(std::memory_order_relaxed);
    while (m_submitted.load(std::memory_order_acquire) == current) {
        if (m_stopping.load(std::memory_order_acquire))
            return m_submitted.load(std::memory_order_acquire) != current;
        futexWait(m_submitted, current, kPoll);
    }
    const HostUpdateJob& job = currentJob();
    if (job.after)
        if (const Status status = job.after->wait(); !status.ok())
            m_latch.fail(status);
    awaitGate(job);
    return true;
}

// A gate cannot be slept on; it opens within milliseconds. The pool waits for it after a failure,
// too: streams that run on must not meet in the same memory.
void HostUpdater::awaitGate(const HostUpdateJob& job) const
{
    const auto isOver = [this] { return m_stopping.load() && m_latch.failed(); };
    while (job.afterGate && !job.afterGate->isOpen(job.afterGeneration) && !isOver())
        std::this_thread::sleep_for(kGatePoll);
}

// How many tiles the job has; none where nothing may be updated.
std::size_t HostUpdater::openJob(const HostUpdateJob& job)
{
    if (job.times)
        job.times->beginNs = nowNs();
    if (m_latch.failed())
        return 0;
    if (job.work)
        return job.work->open();
    m_scalars = *job.scalars;
    std::size_t tiles = 0;
    if (m_scalars.finite != 0)
        for (const HostUpdateRange& part : job.ranges)
            tiles += tilesOf(part);
    return tiles;
}

void HostUpdater::finishJob() noexcept
{
    const HostUpdateJob& job = currentJob();
    if (job.times)
        job.times->endNs = nowNs();
    job.gate->open(job.generation);
    // Last: from here on the slot may be filled again.
    m_done.store(m_done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    futexWakeAll(m_done);
}

void HostUpdater::runTile(std::size_t tile) noexcept
{
    const HostUpdateJob& job = currentJob();
    if (job.work)
        return job.work->run(tile);
    for (const HostUpdateRange& part : job.ranges) {
        const std::size_t tiles = tilesOf(part);
        if (tile < tiles) {
            updateTile(part, tile, job.factors, m_scalars.clipFactor);
            return;
        }
        tile -= tiles;
    }
}

} // namespace mr
