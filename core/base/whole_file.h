// WholeFile: a file that appears under its name only when it is complete.
//
// Threads    One thread.
// Ownership  Owns the temporary file; an uncommitted one is removed by the destructor.
// Errors     Io with the path and the system's reason.

#pragma once

#include "core/base/file.h"

#include <millrace/status.h>

#include <cstddef>
#include <filesystem>
#include <span>

namespace mr {

class WholeFile
{
public:
    // Creates the temporary file next to `path`.
    static Result<WholeFile> create(const std::filesystem::path& path);

    WholeFile(WholeFile&& other) noexcept;
    WholeFile& operator=(WholeFile&&) = delete;
    ~WholeFile();

    Status write(std::span<const std::byte> data) { return m_file.write(data); }

    // fsync, rename, fsync of the folder. Nothing may be written afterwards.
    Status commit();

private:
    WholeFile() = default;

    std::filesystem::path m_path;
    std::filesystem::path m_temporary; // empty: nothing to remove
    File m_file;
};

// Copies a file of any length in pieces; `to` appears when it is complete.
Status copyWholeFile(const std::filesystem::path& from, const std::filesystem::path& to);

} // namespace mr
