// ScratchLine: progress of the scratch file of a run, while it is written.
//
// For people one line that is written over, on a terminal only; for scripts an event. At most once
// a second, and nothing at all for a file that takes less.
//
// Threads  One at a time.
// Units    Bytes; nanoseconds of any clock.

#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace mr::app {

enum class ScratchLineKind : std::uint8_t { Silent, Terminal, Json };

// For a program that was called with --json, or without.
ScratchLineKind scratchLineKind(bool json);

class ScratchLine
{
public:
    using Write = std::function<void(std::string_view text)>;

    // `write` gets text for the terminal as it is, or a JSON object without its line end.
    ScratchLine(ScratchLineKind kind, Write write);

    void show(std::int64_t nowNs, std::uint64_t doneBytes, std::uint64_t allBytes);
    // Leaves the line, so that others can be written. Does nothing where there is none.
    void end();

private:
    ScratchLineKind m_kind;
    Write m_write;
    bool m_isFilling = false;
    bool m_isShown = false;
    std::int64_t m_lastNs = 0;
};

// Writes to stderr, or as one line to stdout.
ScratchLine::Write scratchLineWriter(ScratchLineKind kind);

} // namespace mr::app
