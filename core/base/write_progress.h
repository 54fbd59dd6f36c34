// Progress of files that are written, for a person who waits and may stop it.
//
// Threads  One thread, which writes.
// Units    Bytes.

#pragma once

#include <millrace/status.h>

#include <algorithm>
#include <cstdint>
#include <functional>

namespace mr {

// An error ends the writing, which leaves nothing behind and fails with it.
using WriteProgress = std::function<Status(std::uint64_t done, std::uint64_t all)>;

// Counts up to `all`, and tells each step of it.
class WriteMeter
{
public:
    // Borrows `progress`, which may be empty.
    WriteMeter(std::uint64_t all, const WriteProgress& progress)
        : m_all(all)
        , m_progress(progress)
    {
    }

    Status add(std::uint64_t bytes)
    {
        m_done += std::min(bytes, m_all - m_done);
        return m_progress ? m_progress(m_done, m_all) : Status();
    }

private:
    const std::uint64_t m_all;
    const WriteProgress& m_progress;
    std::uint64_t m_done = 0;
};

} // namespace mr
