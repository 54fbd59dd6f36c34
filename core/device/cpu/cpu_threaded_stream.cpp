#include "core/base/futex.h"
#include "core/base/thread.h"
#include "core/device/cpu/cpu_streams.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>

namespace mr {
namespace {

constexpr std::size_t kRingBytes = CpuStream::kMaxTasks * sizeof(CpuStream::Task);

} // namespace

void ThreadedStream::FreeRing::operator()(Task* ring) const noexcept
{
    ::munmap(ring, kRingBytes);
}

// Mapped, not allocated: pages that no plan reaches are never touched.
ThreadedStream::ThreadedStream(std::string_view name, CpuShared& shared)
    : CpuStreamBase(name, shared)
{
    void* ring =
        ::mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        throw std::bad_alloc();
    m_ring.reset(static_cast<Task*>(ring));
    shared.threaded.push_back(this);
    m_worker = startThread(
        {m_name, shared.cores.first, shared.cores.count},
        [this](const std::stop_token& stop) { return workerLoop(stop); },
        [this](const Status& status) { m_shared.failure.set(status); });
}

ThreadedStream::~ThreadedStream()
{
    publish();
    m_worker.request_stop();
    futexWakeAll(m_published);
    m_worker.join();
    std::erase(m_shared.threaded, this);
}

void ThreadedStream::publish() noexcept
{
    if (m_published.load(std::memory_order_relaxed) == m_enqueued)
        return;
    m_published.store(m_enqueued, std::memory_order_release);
    futexWakeAll(m_published);
}

CpuStream::Task& ThreadedStream::nextTask()
{
    // m_done is looked at only when it must be: acquiring it orders the engine after this stream,
    // and so, falsely, every stream it enqueues to afterwards.
    while (m_enqueued - m_seenDone == kMaxTasks) {
        m_seenDone = m_done.load(std::memory_order_acquire);
        if (m_enqueued - m_seenDone < kMaxTasks)
            break;
        m_shared.submit();
        futexWait(m_done, m_seenDone, std::chrono::milliseconds(1)); // nobody wakes: polled
    }
    return m_ring.get()[m_enqueued % kMaxTasks];
}

Status ThreadedStream::waitFor(Gate& gate, std::uint64_t generation)
{
    put(
        [this, gate = static_cast<const CpuGate*>(&gate), generation] {
            if (!m_abandoned && !gate->wait(generation, m_stop))
                m_abandoned = true;
        },
        false);
    return {};
}

void ThreadedStream::waitForPoint(const Point& point)
{
    if (!m_abandoned && !point.wait(m_stop))
        m_abandoned = true;
}

Status ThreadedStream::workerLoop(const std::stop_token& stop)
{
    m_stop = stop;
    std::uint32_t done = 0;
    for (int idle = 0;; ++idle) {
        const std::uint32_t published = m_published.load(std::memory_order_acquire);
        if (published != done) {
            for (idle = 0; done != published;) {
                runTask(m_ring.get()[done % kMaxTasks]);
                m_done.store(++done, std::memory_order_release);
            }
        } else if (stop.stop_requested()) {
            return {};
        } else if (idle < kCpuSpins) {
            _mm_pause();
        } else {
            futexWait(m_published, published, kCpuPoll);
        }
    }
}

} // namespace mr
