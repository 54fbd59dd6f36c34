#include "core/base/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr int kTries = 20;
constexpr std::chrono::milliseconds kWait{50};

struct Holder {
    pid_t process = 0; // 0: not known
    std::string host;
};

std::string hostName()
{
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : std::string();
}

// "1234 workstation", as write() left it.
Holder readHolder(int descriptor)
{
    std::array<char, 512> text{};
    Holder holder;
    if (::pread(descriptor, text.data(), text.size() - 1, 0) > 0)
        std::istringstream(text.data()) >> holder.process >> holder.host;
    return holder;
}

// Also one that nobody has waited for yet.
bool isGone(const Holder& holder)
{
    if (holder.process <= 0 || holder.host != hostName())
        return false;
    const std::string image = fmt::format("/proc/{}/exe", holder.process);
    return (::kill(holder.process, 0) != 0 && errno == ESRCH) ||
           (::access(image.c_str(), F_OK) != 0 && errno == ENOENT);
}

Status failed(const fs::path& path, int error)
{
    const std::string what =
        error == ELOOP ? "it is a link; remove it" : std::generic_category().message(error);
    return Status::error(error == ELOOP ? ErrorKind::InvalidArgument : ErrorKind::Io,
        "cannot lock " + path.string() + ": " + what);
}

Status inUse(const fs::path& folder, const Holder& holder)
{
    std::string who;
    if (holder.process > 0)
        who = fmt::format(" (process {}{})", holder.process,
            holder.host.empty() || holder.host == hostName() ? "" : " on " + holder.host);
    return Status::error(ErrorKind::InvalidArgument,
        folder.string() + ": a run is being trained there by another Millrace" + who +
            "; wait for it to end, stop it, or choose another folder");
}

bool cannotLock(int error)
{
    return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
}

// For the sentence that others get; without it they get one without a number.
void write(int descriptor)
{
    const std::string text = fmt::format("{} {}\n", ::getpid(), hostName());
    if (::ftruncate(descriptor, 0) == 0)
        (void)!::pwrite(descriptor, text.data(), text.size(), 0);
}

bool isStillThere(int descriptor, const fs::path& path)
{
    struct stat ours {
    };
    struct stat named {
    };
    return ::fstat(descriptor, &ours) == 0 && ::lstat(path.c_str(), &named) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

} // namespace

FolderLock::FolderLock(FolderLock&& other) noexcept
    : m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept
{
    FolderLock taken(std::move(other));
    std::swap(m_descriptor, taken.m_descriptor);
    return *this;
}

FolderLock::~FolderLock()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

Result<FolderLock> FolderLock::take(const fs::path& folder)
{
    const fs::path path = folder / kFile;
    Holder holder;
    for (int i = 0; i < kTries; ++i) {
        FolderLock lock;
        lock.m_descriptor =
            ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (lock.m_descriptor < 0)
            return failed(path, errno);
        struct stat info {
        };
        if (::fstat(lock.m_descriptor, &info) != 0)
            return failed(path, errno);
        if (!S_ISREG(info.st_mode))
            return Status::error(ErrorKind::InvalidArgument,
                "cannot lock " + path.string() + ": it is a device or a pipe; remove it");
        if (::flock(lock.m_descriptor, LOCK_EX | LOCK_NB) == 0) {
            if (!isStillThere(lock.m_descriptor, path))
                continue; // its run was erased in this very moment
            write(lock.m_descriptor);
            return lock;
        }
        if (cannotLock(errno))
            return lock;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return failed(path, errno);
        holder = readHolder(lock.m_descriptor);
        if (!isGone(holder))
            break;
        std::this_thread::sleep_for(kWait);
    }
    return inUse(folder, holder);
}

} // namespace mr
