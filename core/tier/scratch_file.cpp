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

// False, if the system says that no aligned page can go past its cache. Kernels before 6.1 are
// silent, which means nothing.
bool mayBeDirect(int descriptor)
{
#ifdef STATX_DIOALIGN
    struct statx info {
    };
    if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 &&
        (info.stx_mask & STATX_DIOALIGN) != 0)
        return info.stx_dio_offset_align != 0 && info.stx_dio_offset_align <= kDiskPageBytes &&
               info.stx_dio_mem_align <= kDiskPageBytes;
#endif
    (void)descriptor;
    return true;
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
{
    *this = std::move(other);
}

ScratchFile& ScratchFile::operator=(ScratchFile&& other) noexcept
{
    std::swap(m_descriptor, other.m_descriptor);
    std::swap(m_path, other.m_path);
    std::swap(m_bytes, other.m_bytes);
    std::swap(m_inode, other.m_inode);
    std::swap(m_deviceNumber, other.m_deviceNumber);
    std::swap(m_direct, other.m_direct);
    std::swap(m_reused, other.m_reused);
    std::swap(m_remove, other.m_remove);
    std::swap(m_access, other.m_access);
    return *this;
}

ScratchFile::~ScratchFile()
{
    if (m_descriptor < 0)
        return;
    struct stat info {
    };
    if (m_remove && ::stat(m_path.c_str(), &info) == 0 && info.st_ino == m_inode)
        ::unlink(m_path.c_str());
    ::close(m_descriptor);
}

Result<ScratchFile> ScratchFile::open(const ScratchSpec& spec, const ScratchOptions& options)
{
    MR_TRY(checkSpec(spec));
    ScratchFile file;
    file.m_path = spec.folder / (fmt::format("millrace-{}-{}.scratch", spec.runId, spec.index));
    file.m_bytes = spec.bytes;
    MR_TRY(file.claim(spec, options));
    MR_TRY(file.prepare(spec, options));
    return file;
}

