#include "core/base/thread.h"

#include "core/base/file.h"

#include <execinfo.h>
#include <fmt/format.h>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <exception>
#include <new>
#include <set>
#include <system_error>
#include <utility>

namespace mr {
Status guarded(const std::string& what, const std::function<Status()>& body)
{
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return Status::error(ErrorKind::OutOfMemory,
            what +
                ": not enough memory: the system has none left; end other programs, or raise the "
                "limit (`ulimit -v`)");
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::resource_unavailable_try_again)
            return Status::error(ErrorKind::Internal,
                what + ": the system starts no more threads or is out of memory (" + e.what() +
                    "); use fewer threads, or end other programs");
        return Status::error(ErrorKind::Internal, what + ": " + e.what());
    } catch (const std::exception& e) {
        return Status::error(ErrorKind::Internal, what + ": " + e.what());
    } catch (...) {
        return Status::error(ErrorKind::Internal, what + ": unknown exception");
    }
}

std::jthread startThread(ThreadOptions options, std::function<Status(const std::stop_token&)> body,
    std::function<void(const Status&)> onError)
{
    return std::jthread([options = std::move(options), body = std::move(body),
                            onError = std::move(onError)](const std::stop_token& stop) {
        pthread_setname_np(pthread_self(), options.name.substr(0, 15).c_str());
        if (options.firstCore >= 0)
            pinToCores(options.firstCore, options.coreCount);
        keepDenormals();
        const Status status = guarded("thread " + options.name, [&] { return body(stop); });
        if (!status.ok() && onError)
            onError(status);
    });
}

void loadUnwinder() noexcept
{
    void* frame = nullptr;
    (void)::backtrace(&frame, 1); // its manual names this side effect
}

void keepDenormals() noexcept
{
    constexpr unsigned kFlushToZero = 0x8000U;
    constexpr unsigned kDenormalsAreZero = 0x0040U;
    _mm_setcsr(_mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero));
}

std::vector<int> physicalCores()
{
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return {0};
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed))
            continue;
        const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
        const std::int64_t package = numberInFile(folder + "physical_package_id").value_or(0);
        // Without topology (some containers) every processor counts as a core.
        const std::int64_t core = numberInFile(folder + "core_id").value_or(-1 - cpu);
        if (seen.emplace(package, core).second)
            cores.push_back(cpu);
    }
    if (cores.empty())
        cores.push_back(0);
    return cores;
}

bool pinToCores(int first, int count) noexcept
{
    // Asked once: a thread that is pinned already would see only its own cores.
    static const std::vector<int> cores = physicalCores();
    if (first < 0 || count < 1 || static_cast<int>(cores.size()) < first + count)
        return false;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = first; i < first + count; ++i)
        CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(i)]), &set);
    return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

} // namespace mr
