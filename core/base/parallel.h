// ThreadPool: fork and join over a counted list of work items, with no allocation per call.
//
// Items are handed out one by one by an atomic counter, so the thread of an item varies. Work that
// needs the same bits with any number of threads therefore makes every item a fixed piece of the
// result (a tile, a row block), never a per-thread share.
//
// Threads  parallelFor() from any thread; a second caller waits until the first has finished,
//          but a pool of one thread runs its callers side by side, each as worker 0. An item must
//          not call parallelFor() of the same pool.
// Errors   Items do not fail: arguments were checked before. An item may throw (it may allocate);
//          parallelFor() rethrows it once all are done, the first one if there are several.
// Lifetime The destructor joins the threads; nobody may be inside parallelFor() then.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace mr {

class ThreadPool
{
public:
    // `threads` >= 1 counts the caller of parallelFor(): threads - 1 are started, named
    // "<name>-1" and so on. `firstCore` >= 0 pins them to the physical cores firstCore + 1, ...
    // (the caller's is firstCore); where that fails the thread runs unpinned.
    ThreadPool(int threads, std::string_view name, int firstCore = -1);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const noexcept { return m_threadCount; }

    // Runs fn(index) or fn(index, worker) for every index in [0, count) and returns when all are
    // done. `worker` in [0, threads()) is the same for all items one thread runs in this call,
    // and no two threads have the same one: it indexes scratch memory. The caller is worker 0.
    template <typename F>
    void parallelFor(std::int64_t count, F&& fn)
    {
        using Fn = std::remove_reference_t<F>;
        run(
            count,
            [](void* context, std::int64_t index, int worker) {
                if constexpr (std::is_invocable_v<Fn&, std::int64_t, int>)
                    (*static_cast<Fn*>(context))(index, worker);
                else
                    (*static_cast<Fn*>(context))(index);
            },
            const_cast<std::remove_const_t<Fn>*>(&fn));
    }

private:
    using Item = void (*)(void* context, std::int64_t index, int worker);

    void run(std::int64_t count, Item item, void* context);
    void wait();
    void runItem(std::int64_t index, int worker) noexcept;
    void workItems(int worker) noexcept;
    bool claim(std::int64_t& remaining) noexcept;
    void workerLoop(const std::stop_token& stop, int worker) noexcept;

    const int m_threadCount;
    std::mutex m_callers; // one parallelFor() at a time

    // The job; written while no item is claimed, read only after a claim.
    Item m_item = nullptr;
    void* m_context = nullptr;
    std::int64_t m_count = 0;

    alignas(64) std::atomic<std::int64_t> m_remaining = 0; // items nobody has claimed
    alignas(64) std::atomic<std::int64_t> m_unfinished = 0;
    std::atomic<int> m_sleepers = 0;
    std::atomic<bool> m_callerSleeps = false;
    std::atomic<bool> m_hasFailed = false;
    std::exception_ptr m_failure; // written by the thread that set m_hasFailed

    std::mutex m_mutex; // for sleeping only
    std::condition_variable_any m_wake;
    std::condition_variable_any m_done;
    std::vector<std::jthread> m_workers; // last: they use everything above
};

} // namespace mr
