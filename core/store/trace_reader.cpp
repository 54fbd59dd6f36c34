#include "core/store/trace_reader.h"

#include "core/base/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace mr {
namespace {

using Json = nlohmann::json;

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxTraceBytes = 64U << 20U; // 65,536 spans are 13 MiB
// Thread numbers of a trace are 100 to 199 for the first row, and so on.
constexpr std::int64_t kRowStride = 100;
constexpr std::size_t kWaitsRow = 5;
constexpr std::size_t kEngineRow = 6;
constexpr std::size_t kDiskOutRow = 7; // after the rows of earlier programs
constexpr std::string_view kWaitPrefix = "waits for ";
constexpr std::string_view kDataWait = "waits for data";
constexpr std::string_view kDiskWrite = "WriteToDisk";
constexpr std::string_view kBoundaryWrite = "WriteBoundary"; // on a lane that reads, too

struct LaneName {
    std::string_view name;
    TimelineLane lane;
};
constexpr std::array kLaneNames = {LaneName{"Compute", TimelineLane::Compute},
    LaneName{"CopyIn", TimelineLane::CopyIn}, LaneName{"CopyOut", TimelineLane::CopyOut},
    LaneName{"Host", TimelineLane::Host}, LaneName{"DiskIn", TimelineLane::DiskIn},
    LaneName{"DiskOut", TimelineLane::DiskOut},
    LaneName{"DiskWeights", TimelineLane::DiskIn}, // one row for all that is read
    LaneName{"DiskBoundaries", TimelineLane::DiskIn},
    LaneName{"Disk", TimelineLane::DiskIn}}; // earlier programs' lane of reads and writes

std::string textOf(const Json& object, const char* key)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t numberOf(const Json& object, const char* key, std::int64_t fallback)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                               : fallback;
}

// Microseconds with three decimals, as nanoseconds.
std::int64_t nanoseconds(const Json& object, const char* key)
{
    const auto found = object.find(key);
    constexpr double kMostUs = 9.0e12; // 2^53 ns is 104 days, exactly
    if (found == object.end() || !found->is_number())
        return 0;
    const double us = found->get<double>();
    return std::abs(us) < kMostUs ? std::llround(us * 1000.0) : 0;
}

std::optional<TimelineLane> laneOf(std::string_view name)
{
    const auto found = std::find_if(kLaneNames.begin(), kLaneNames.end(),
        [name](const LaneName& known) { return known.name == name; });
    if (found == kLaneNames.end())
        return std::nullopt;
    return found->lane;
}

// One row held reads and writes in earlier programs.
TimelineLane laneOfTask(std::size_t row, std::string_view task)
{
    return row == kDiskOutRow || task == kDiskWrite ? TimelineLane::DiskOut
                                                    : static_cast<TimelineLane>(row);
}

StallCause causeOf(TimelineLane lane)
{
    switch (lane) {
    case TimelineLane::CopyIn:
        return StallCause::H2d;
    case TimelineLane::CopyOut:
        return StallCause::D2h;
    case TimelineLane::Host:
        return StallCause::HostUpdate;
    case TimelineLane::DiskIn:
    case TimelineLane::DiskOut:
        return StallCause::Disk;
    case TimelineLane::Compute:
    case TimelineLane::Engine:
        break;
    }
    return StallCause::Other;
}

// An earlier program named the task only; where it ran follows from the task in most cases, and
// from the spans of the step otherwise (findSources).
void readWait(TimelineSpan& span, const Json& args, const std::string& name)
{
    span.kind = TimelineKind::Wait;
    span.lane = TimelineLane::Compute;
    if (name.starts_with(kWaitPrefix))
        span.task = name.substr(kWaitPrefix.size());
    if (const auto lane = laneOf(textOf(args, "lane"))) {
        const bool writes = span.task == kDiskWrite || span.task == kBoundaryWrite;
        span.lane = writes ? TimelineLane::DiskOut : *lane;
        span.cause = causeOf(span.lane);
    }
}

