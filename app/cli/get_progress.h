// GetProgress: how far a download is, as a line that stays on a terminal or as JSON events.
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

enum class GetProgressKind : std::uint8_t { Silent, Terminal, Json };

class GetProgress
{
public:
    using Write = std::function<void(std::string_view text)>;

    GetProgress(GetProgressKind kind, Write write);

    // At most once a second, and when all is done.
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

    GetProgressKind m_kind;
    Write m_write;
    std::deque<Point> m_points; // of the last seconds
    bool m_isOpen = false;      // a line of the terminal
};

} // namespace mr::app
