// DiskFile: an open file that a DiskStore moves tiles of: a scratch file (scratch_file.h), or one
// of somebody else that is read alone.
//
// Threads   openToRead() and destruction by the owner; the rest const, by any.
// Ownership Owns the descriptor.
// Errors    Io names the file and the way out.
// Units     Bytes.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace mr {

class DiskFile
{
public:
    DiskFile() = default;
    DiskFile(DiskFile&& other) noexcept;
    DiskFile& operator=(DiskFile&& other) noexcept;
    ~DiskFile();

    // Nothing writes to it, and it must stay as it is meanwhile.
    static Result<DiskFile> openToRead(const std::filesystem::path& path);

    int descriptor() const noexcept { return m_descriptor; }
    const std::filesystem::path& path() const noexcept { return m_path; }
    std::uint64_t bytes() const noexcept { return m_bytes; }
    bool direct() const noexcept { return m_direct; }
    bool isReadOnly() const noexcept { return m_isReadOnly; }
    // "direct I/O", or why not, in words.
    const std::string& access() const noexcept { return m_access; }

    // Io, if the file was deleted, cut or replaced since it was opened, or changed where it is
    // read alone.
    Status check() const;

protected:
    void setPath(std::filesystem::path path, std::uint64_t bytes);
    // Closes the descriptor before it takes another.
    void setDescriptor(int descriptor) noexcept;
    void setIdentity(std::uint64_t deviceNumber, std::uint64_t inode) noexcept;
    std::uint64_t inode() const noexcept { return m_inode; }
    void chooseAccess(bool direct);

private:
    int m_descriptor = -1;
    std::filesystem::path m_path;
    std::uint64_t m_bytes = 0;
    std::uint64_t m_inode = 0;
    std::uint64_t m_deviceNumber = 0;
    std::int64_t m_changedNs = 0; // of a file that is read alone
    bool m_direct = false;
    bool m_isReadOnly = false;
    std::string m_access;
};

// Files of one store, in the order of its layout.
using DiskFiles = std::span<const DiskFile* const>;

} // namespace mr