std::optional<TimelineSpan> readSlice(const Json& slice)
{
    const auto args = slice.find("args");
    if (args == slice.end() || !args->is_object())
        return std::nullopt;
    TimelineSpan span;
    span.group = static_cast<std::int32_t>(numberOf(*args, "group", -1));
    span.micro = static_cast<std::int32_t>(numberOf(*args, "micro", -1));
    span.bytes = std::max<std::int64_t>(0, numberOf(*args, "bytes", 0));
    span.beginNs = nanoseconds(slice, "ts");
    span.endNs = span.beginNs + std::max<std::int64_t>(0, nanoseconds(slice, "dur"));
    const std::string name = textOf(slice, "name");
    const auto row = static_cast<std::size_t>(numberOf(slice, "tid", 0) / kRowStride - 1);
    if (row == kWaitsRow) {
        readWait(span, *args, name);
    } else if (row == kEngineRow && name == kDataWait) {
        span.kind = TimelineKind::Wait;
        span.lane = TimelineLane::Engine;
        span.cause = StallCause::Data;
    } else if (row <= kDiskOutRow) {
        span.kind = row == kEngineRow ? TimelineKind::Work : TimelineKind::Task;
        span.lane = row == kEngineRow ? TimelineLane::Engine : laneOfTask(row, name);
        span.task = name;
    } else {
        return std::nullopt;
    }
    return span;
}

// Task that ended a wait: named by it, running at its end, the first to end after that.
std::int32_t findSource(const std::vector<TimelineSpan>& spans, const TimelineSpan& wait)
{
    std::int32_t best = -1;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        const TimelineSpan& span = spans[i];
        if (span.beginNs >= wait.endNs)
            break;
        const bool laneFits = wait.lane == TimelineLane::Compute
                                  ? span.lane != TimelineLane::Compute
                                  : span.lane == wait.lane;
        if (span.kind != TimelineKind::Task || span.task != wait.task || span.group != wait.group ||
            span.micro != wait.micro || !laneFits || span.endNs < wait.endNs)
            continue;
        if (best < 0 || span.endNs < spans[static_cast<std::size_t>(best)].endNs)
            best = static_cast<std::int32_t>(i);
    }
    return best;
}

void findSources(std::vector<TimelineSpan>& spans)
{
    for (TimelineSpan& wait : spans) {
        if (wait.kind != TimelineKind::Wait || wait.task.empty())
            continue;
        wait.source = findSource(spans, wait);
        if (wait.source >= 0 && wait.lane == TimelineLane::Compute) {
            wait.lane = spans[static_cast<std::size_t>(wait.source)].lane;
            wait.cause = causeOf(wait.lane);
        }
    }
}

} // namespace

Result<std::vector<TraceInfo>> readTraces(Database& database, std::int64_t runId)
{
    std::vector<TraceInfo> traces;
    MR_TRY(database.query(
        "SELECT step,why FROM trace WHERE run_id=? ORDER BY step",
        [&](const Row& row) {
            traces.push_back({row.integer(0), row.text(1)});
        },
        runId));
    return traces;
}

Result<StepTimeline> readTimeline(Database& database, std::int64_t runId, std::int64_t step)
{
    fs::path path;
    fs::path folder;
    std::string why;
    MR_TRY(database.query(
        "SELECT path,why,dir FROM trace JOIN run ON run.id=run_id WHERE run_id=? AND step=?",
        [&](const Row& row) {
            path = row.text(0);
            why = row.text(1);
            folder = row.text(2);
        },
        runId, step));
    if (path.empty())
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("run {} kept no timeline of step {}", runId, step));
    // A folder that was moved keeps its files.
    std::error_code failed;
    if (!fs::exists(path, failed) && fs::exists(folder / path.filename(), failed))
        path = folder / path.filename();
    MR_ASSIGN(std::string text, readWholeFile(path, kMaxTraceBytes));
    Result<StepTimeline> timeline = timelineFromTrace(text);
    if (!timeline.ok())
        return Status::error(
            timeline.status().kind(), path.string() + ": " + timeline.status().message());
    timeline.value().step = step;
    timeline.value().why = std::move(why);
    return timeline;
}

Result<StepTimeline> timelineFromTrace(std::string_view json)
{
    const Json trace = Json::parse(json, nullptr, false);
    const auto events = trace.is_object() ? trace.find("traceEvents") : trace.end();
    if (!trace.is_object() || events == trace.end() || !events->is_array())
        return Status::error(ErrorKind::DataCorrupt, "the file is no trace of a step");
    StepTimeline timeline;
    for (const Json& event : *events) {
        if (!event.is_object() || textOf(event, "ph") != "X")
            continue;
        if (auto span = readSlice(event)) {
            timeline.endNs = std::max(timeline.endNs, span->endNs);
            timeline.spans.push_back(std::move(*span));
        }
    }
    std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
        [](const TimelineSpan& a, const TimelineSpan& b) { return a.beginNs < b.beginNs; });
    findSources(timeline.spans);
    return timeline;
}

} // namespace mr
