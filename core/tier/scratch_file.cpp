#include "core/tier/scratch_file.h"

#include "core/base/bytes.h"
#include "core/tier/disk_layout.h"
#include "core/tier/disk_memory.h"
#include "core/tier/file_lock.h"
#include "core/tier/scratch_header.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/stat.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace mr {
namespace {

constexpr std::uint64_t kFillBytes = std::uint64_t{1} << 20;
// Without direct I/O: else the system would keep gigabytes back, and the fdatasync at the end could
// neither be shown nor stopped.
constexpr std::uint64_t kSyncBytes = std::uint64_t{32} << 20;
constexpr std::size_t kMaxRunId = 64;
constexpr auto kLockWait = std::chrono::milliseconds(20);
constexpr int kLockTries = 150;
constexpr int kClaimTries = 8; // a file that vanishes each time between open and lock

Status checkSpec(const ScratchSpec& spec)
{
    const auto fits = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '-' || c == '_';
    };
    if (spec.runId.empty() || spec.runId.size() > kMaxRunId ||
        !std::ranges::all_of(spec.runId, fits) || spec.index < 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format(
                "scratch file: '{}', {} cannot be part of a file name", spec.runId, spec.index));
    if (spec.bytes <= kDiskPageBytes || spec.bytes % kDiskPageBytes != 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("scratch file: {} bytes are not whole pages", spec.bytes));
    std::error_code error;
    if (!std::filesystem::is_directory(spec.folder, error))
        return Status::error(ErrorKind::InvalidArgument,
            "scratch folder " + spec.folder.string() + ": there is no such folder");
    return {};
}

Status foreign(const std::filesystem::path& path)
{
    return Status::error(ErrorKind::InvalidArgument,
        path.string() + " is not a scratch file of Millrace. It was left as it is; move it away or "
                        "choose another folder.");
}

// Bytes that look like training state to a drive: it can neither compress nor deduplicate them.
void fillWithNoise(std::byte* data, std::uint64_t bytes)
{
    std::uint64_t state = 0x9E3779B97F4A7C15U;
    for (std::uint64_t at = 0; at < bytes; at += sizeof(state)) {
        state ^= state << 13U;
        state ^= state >> 7U;
        state ^= state << 17U;
        std::memcpy(data + at, &state, sizeof(state));
    }
}

} // namespace

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : DiskFile(std::move(other))
    , m_reused(other.m_reused)
    , m_remove(std::exchange(other.m_remove, false))
{
}

ScratchFile& ScratchFile::operator=(ScratchFile&& other) noexcept
{
    std::swap(m_reused, other.m_reused);
    std::swap(m_remove, other.m_remove);
    DiskFile::operator=(std::move(other));
    return *this;
}

ScratchFile::~ScratchFile()
{
    struct stat info {
    };
    if (m_remove && descriptor() >= 0 && ::stat(path().c_str(), &info) == 0 &&
        info.st_ino == inode())
        ::unlink(path().c_str());
}

Result<ScratchFile> ScratchFile::open(const ScratchSpec& spec, const ScratchOptions& options)
{
    MR_TRY(checkSpec(spec));
    ScratchFile file;
    file.setPath(
        spec.folder / fmt::format("millrace-{}-{}.scratch", spec.runId, spec.index), spec.bytes);
    MR_TRY(file.claim(spec, options));
    MR_TRY(file.prepare(spec, options));
    return file;
}

