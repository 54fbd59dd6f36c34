// Owned file descriptors and the one way files are replaced: never in place.
//
// Threads  A File is used by one thread at a time; pread() by any number.
// Errors   Io with path, offset and the system's reason. OutOfSpace is Io with `noSpace`.

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mr {

class File
{
public:
    File() = default;
    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;
    ~File();

    static Result<File> openRead(const std::filesystem::path& path);
    // Creates or truncates. A link, a pipe or a device in its place is refused; so below.
    static Result<File> create(const std::filesystem::path& path);
    // Creates or opens at its end; every write is appended.
    static Result<File> openAppend(const std::filesystem::path& path);
    // In `folder`, to be written and read, without a name: gone when it is closed or the process
    // ends. path() is the folder.
    static Result<File> createUnnamed(const std::filesystem::path& folder);

    bool isOpen() const noexcept { return m_descriptor >= 0; }
    const std::filesystem::path& path() const noexcept { return m_path; }

    Result<std::uint64_t> bytes() const;
    // All of `out`, or Io ("ends early").
    Status readAt(std::uint64_t offset, std::span<std::byte> out) const;
    Status write(std::span<const std::byte> data); // at the current position, all of it
    Status sync();

private:
    int m_descriptor = -1;
    std::filesystem::path m_path;
};

// The whole file. InvalidArgument if it is larger than `limitBytes`.
Result<std::string> readWholeFile(const std::filesystem::path& path, std::uint64_t limitBytes);

// temp file in the same folder, fsync, rename, fsync of the folder.
Status replaceFile(const std::filesystem::path& path, std::string_view content);
Status syncFolder(const std::filesystem::path& folder);

// Bytes an unprivileged user may still write where `path` (or its nearest existing parent) lies.
Result<std::uint64_t> freeBytes(const std::filesystem::path& path);

// The whole number with which a small file of the system begins; nothing where there is none.
std::optional<std::int64_t> numberInFile(const std::filesystem::path& path);

} // namespace mr
