#include "core/tier/thread_io.h"

#include "core/base/clock.h"
#include "core/base/futex.h"
#include "core/base/thread.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string>

namespace mr {
namespace {

constexpr std::size_t kCapacity = 512;

// As many values as are in flight fit, so it is never full.
template <typename T>
class Ring
{
public:
    bool empty() const noexcept { return m_head == m_tail; }
    void push(const T& value) noexcept { m_values[m_tail++ % kCapacity] = value; }
    T pop() noexcept { return m_values[m_head++ % kCapacity]; }

private:
    std::vector<T> m_values = std::vector<T>(kCapacity);
    std::size_t m_head = 0;
    std::size_t m_tail = 0;
};

class ThreadIo final : public DiskIo
{
public:
    ThreadIo(std::vector<int> descriptors, int threads)
        : m_descriptors(std::move(descriptors))
        , m_name(fmt::format("{} threads", threads))
    {
        for (int i = 0; i < threads; ++i)
            m_threads.push_back(startThread({fmt::format("disk-io-{}", i)},
                [this](const std::stop_token&) -> Status {
                    work();
                    return {};
                },
                {}));
    }

    ~ThreadIo() override
    {
        {
            const std::scoped_lock lock(m_mutex);
            m_stopping = true;
        }
        m_work.notify_all();
    }
    ThreadIo(const ThreadIo&) = delete;
    ThreadIo& operator=(const ThreadIo&) = delete;

    std::string_view name() const noexcept override { return m_name; }
    std::size_t capacity() const noexcept override { return kCapacity; }
    bool submit(const DiskRequest& request) noexcept override;
    int flush() noexcept override { return 0; }
    int reap(std::span<DiskCompletion> out, std::chrono::microseconds limit) noexcept override;
    void wake() noexcept override;

private:
    void work();
    std::int64_t run(const DiskRequest& request) const noexcept;
    int take(std::span<DiskCompletion> out) noexcept;
    void announce() noexcept;

    const std::vector<int> m_descriptors;
    const std::string m_name;
    std::size_t m_inFlight = 0; // the caller's thread

    std::mutex m_mutex;
    std::condition_variable m_work; // requests to do, or the end
    Ring<DiskRequest> m_requests;   // guarded by m_mutex
    Ring<DiskCompletion> m_done;    // guarded by m_mutex
    bool m_stopping = false;        // guarded by m_mutex

    std::atomic<std::uint32_t> m_news = 0; // counts completions and wakes
    std::atomic<bool> m_woken = false;

    std::vector<std::jthread> m_threads; // last: they use everything above
};

bool ThreadIo::submit(const DiskRequest& request) noexcept
{
    if (m_inFlight == kCapacity)
        return false;
    ++m_inFlight;
    {
        const std::scoped_lock lock(m_mutex);
        m_requests.push(request);
    }
    m_work.notify_one();
    return true;
}

// A short transfer is passed on as it is: the caller's table handles it for every means.
std::int64_t ThreadIo::run(const DiskRequest& request) const noexcept
{
    const int descriptor = m_descriptors[static_cast<std::size_t>(request.file)];
    const auto offset = static_cast<off_t>(request.offset);
    const ssize_t moved = request.op == DiskOp::Read
                              ? ::pread(descriptor, request.memory, request.bytes, offset)
                              : ::pwrite(descriptor, request.memory, request.bytes, offset);
    return moved < 0 ? -errno : moved;
}

void ThreadIo::work()
{
    std::unique_lock lock(m_mutex);
    while (true) {
        m_work.wait(lock, [this] { return m_stopping || !m_requests.empty(); });
        if (m_requests.empty())
            return;
        const DiskRequest request = m_requests.pop();
        lock.unlock();
        const DiskCompletion completion{request.tag, run(request)};
        lock.lock();
        m_done.push(completion);
        announce();
    }
}

int ThreadIo::take(std::span<DiskCompletion> out) noexcept
{
    const std::scoped_lock lock(m_mutex);
    int count = 0;
    for (DiskCompletion& completion : out) {
        if (m_done.empty())
            break;
        completion = m_done.pop();
        ++count;
    }
    m_inFlight -= static_cast<std::size_t>(count);
    return count;
}

int ThreadIo::reap(std::span<DiskCompletion> out, std::chrono::microseconds limit) noexcept
{
    const std::int64_t until = nowNs() + std::chrono::nanoseconds(limit).count();
    while (true) {
        const std::uint32_t news = m_news.load(std::memory_order_acquire);
        if (const int count = take(out); count > 0)
            return count;
        const std::int64_t left = until - nowNs();
        if (m_woken.exchange(false, std::memory_order_relaxed) || left <= 0)
            return 0;
        futexWait(m_news, news, std::chrono::microseconds(left / 1000 + 1));
    }
}

void ThreadIo::wake() noexcept
{
    m_woken.store(true, std::memory_order_relaxed);
    announce();
}

void ThreadIo::announce() noexcept
{
    m_news.fetch_add(1, std::memory_order_release);
    futexWakeAll(m_news);
}

} // namespace

std::unique_ptr<DiskIo> makeThreadIo(std::vector<int> descriptors, int threads)
{
    return std::make_unique<ThreadIo>(std::move(descriptors), std::clamp(threads, 1, 64));
}

} // namespace mr
