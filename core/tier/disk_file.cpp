#include "core/tier/disk_file.h"

#include "core/tier/disk_layout.h"
#include "core/tier/disk_memory.h"
#include "core/tier/scratch_header.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace mr {
namespace {

std::int64_t changedNs(const struct stat& info)
{
    return std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
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

} // namespace

DiskFile::DiskFile(DiskFile&& other) noexcept
{
    *this = std::move(other);
}

DiskFile& DiskFile::operator=(DiskFile&& other) noexcept
{
    std::swap(m_descriptor, other.m_descriptor);
    std::swap(m_path, other.m_path);
    std::swap(m_bytes, other.m_bytes);
    std::swap(m_inode, other.m_inode);
    std::swap(m_deviceNumber, other.m_deviceNumber);
    std::swap(m_changedNs, other.m_changedNs);
    std::swap(m_direct, other.m_direct);
    std::swap(m_isReadOnly, other.m_isReadOnly);
    std::swap(m_access, other.m_access);
    return *this;
}

DiskFile::~DiskFile()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

Result<DiskFile> DiskFile::openToRead(const std::filesystem::path& path)
{
    DiskFile file;
    file.m_isReadOnly = true;
    file.m_descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info {
    };
    if (file.m_descriptor < 0 || ::fstat(file.m_descriptor, &info) != 0)
        return scratchError("cannot open", path, errno);
    if (!S_ISREG(info.st_mode))
        return Status::error(ErrorKind::Io, path.string() + " is not a file");
    file.setPath(path, static_cast<std::uint64_t>(info.st_size));
    file.setIdentity(info.st_dev, info.st_ino);
    file.m_changedNs = changedNs(info);
    file.chooseAccess(true);
    return file;
}

void DiskFile::setPath(std::filesystem::path path, std::uint64_t bytes)
{
    m_path = std::move(path);
    m_bytes = bytes;
}

void DiskFile::setDescriptor(int descriptor) noexcept
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
    m_descriptor = descriptor;
}

void DiskFile::setIdentity(std::uint64_t deviceNumber, std::uint64_t inode) noexcept
{
    m_deviceNumber = deviceNumber;
    m_inode = inode;
}

// O_DIRECT where the system offers it and a real read passes: the offer alone says yes too often.
void DiskFile::chooseAccess(bool direct)
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
    const std::uint64_t there = m_isReadOnly ? std::min(kDiskPageBytes, m_bytes) : kDiskPageBytes;
    if (error == 0 &&
        ::pread(m_descriptor, page.data(), kDiskPageBytes, 0) != static_cast<ssize_t>(there)) {
        error = errno;
        (void)::fcntl(m_descriptor, F_SETFL, flags);
    }
    m_direct = error == 0;
    m_access = m_direct ? "direct I/O"
                        : "buffered I/O, slower: direct I/O is refused here (" +
                              std::generic_category().message(error) + ")";
}

Status DiskFile::check() const
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
    else if (m_isReadOnly && changedNs(own) != m_changedNs)
        what = "was changed";
    if (what.empty())
        return {};
    if (m_isReadOnly)
        return Status::error(ErrorKind::Io, m_path.string() + " " + what +
                                                " while the run read its weights from there. Leave "
                                                "it alone, and resume from the last checkpoint.");
    return Status::error(ErrorKind::Io, "scratch file " + m_path.string() + " " + what +
                                            " while the run used it. Leave the scratch folder "
                                            "alone, and resume from the last checkpoint.");
}

} // namespace mr