// Opens and locks: from then on the file is ours alone, if it is ours.
Status ScratchFile::claim(const ScratchSpec& spec, const ScratchOptions& options)
{
    for (int i = 0; i < kClaimTries; ++i) {
        setDescriptor(
            ::open(path().c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
        if (descriptor() < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
            return foreign(path());
        struct stat info {
        };
        if (descriptor() < 0 || ::fstat(descriptor(), &info) != 0)
            return scratchError("cannot open", path(), errno);
        if (!S_ISREG(info.st_mode))
            return foreign(path());
        setIdentity(info.st_dev, info.st_ino);
        MR_TRY(lock(spec, options));
        if (::stat(path().c_str(), &info) == 0 && info.st_ino == inode())
            return {};
    }
    return scratchError("cannot claim", path(), EAGAIN);
}

// A program that was killed has its lock until the system has ended its requests: that is waited
// for, a living one is not.
Status ScratchFile::lock(const ScratchSpec& spec, const ScratchOptions& options) const
{
    pid_t holder = 0;
    for (int i = 0; i < kLockTries; ++i) {
        if (::flock(descriptor(), LOCK_EX | LOCK_NB) == 0)
            return {};
        holder = lockHolder(inode());
        if (holder > 0 && !isGone(holder))
            break;
        if (options.cancelled && options.cancelled())
            return Status::error(
                ErrorKind::Cancelled, "stopped while " + path().string() + " was in use");
        std::this_thread::sleep_for(kLockWait);
    }
    const std::string who = holder > 0 ? fmt::format(" (process {})", holder) : "";
    return Status::error(ErrorKind::Io, path().string() + " is in use by another program" + who +
                                            ". Wait for it to end, or choose another folder than " +
                                            spec.folder.string() + ".");
}

Status ScratchFile::prepare(const ScratchSpec& spec, const ScratchOptions& options)
{
    MR_ASSIGN(auto header, readScratchHeader(descriptor(), path(), spec));
    if (header.kind == ScratchHeaderKind::Foreign)
        return foreign(path());
    struct stat info {
    };
    if (::fstat(descriptor(), &info) != 0)
        return scratchError("cannot look at", path(), errno);
    m_reused = header.kind == ScratchHeaderKind::Ours && header.filled &&
               header.bytes == spec.bytes && static_cast<std::uint64_t>(info.st_size) == spec.bytes;
    if (!m_reused) {
        m_remove = true; // useless until it is filled
        if (::ftruncate(descriptor(), 0) != 0)
            return scratchError("cannot empty", path(), errno);
        MR_TRY(reserve(spec));
    }
    MR_TRY(writeScratchHeader(descriptor(), path(), spec, m_reused));
    chooseAccess(options.direct);
    if (!m_reused) {
        MR_TRY(fill(options));
        MR_TRY(writeScratchHeader(descriptor(), path(), spec, true));
    }
    m_remove = false;
    return {};
}

// Reports the lack of space first: a fallocate that fails has filled the disk meanwhile.
Status ScratchFile::reserve(const ScratchSpec& spec) const
{
    struct statvfs info {
    };
    if (::fstatvfs(descriptor(), &info) != 0)
        return scratchError("cannot ask for the free space of", spec.folder, errno);
    const std::uint64_t free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    const int error = free < spec.bytes
                          ? ENOSPC
                          : ::posix_fallocate(descriptor(), 0, static_cast<off_t>(spec.bytes));
    if (error == ENOSPC || error == EDQUOT || error == EFBIG)
        return Status::error(ErrorKind::OutOfMemory,
            "the scratch file needs " + formatBytes(spec.bytes) + " and " + spec.folder.string() +
                " has " + formatBytes(free) + " free (" + std::generic_category().message(error) +
                "). Free some, choose a folder on another disk, or keep less on the disk.");
    if (error != 0)
        return scratchError("cannot reserve the space of", path(), error);
    return {};
}

Status ScratchFile::fill(const ScratchOptions& options) const
{
    const DiskMemory block(kFillBytes);
    fillWithNoise(block.data(), kFillBytes);
    std::uint64_t done = kDiskPageBytes;
    while (done < bytes()) {
        if (options.cancelled && options.cancelled())
            return Status::error(ErrorKind::Cancelled, "stopped while the scratch file " +
                                                           path().string() +
                                                           " was written; it was removed");
        std::memcpy(block.data(), &done, sizeof(done)); // no two blocks alike
        const std::uint64_t count = std::min(kFillBytes, bytes() - done);
        const ssize_t put = ::pwrite(descriptor(), block.data(), count, static_cast<off_t>(done));
        if (put < 0 && errno == EINTR)
            continue;
        const auto whole =
            static_cast<std::uint64_t>(std::max<ssize_t>(put, 0)) / kDiskPageBytes * kDiskPageBytes;
        if (whole == 0)
            return scratchError(
                fmt::format("cannot fill at byte {} of", done), path(), put < 0 ? errno : EIO);
        const bool isSyncDue = !direct() && done / kSyncBytes != (done + whole) / kSyncBytes;
        done += whole;
        if (isSyncDue && ::fdatasync(descriptor()) != 0)
            return scratchError("cannot bring to the disk", path(), errno);
        if (options.progress)
            options.progress(done, bytes());
    }
    if (::fdatasync(descriptor()) != 0)
        return scratchError("cannot bring to the disk", path(), errno);
    return {};
}

} // namespace mr
