// StepTimeline: the measured work of every lane in one step that the run kept.
//
// Threads  Values.
// Order    Spans by begin; where two begin together, in the order of the file.
// Units    Nanoseconds since the first span of the step began; bytes.

#pragma once

#include <millrace/run_reader.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// In the order in which they are drawn.
enum class TimelineLane : std::uint8_t {
    Compute,
    CopyIn,
    CopyOut,
    Host,
    DiskIn,  // reads
    DiskOut, // writes
    Engine,
};
inline constexpr std::size_t kTimelineLanes = 7;

enum class TimelineKind : std::uint8_t {
    Task, // a task of the plan
    Wait, // Compute waited; lane, task, group and micro are those of the task it waited for
    Work, // work of the engine between tasks: "checkpoint", "evaluation"
};

struct TimelineSpan {
    TimelineKind kind{};
    TimelineLane lane{};
    StallCause cause = StallCause::Other; // only for Wait
    std::string task;                     // as the plan names it: "Forward", "FetchWeights", ...
    std::int32_t group = -1;              // layer of the traversal; -1: of none
    std::int32_t micro = -1;              // micro-batch; -1: of none
    std::int32_t source = -1;             // Wait: index of the span it waited for; -1: it ran
                                          // in an earlier step, or nothing explains the wait
    std::int64_t beginNs = 0;
    std::int64_t endNs = 0;
    std::int64_t bytes = 0; // copied; 0: none
};

struct StepTimeline {
    std::int64_t step = 0;
    std::string why; // it was kept: "every 50th step", "slowest so far"
    std::vector<TimelineSpan> spans;
    std::int64_t endNs = 0; // end of the last span
};

} // namespace mr