// Opens and locks: from then on the file is ours alone, if it is ours.
Status ScratchFile::claim(const ScratchSpec& spec, const ScratchOptions& options)
{
    for (int i = 0; i < kClaimTries; ++i) {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
        m_descriptor =
            ::open(m_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (m_descriptor < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
            return foreign(m_path);
        struct stat info {
        };
        if (m_descriptor < 0 || ::fstat(m_descriptor, &info) != 0)
            return scratchError("cannot open", m_path, errno);
        if (!S_ISREG(info.st_mode))
            return foreign(m_path);
        m_inode = info.st_ino;
        m_deviceNumber = info.st_dev;
        MR_TRY(lock(spec, options));
        if (::stat(m_path.c_str(), &info) == 0 && info.st_ino == m_inode)
            return {};
    }
    return scratchError("cannot claim", m_path, EAGAIN);
}

// A program that was killed has its lock until the system has ended its requests: that is waited
// for, a living one is not.
Status ScratchFile::lock(const ScratchSpec& spec, const ScratchOptions& options) const
{
    pid_t holder = 0;
    for (int i = 0; i < kLockTries; ++i) {
        if (::flock(m_descriptor, LOCK_EX | LOCK_NB) == 0)
            return {};
        holder = lockHolder(m_inode);
        if (holder > 0 && !isGone(holder))
            break;
        if (options.cancelled && options.cancelled())
            return Status::error(
                ErrorKind::Cancelled, "stopped while " + m_path.string() + " was in use");
        std::this_thread::sleep_for(kLockWait);
    }
    const std::string who = holder > 0 ? fmt::format(" (process {})", holder) : "";
    return Status::error(ErrorKind::Io, m_path.string() + " is in use by another program" + who +
                                            ". Wait for it to end, or choose another folder than " +
                                            spec.folder.string() + ".");
}

Status ScratchFile::prepare(const ScratchSpec& spec, const ScratchOptions& options)
{
    MR_ASSIGN(auto header, readScratchHeader(m_descriptor, m_path, spec));
    if (header.kind == ScratchHeaderKind::Foreign)
        return foreign(m_path);
    struct stat info {
    };
    if (::fstat(m_descriptor, &info) != 0)
        return scratchError("cannot look at", m_path, errno);
    m_reused = header.kind == ScratchHeaderKind::Ours && header.filled &&
               header.bytes == spec.bytes && static_cast<std::uint64_t>(info.st_size) == spec.bytes;
    if (!m_reused) {
        m_remove = true; // useless until it is filled
        if (::ftruncate(m_descriptor, 0) != 0)
            return scratchError("cannot empty", m_path, errno);
        MR_TRY(reserve(spec));
    }
    MR_TRY(writeScratchHeader(m_descriptor, m_path, spec, m_reused));
    chooseAccess(options.direct);
    if (!m_reused) {
        MR_TRY(fill(options));
        MR_TRY(writeScratchHeader(m_descriptor, m_path, spec, true));
    }
    m_remove = false;
    return {};
}

// Reports the lack of space first: a fallocate that fails has filled the disk meanwhile.
Status ScratchFile::reserve(const ScratchSpec& spec) const
{
    struct statvfs info {
    };
    if (::fstatvfs(m_descriptor, &info) != 0)
        return scratchError("cannot ask for the free space of", spec.folder, errno);
    const std::uint64_t free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    const int error = free < spec.bytes
                          ? ENOSPC
                          : ::posix_fallocate(m_descriptor, 0, static_cast<off_t>(spec.bytes));
    if (error == ENOSPC || error == EDQUOT || error == EFBIG)
        return Status::error(ErrorKind::OutOfMemory,
            "the scratch file needs " + formatBytes(spec.bytes) + " and " + spec.folder.string() +
                " has " + formatBytes(free) + " free (" + std::generic_category().message(error) +
                "). Free some, choose a folder on another disk, or keep less on the disk.");
    if (error != 0)
        return scratchError("cannot reserve the space of", m_path, error);
    return {};
}

// O_DIRECT where the system offers it and a real read passes: the offer alone says yes too often.
void ScratchFile::chooseAccess(bool direct)
{
    m_direct = false;
    if (!direct) {
        m_access = "buffered I/O, as asked for";
        return;
    }
    if (!mayBeDirect(m_descriptor)) {
        m_access = "buffered I/O, slower: this file system offers no direct I/O in pages of 4 KiB";
        return;
    }
    const int flags = ::fcntl(m_descriptor, F_GETFL);
    const DiskMemory page(kDiskPageBytes);
    int error = ::fcntl(m_descriptor, F_SETFL, flags | O_DIRECT) == 0 ? 0 : errno;
    if (error == 0 && ::pread(m_descriptor, page.data(), kDiskPageBytes, 0) !=
                          static_cast<ssize_t>(kDiskPageBytes)) {
        error = errno;
        (void)::fcntl(m_descriptor, F_SETFL, flags);
    }
    m_direct = error == 0;
    m_access = m_direct ? "direct I/O"
                        : "buffered I/O, slower: direct I/O is refused here (" +
                              std::generic_category().message(error) + ")";
}

Status ScratchFile::fill(const ScratchOptions& options) const
{
    const DiskMemory block(kFillBytes);
    fillWithNoise(block.data(), kFillBytes);
    std::uint64_t done = kDiskPageBytes;
    while (done < m_bytes) {
        if (options.cancelled && options.cancelled())
            return Status::error(ErrorKind::Cancelled, "stopped while the scratch file " +
                                                           m_path.string() +
                                                           " was written; it was removed");
        std::memcpy(block.data(), &done, sizeof(done)); // no two blocks alike
        const std::uint64_t bytes = std::min(kFillBytes, m_bytes - done);
        const ssize_t put = ::pwrite(m_descriptor, block.data(), bytes, static_cast<off_t>(done));
        if (put < 0 && errno == EINTR)
            continue;
        const auto whole =
            static_cast<std::uint64_t>(std::max<ssize_t>(put, 0)) / kDiskPageBytes * kDiskPageBytes;
        if (whole == 0)
            return scratchError(
                fmt::format("cannot fill at byte {} of", done), m_path, put < 0 ? errno : EIO);
        const bool isSyncDue = !m_direct && done / kSyncBytes != (done + whole) / kSyncBytes;
        done += whole;
        if (isSyncDue && ::fdatasync(m_descriptor) != 0)
            return scratchError("cannot bring to the disk", m_path, errno);
        if (options.progress)
            options.progress(done, m_bytes);
    }
    if (::fdatasync(m_descriptor) != 0)
        return scratchError("cannot bring to the disk", m_path, errno);
    return {};
}

Status ScratchFile::check() const
{
    struct stat own {
    };
    struct stat named {
    };
    if (::fstat(m_descriptor, &own) != 0)
        return scratchError("cannot look at", m_path, errno);
    const bool there = ::stat(m_path.c_str(), &named) == 0;
    std::string what;
    if (own.st_nlink == 0)
        what = "was deleted";
    else if (static_cast<std::uint64_t>(own.st_size) != m_bytes)
        what = fmt::format("has {} bytes and not its {}", own.st_size, m_bytes);
    else if (!there || named.st_ino != m_inode || named.st_dev != m_deviceNumber)
        what = "was moved or replaced";
    if (what.empty())
        return {};
    return Status::error(ErrorKind::Io, "scratch file " + m_path.string() + " " + what +
                                            " while the run used it. Leave the scratch folder "
                                            "alone, and resume from the last checkpoint.");
}

} // namespace mr
