// BlobLock: one program at a time fetches a blob.
//
// flock(2) on the file that huggingface_hub locks too. The system gives it back when the process
// ends in any way, so a file that lies there means nothing. A file system without locks is used
// without.
//
// Threads    Any. Two locks of one process refuse each other, too.
// Errors     Io with the path; Cancelled once `stop` asks for it.
// Ownership  Given back by the destructor.

#pragma once

#include <millrace/status.h>

#include <filesystem>
#include <functional>
#include <stop_token>

namespace mr {

class BlobLock
{
public:
    // Waits while another one has it, and then calls `onWait` once.
    static Result<BlobLock> take(const std::filesystem::path& path, const std::stop_token& stop,
        const std::function<void()>& onWait);

    BlobLock(BlobLock&& other) noexcept;
    BlobLock& operator=(BlobLock&&) = delete;
    ~BlobLock();

private:
    BlobLock() = default;

    int m_descriptor = -1;
};

} // namespace mr
