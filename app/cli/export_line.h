// ExportLine: the progress of an export on a terminal's stderr, a line that is written over; and
// the stop of the export where a signal asks for it.
//
// Threads  Made and used by the main thread.

#pragma once

#include "app/cli/stop_on_signal.h"

#include <chrono>
#include <cstdint>

namespace mr::app {

class ExportLine
{
public:
    ExportLine();

    // False: a signal came.
    bool take(std::uint64_t done, std::uint64_t all);

private:
    using Clock = std::chrono::steady_clock;

    StopOnSignal m_stop;
    bool m_isShown; // stderr is a terminal
    Clock::time_point m_begin = Clock::now();
    Clock::time_point m_shown;
};

} // namespace mr::app
