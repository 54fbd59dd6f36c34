// RunStore: the only writer of the history database (schema.h).
//
// Threads  Thread-safe: one mutex around one connection. Callers are the telemetry thread, ten
//          times a second, threads that begin or end a run, and edits(); never the UI thread.
// Errors   Io and DataCorrupt with the file. A database of a newer program is refused; an older one
//          is migrated after a backup beside it (history-v1-<time>.db).
// Units    Milliseconds since the epoch in *Ms, microseconds in *Us.

#pragma once

#include <millrace/machine_metrics.h>
#include <millrace/run_edits.h>
#include <millrace/run_reader.h>
#include <millrace/status.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct NewRun {
    std::string uuid;
    std::string name;
    std::string modelPath;
    std::string modelArchitecture;
    std::string modelDtype;
    std::int64_t parameters = 0;
    std::string datasetPath;
    std::string datasetFormat;
    std::string configJson;
    std::string askedJson; // as RunRow's
    std::string planJson;
    std::string hostJson;
    std::string engineVersion;
    std::string dir;
    std::int64_t totalSteps = 0;
    bool simulatedLink = false;
    // In run.json alone:
    std::string productsJson;  // ProductVerdict: of the opening check; empty: there was none
    bool prompts = false;      // trained on prompts and answers rather than text
    bool ascendingSums = true; // ssd-vertical: unless its option `order` says otherwise
};

struct NamedScalar {
    std::string metric;
    ScalarRow row;
};

// A timeline that was written for one step.
struct TraceRow {
    std::int64_t step = 0;
    std::string path;
    std::int64_t bytes = 0;
    std::string why; // "every 50th step", "slowest"
};

// One transaction's worth.
struct StoreBatch {
    std::vector<StepRow> steps;
    std::vector<NamedScalar> scalars;
    std::vector<EventRow> events; // ids are given by the store
    std::vector<MachineSample> samples;
    std::vector<AnswerRow> answers; // the last of a question counts
    std::vector<IntervalRow> intervals;

    bool empty() const
    {
        return steps.empty() && scalars.empty() && events.empty() && samples.empty() &&
               answers.empty() && intervals.empty();
    }
};

class RunStore
{
public:
    // Creates the file and its folder where they are missing.
    static Result<std::unique_ptr<RunStore>> open(const std::string& database);
    virtual ~RunStore() = default;

    virtual const std::string& path() const noexcept = 0;

    // Status "starting".
    virtual Result<std::int64_t> beginRun(const NewRun& run) = 0;
    // The run of this uuid, for resume; InvalidArgument if the database does not have it.
    virtual Result<std::int64_t> findRun(std::string_view uuid) = 0;
    // Opens a segment (one per process start) and sets "running". Rows after `fromStep` of an
    // earlier life are removed: a resumed run is one curve.
    virtual Status beginSegment(std::int64_t runId, std::int64_t fromStep) = 0;
    virtual Status append(std::int64_t runId, const StoreBatch& batch) = 0;
    virtual Status setPlan(
        std::int64_t runId, std::string_view planJson, std::int64_t totalSteps) = 0;
    // Configuration of a run that goes on in another way than it began, and the parameters to look
    // it up by.
    virtual Status setConfig(std::int64_t runId, std::string_view configJson) = 0;
    // Removes rows after `toStep`, within a segment: a run that goes back to a checkpoint is one
    // curve, too.
    virtual Status rewind(std::int64_t runId, std::int64_t toStep) = 0;
    virtual Status setStatus(std::int64_t runId, RunStatus status) = 0; // synchronous=FULL
    // Closes the segment; `status` is done, stopped or failed. synchronous=FULL.
    virtual Status endRun(
        std::int64_t runId, RunStatus status, int exitCode, std::string_view reason) = 0;
    // Which one is the best is found out, not taken from `row`. synchronous=FULL.
    virtual Status addCheckpoint(
        std::int64_t runId, const CheckpointRow& row, std::string_view hash) = 0;
    virtual Status setCheckpointState(std::string_view path, std::string_view state) = 0;
    // Brings all rows appended so far to the disk.
    virtual Status sync() = 0;
    // Number of the steps 1 to `toStep` that are there.
    virtual Result<std::int64_t> countSteps(std::int64_t runId, std::int64_t toStep) = 0;
    // Was the file deleted or replaced while it was open? Then nobody reads the rows written.
    virtual bool isGone() const noexcept = 0;
    virtual Status addTrace(std::int64_t runId, const TraceRow& row) = 0;

    // Edits by a person, through this connection: there is no second writer to wait for.
    virtual RunEdits& edits() noexcept = 0;
};

} // namespace mr
