// TraceSampler: keeps the timelines of a few steps of a run, as trace-<step>.json in its folder.
//
// Every 50th step at first, then more and more rarely, and steps that are clearly slower than all
// before them: at most 20 files per start of a run of any length.
//
// Threads  Confined to the telemetry thread.
// Errors   A file that cannot be written is given up with a warning: a timeline is never worth a
//          run.
// Units    Nanoseconds, as the spans.

#pragma once

#include "core/store/run_store.h"
#include "core/telemetry/event.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mr {

class TraceSampler
{
public:
    explicit TraceSampler(std::filesystem::path folder);

    void add(const TraceEvent& span);
    // Call for each step, ascending, once its spans were added. Writes a file if this is a step to
    // keep; forgets the spans up to this step. The row is the caller's to store.
    std::optional<TraceRow> stepEnded(const StepRow& step);

private:
    std::string reasonToKeep(const StepRow& step); // empty: none
    std::optional<TraceRow> write(std::int64_t step, const std::string& why) const;

    std::filesystem::path m_folder;
    std::vector<TraceEvent> m_spans;
    std::int64_t m_interval = 50;
    int m_periodic = 0;
    int m_slow = 0;
    int m_steps = 0;
    std::int64_t m_slowestUs = 0;
};

} // namespace mr
