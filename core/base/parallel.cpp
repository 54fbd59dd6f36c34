#include "core/base/parallel.h"

#include "core/base/thread.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace mr {
namespace {

// Pauses before sleeping: about 30 us. Ops of a small model follow each other faster than a
// sleeping thread wakes.
constexpr int kSpins = 400;

template <typename Done>
bool spinUntil(Done done)
{
    for (int i = 0; i < kSpins; ++i) {
        if (done())
            return true;
        _mm_pause();
    }
    return done();
}

} // namespace

ThreadPool::ThreadPool(int threads, std::string_view name, int firstCore)
    : m_threadCount(std::max(1, threads))
{
    m_workers.reserve(static_cast<std::size_t>(m_threadCount - 1));
    for (int i = 1; i < m_threadCount; ++i) {
        ThreadOptions options{fmt::format("{}-{}", name, i), firstCore < 0 ? -1 : firstCore + i, 1};
        m_workers.push_back(startThread(
            std::move(options),
            [this, i](const std::stop_token& stop) -> Status {
                workerLoop(stop, i);
                return {};
            },
            nullptr));
    }
}

ThreadPool::~ThreadPool()
{
    for (std::jthread& worker : m_workers)
        worker.request_stop();
}

void ThreadPool::run(std::int64_t count, Item item, void* context)
{
    if (count <= 0)
        return;
    if (m_threadCount == 1) {
        // No lock: it would order streams that forgot to wait for each other.
        for (std::int64_t i = 0; i < count; ++i)
            item(context, i, 0);
        return;
    }
    const std::scoped_lock caller(m_callers);
    m_item = item;
    m_context = context;
    m_count = count;
    m_unfinished.store(count, std::memory_order_relaxed);
    // Both this and the sleeper's check are sequentially consistent: either the sleeper sees
    // the items or we see the sleeper.
    m_remaining.store(count, std::memory_order_seq_cst);
    if (count > 1 && m_sleepers.load(std::memory_order_seq_cst) > 0) {
        const std::scoped_lock lock(m_mutex);
        m_wake.notify_all();
    }
    workItems(0);
    wait();
    if (m_hasFailed.exchange(false))
        std::rethrow_exception(std::exchange(m_failure, nullptr));
}

void ThreadPool::wait()
{
    const auto finished = [&] { return m_unfinished.load(std::memory_order_seq_cst) == 0; };
    if (spinUntil(finished))
        return;
    std::unique_lock lock(m_mutex);
    m_callerSleeps.store(true, std::memory_order_seq_cst);
    m_done.wait(lock, finished);
    m_callerSleeps.store(false, std::memory_order_relaxed);
}

void ThreadPool::runItem(std::int64_t index, int worker) noexcept
{
    try {
        m_item(m_context, index, worker);
    } catch (...) {
        if (!m_hasFailed.exchange(true))
            m_failure = std::current_exception();
    }
}

bool ThreadPool::claim(std::int64_t& remaining) noexcept
{
    remaining = m_remaining.load(std::memory_order_relaxed);
    while (remaining > 0) {
        if (m_remaining.compare_exchange_weak(
                remaining, remaining - 1, std::memory_order_acquire, std::memory_order_relaxed))
            return true;
    }
    return false;
}

void ThreadPool::workItems(int worker) noexcept
{
    std::int64_t remaining = 0;
    while (claim(remaining)) {
        // The job cannot change before our item is finished, so only now may it be read.
        runItem(m_count - remaining, worker);
        if (m_unfinished.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
            m_callerSleeps.load(std::memory_order_seq_cst)) {
            const std::scoped_lock lock(m_mutex);
            m_done.notify_all();
        }
    }
}

void ThreadPool::workerLoop(const std::stop_token& stop, int worker) noexcept
{
    const auto hasItems = [&] { return m_remaining.load(std::memory_order_seq_cst) > 0; };
    while (!stop.stop_requested()) {
        workItems(worker);
        if (spinUntil(hasItems))
            continue;
        std::unique_lock lock(m_mutex);
        m_sleepers.fetch_add(1, std::memory_order_seq_cst);
        m_wake.wait(lock, stop, hasItems);
        m_sleepers.fetch_sub(1, std::memory_order_relaxed);
    }
}

} // namespace mr
