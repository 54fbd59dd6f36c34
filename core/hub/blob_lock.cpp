#include "core/hub/blob_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace mr {
namespace {

constexpr std::chrono::milliseconds kTick{50};

Status cannotLock(const std::filesystem::path& path, int error)
{
    return Status::error(ErrorKind::Io,
        "cannot lock " + path.string() + ": " + std::generic_category().message(error));
}

// Others remove the file when they are done; a lock on a removed one locks nobody out.
bool isNamed(int descriptor, const std::filesystem::path& path)
{
    struct stat ours {
    };
    struct stat named {
    };
    return ::fstat(descriptor, &ours) == 0 && ::lstat(path.c_str(), &named) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

} // namespace

BlobLock::BlobLock(BlobLock&& other) noexcept
    : m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

BlobLock::~BlobLock()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

Result<BlobLock> BlobLock::take(const std::filesystem::path& path, const std::stop_token& stop,
    const std::function<void()>& onWait)
{
    for (bool isTold = false;;) {
        BlobLock lock;
        lock.m_descriptor =
            ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
        if (lock.m_descriptor < 0)
            return cannotLock(path, errno);
        if (::flock(lock.m_descriptor, LOCK_EX | LOCK_NB) == 0) {
            if (isNamed(lock.m_descriptor, path))
                return lock;
            continue;
        }
        if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)
            return lock;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return cannotLock(path, errno);
        if (stop.stop_requested())
            return Status::error(ErrorKind::Cancelled, "stopped");
        if (!std::exchange(isTold, true))
            onWait();
        std::this_thread::sleep_for(kTick);
    }
}

} // namespace mr
