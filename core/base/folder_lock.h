// FolderLock: one process at a time writes a folder, under any path that others know it by.
//
// flock(2) on a file in the folder itself. The system gives it back when the process ends in any
// way; so the file stays, and lying there it means nothing.
//
// Threads    Any. Two locks of one process refuse each other, too.
// Errors     InvalidArgument: another process has it (named, if it is known), or the file is a link
//            or no file. Io with the file. A file system without locks is used without.
// Ownership  Given back by the destructor.

#pragma once

#include <millrace/status.h>

#include <filesystem>

namespace mr {

class FolderLock
{
public:
    static constexpr const char* kFile = ".lock";

    FolderLock() = default; // locks nothing
    FolderLock(FolderLock&& other) noexcept;
    FolderLock& operator=(FolderLock&& other) noexcept;
    ~FolderLock();

    // Does not wait for a living process; for one that is dying, a second at most.
    static Result<FolderLock> take(const std::filesystem::path& folder);

private:
    int m_descriptor = -1;
};

} // namespace mr
