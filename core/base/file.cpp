#include "core/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

namespace mr {
namespace {

// Linux moves at most 2 GiB - 4 KiB in one call; less keeps the loop's steps even.
constexpr std::size_t kMaxTransferBytes = std::size_t{1} << 30;

Status ioError(const std::string& what, const std::filesystem::path& path, int error)
{
    std::string reason = std::generic_category().message(error);
    if (error == ENOSPC || error == EDQUOT)
        reason = "no space left on the disk; free some or choose another folder (" + reason + ")";
    if (error == EFBIG)
        reason = "no file may become that large here; raise the limit (`ulimit -f`) or choose "
                 "another folder (" +
                 reason + ")";
    return Status::error(ErrorKind::Io, what + " " + path.string() + ": " + reason);
}

int openRetrying(const std::filesystem::path& path, int flags)
{
    int descriptor = -1;
    do {
        descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

// A file of our own: through a link, bytes would go to somebody else's, and a pipe may wait for
// ever.
Status mustBeOwnFile(int descriptor, const std::filesystem::path& path)
{
    struct stat info {
    };
    if (::fstat(descriptor, &info) != 0)
        return ioError("cannot look at", path, errno);
    if (!S_ISREG(info.st_mode))
        return Status::error(ErrorKind::Io,
            "cannot write " + path.string() + ": it is a device or a pipe; remove it");
    return {};
}

Status notOpened(const char* what, const std::filesystem::path& path, int error)
{
    if (error == ELOOP || error == ENXIO) // O_NOFOLLOW; a pipe that nobody reads
        return Status::error(ErrorKind::Io,
            std::string(what) + " " + path.string() + ": it is a link or a pipe; remove it");
    return ioError(what, path, error);
}

} // namespace

File::File(File&& other) noexcept
    : m_descriptor(std::exchange(other.m_descriptor, -1))
    , m_path(std::move(other.m_path))
{
}

File& File::operator=(File&& other) noexcept
{
    File taken(std::move(other));
    std::swap(m_descriptor, taken.m_descriptor);
    std::swap(m_path, taken.m_path);
    return *this;
}

File::~File()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

Result<File> File::openRead(const std::filesystem::path& path)
{
    File file;
    file.m_path = path;
    file.m_descriptor = openRetrying(path, O_RDONLY | O_NONBLOCK); // a pipe would wait for a writer
    if (file.m_descriptor < 0)
        return ioError("cannot open", path, errno);
    struct stat info {
    };
    if (::fstat(file.m_descriptor, &info) != 0)
        return ioError("cannot look at", path, errno);
    if (S_ISDIR(info.st_mode))
        return ioError("cannot read", path, EISDIR);
    if (!S_ISREG(info.st_mode))
        return Status::error(ErrorKind::Io,
            "cannot read " + path.string() + ": it is a device or a pipe; name a regular file");
    return file;
}

Result<File> File::create(const std::filesystem::path& path)
{
    File file;
    file.m_path = path;
    file.m_descriptor = openRetrying(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK);
    if (file.m_descriptor < 0)
        return notOpened("cannot create", path, errno);
    MR_TRY(mustBeOwnFile(file.m_descriptor, path));
    return file;
}

Result<File> File::openAppend(const std::filesystem::path& path)
{
    File file;
    file.m_path = path;
    file.m_descriptor = openRetrying(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
    if (file.m_descriptor < 0)
        return notOpened("cannot open", path, errno);
    MR_TRY(mustBeOwnFile(file.m_descriptor, path));
    return file;
}

Result<File> File::createUnnamed(const std::filesystem::path& folder)
{
    File file;
    file.m_path = folder;
    file.m_descriptor = openRetrying(folder, O_RDWR | O_TMPFILE);
    if (file.m_descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        // File systems without O_TMPFILE: a name for a moment.
        std::string name = (folder / ".millrace-XXXXXX").string();
        file.m_descriptor = ::mkostemp(name.data(), O_CLOEXEC);
        if (file.m_descriptor >= 0)
            (void)::unlink(name.c_str());
    }
    if (file.m_descriptor < 0)
        return ioError("cannot create a file in", folder, errno);
    return file;
}

Result<std::uint64_t> File::bytes() const
{
    struct stat info {
    };
    if (::fstat(m_descriptor, &info) != 0)
        return ioError("cannot look at", m_path, errno);
    return static_cast<std::uint64_t>(info.st_size);
}

Status File::readAt(std::uint64_t offset, std::span<std::byte> out) const
{
    const auto failed = [&](int error) { // a read that succeeds allocates nothing
        return ioError(fmt::format("cannot read at byte {} of", offset), m_path, error);
    };
    if (offset > static_cast<std::uint64_t>(INT64_MAX) - out.size())
        return failed(EOVERFLOW);
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t got = ::pread(m_descriptor, out.data() + done,
            std::min(out.size() - done, kMaxTransferBytes), static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(errno);
        if (got == 0)
            return Status::error(ErrorKind::Io,
                fmt::format("read {}: the file ends early, at byte {} of the {} that were expected",
                    m_path.string(), offset + done, offset + out.size()));
        done += static_cast<std::size_t>(got);
    }
    return {};
}

Status File::write(std::span<const std::byte> data)
{
    while (!data.empty()) {
        const ssize_t put =
            ::write(m_descriptor, data.data(), std::min(data.size(), kMaxTransferBytes));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return ioError("cannot write", m_path, errno);
        data = data.subspan(static_cast<std::size_t>(put));
    }
    return {};
}

Status File::sync()
{
    if (::fsync(m_descriptor) != 0)
        return ioError("cannot bring to the disk", m_path, errno);
    return {};
}

Result<std::string> readWholeFile(const std::filesystem::path& path, std::uint64_t limitBytes)
{
    Result<File> file = File::openRead(path);
    if (!file.ok())
        return file.status();
    MR_ASSIGN(const std::uint64_t bytes, file.value().bytes());
    if (bytes > limitBytes)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("{} has {} bytes, more than the {} that such a file may have",
                path.string(), bytes, limitBytes));
    std::string content(static_cast<std::size_t>(bytes), '\0');
    MR_TRY(file.value().readAt(0, std::as_writable_bytes(std::span(content))));
    return content;
}

Status replaceFile(const std::filesystem::path& path, std::string_view content)
{
    // The process number keeps two programs that replace the same file apart.
    const std::filesystem::path temporary = fmt::format("{}.tmp-{}", path.string(), ::getpid());
    const auto writeIt = [&]() -> Status {
        MR_ASSIGN(File file, File::create(temporary));
        MR_TRY(file.write(std::as_bytes(std::span(content))));
        return file.sync();
    };
    Status status = writeIt();
    if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
        status = ioError("cannot replace", path, errno);
    if (!status.ok()) {
        ::unlink(temporary.c_str());
        return status;
    }
    return syncFolder(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

Status syncFolder(const std::filesystem::path& folder)
{
    const int descriptor = openRetrying(folder, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0)
        return ioError("cannot open the folder", folder, errno);
    const int failed = ::fsync(descriptor) != 0 ? errno : 0;
    ::close(descriptor);
    // Some network file systems cannot sync a folder; their renames are as safe as they get.
    if (failed != 0 && failed != EINVAL)
        return ioError("cannot bring to the disk", folder, failed);
    return {};
}

Result<std::uint64_t> freeBytes(const std::filesystem::path& path)
{
    std::error_code ignored;
    std::filesystem::path place = std::filesystem::absolute(path, ignored);
    while (!std::filesystem::exists(place, ignored) && place.has_relative_path())
        place = place.parent_path();
    struct statvfs info {
    };
    if (::statvfs(place.c_str(), &info) != 0)
        return ioError("cannot ask for the free space of", place, errno);
    return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

std::optional<std::int64_t> numberInFile(const std::filesystem::path& path)
{
    std::ifstream file(path);
    std::int64_t number = 0;
    if (!(file >> number))
        return std::nullopt;
    return number;
}

} // namespace mr
