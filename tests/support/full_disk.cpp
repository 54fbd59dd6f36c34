#include "support/full_disk.h"

#include <dlfcn.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string_view>
#include <utility>

namespace mr::test {
namespace {

constexpr std::int64_t kNoLimit = -1;

std::atomic<bool> g_isActive = false;
std::string g_folder; // set while inactive
std::atomic<std::int64_t> g_free = kNoLimit;
std::atomic<std::int64_t> g_left = kNoLimit;
std::atomic<int> g_error = 0;
std::atomic<std::uint64_t> g_written = 0;
std::atomic<std::uint64_t> g_asked = 0;
std::mutex g_mutex;
std::vector<std::string> g_synced; // guarded by g_mutex

bool isInside(std::string_view path)
{
    return path.starts_with(g_folder);
}

std::string pathOf(int descriptor)
{
    std::array<char, 4096> path{};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
    return {path.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

bool isInside(int descriptor)
{
    return g_isActive && isInside(std::string_view(pathOf(descriptor)));
}

void noteSync(int descriptor)
{
    if (!isInside(descriptor))
        return;
    const std::lock_guard lock(g_mutex);
    g_synced.push_back(pathOf(descriptor));
}

} // namespace

FullDisk::FullDisk(std::string folder)
{
    g_folder = std::move(folder);
    heal();
    g_written = 0;
    g_asked = 0;
    {
        const std::lock_guard lock(g_mutex);
        g_synced.clear();
    }
    g_isActive = true;
}

FullDisk::~FullDisk()
{
    g_isActive = false;
}

void FullDisk::sayFree(std::int64_t bytes)
{
    g_free = bytes;
}

void FullDisk::failAfter(std::int64_t bytes, int error)
{
    g_error = error;
    g_left = bytes;
}

void FullDisk::heal()
{
    g_left = kNoLimit;
    g_free = kNoLimit;
}

std::uint64_t FullDisk::bytesWritten() const noexcept
{
    return g_written;
}

std::uint64_t FullDisk::timesAsked() const noexcept
{
    return g_asked;
}

std::vector<std::string> FullDisk::synced() const
{
    const std::lock_guard lock(g_mutex);
    return g_synced;
}

} // namespace mr::test

extern "C" int fsync(int descriptor)
{
    mr::test::noteSync(descriptor);
    return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

extern "C" int fdatasync(int descriptor)
{
    mr::test::noteSync(descriptor);
    return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

// A last write that still fits in part is cut short, as a disk does it.
extern "C" ssize_t write(int descriptor, const void* data, std::size_t bytes)
{
    using namespace mr::test;
    const bool isOurs = isInside(descriptor);
    const std::int64_t left = g_left;
    if (isOurs && left == 0) {
        errno = g_error;
        return -1;
    }
    if (isOurs && left > 0)
        bytes = std::min(bytes, static_cast<std::size_t>(left));
    const auto done = static_cast<ssize_t>(::syscall(SYS_write, descriptor, data, bytes));
    if (isOurs && done > 0) {
        g_written += static_cast<std::uint64_t>(done);
        if (left > 0)
            g_left -= done;
    }
    return done;
}

// Only answers: the space asked for is not kept.
extern "C" int fallocate(int descriptor, int mode, off_t offset, off_t bytes)
{
    using namespace mr::test;
    const std::int64_t left = g_left;
    if (left != kNoLimit && isInside(descriptor)) {
        errno = g_error;
        return bytes > left ? -1 : 0;
    }
    return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, bytes));
}

extern "C" int statvfs(const char* path, struct statvfs* out) noexcept
{
    using namespace mr::test;
    using Call = int (*)(const char*, struct statvfs*);
    static const auto real = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "statvfs"));
    const int failed = real(path, out);
    if (failed != 0 || !g_isActive || !isInside(std::string_view(path)))
        return failed;
    ++g_asked;
    if (const std::int64_t free = g_free; free != kNoLimit) {
        out->f_frsize = 1;
        out->f_bavail = static_cast<fsblkcnt_t>(free);
    }
    return 0;
}
