// ByteProgress: how far a download or an export is, as a line that stays on a terminal or as JSON
// events.
//
// Threads  One call at a time.
// Units    Nanoseconds of the steady clock, bytes.

#pragma once

#include <millrace/hub.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace mr::app {

enum class ByteProgressKind : std::uint8_t { Silent, Terminal, Json };

class ByteProgress
{
public:
    using Write = std::function<void(std::string_view text)>;

    ByteProgress(ByteProgressKind kind, Write write);

    // At most once a second, and when all is done. Files are not told where there are none to
    // count.
    void show(std::int64_t nowNs, const HubProgress& progress);
    // Before another line: ends the one on the terminal.
    void end();

private:
    struct Point {
        std::int64_t ns = 0;
        std::uint64_t bytes = 0;
    };

    double rate() const; // bytes per second; 0: not known
    std::string text(const HubProgress& progress) const;
    std::string json(const HubProgress& progress) const;

    ByteProgressKind m_kind;
    Write m_write;
    std::deque<Point> m_points; // of the last seconds
    bool m_isOpen = false;      // a line of the terminal
};

// Silent where stderr is no terminal.
ByteProgress progressOnStderr();

} // namespace mr::app
