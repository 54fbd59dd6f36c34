// RunReader: the history database, read only. What the UI and `millrace runs` see of runs.
//
// A live run and an old one are read by the same calls; while a run writes, a reader sees whole
// transactions (WAL).
//
// Threads  One reader per thread; each has its own connection.
// Errors   Io or DataCorrupt with the file; InvalidArgument for an id that does not exist; a
//          database of a newer program is refused with a sentence.
// Units    In the field names; _ms since the epoch (UTC) unless the comment says otherwise.

#pragma once

#include <millrace/run_status.h>
#include <millrace/status.h>
#include <millrace/try_it.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Causes of a stall, the columns of the stall ledger, in the order of the JSON.
enum class StallCause : std::uint8_t { H2d, D2h, HostUpdate, Disk, Data, Other };
inline constexpr std::size_t kStallCauses = 6;
inline constexpr std::array<std::string_view, kStallCauses> kStallCauseNames = {
    "h2d", "d2h", "host_update", "disk", "data", "other"};

// One optimizer step. computeUs + the sum of stallUs == wallUs, always.
struct StepRow {
    std::int64_t step = 0;
    std::int64_t timeMs = 0; // since the run began (active time)
    std::int64_t wallUs = 0;
    std::int64_t computeUs = 0;
    std::array<std::int64_t, kStallCauses> stallUs{};
    std::int64_t tokens = 0;
    std::int64_t lossTokens = 0;
    std::int64_t staleness = 0;
    double loss = std::numeric_limits<double>::quiet_NaN();
    double learningRate = 0.0;
    double gradNorm = std::numeric_limits<double>::quiet_NaN();
    std::int64_t h2dBytes = 0;
    std::int64_t d2hBytes = 0;
    std::int64_t diskReadBytes = 0;
    std::int64_t diskWriteBytes = 0;
    std::int64_t devicePeakBytes = 0;
    std::int64_t hostPeakBytes = 0;
};

// Work of a run between its steps. A flush makes the late updates that the last step left.
enum class IntervalKind : std::uint8_t {
    Opening,
    Flush,
    Evaluation,
    Checkpoint,
    Answer,
    Replan,
    Pause,
    Export,
    Turn, // another group of weights, where groups take turns
};
inline constexpr std::size_t kIntervalKinds = 9;
inline constexpr std::array<std::string_view, kIntervalKinds> kIntervalKindNames = {
    "opening", "flush", "evaluation", "checkpoint", "answer", "replan", "pause", "export", "turn"};

// Time between two steps. Steps and intervals follow each other without a gap, so their times and
// bytes add up to those of the run. computeUs + the sum of stallUs == endUs - beginUs, always.
struct IntervalRow {
    std::int64_t step = 0; // after it
    IntervalKind kind = IntervalKind::Opening;
    // Since the run began (active time). Opening ends where that begins.
    std::int64_t beginUs = 0;
    std::int64_t endUs = 0;
    std::int64_t computeUs = 0;
    std::array<std::int64_t, kStallCauses> stallUs{};
    std::int64_t h2dBytes = 0;
    std::int64_t d2hBytes = 0;
    std::int64_t diskReadBytes = 0; // whole pages
    std::int64_t diskWriteBytes = 0;
};

struct RunRow {
    std::int64_t id = 0;
    std::string uuid;
    std::string name;
    RunStatus status = RunStatus::Starting;
    std::string modelName;
    std::string modelPath;
    std::string datasetName;
    std::string datasetPath;
    std::string configJson; // RunSpec, resolved
    std::string askedJson;  // RunSpec as it was asked for; empty: an earlier program's run
    std::string planJson;   // PlanReport (planner.h)
    std::string hostJson;   // MachineInfo (library.h)
    std::string engineVersion;
    std::int64_t createdMs = 0;
    std::int64_t startedMs = 0; // 0: not yet
    std::int64_t endedMs = 0;   // 0: not yet
    std::int64_t activeUs = 0;
    std::int64_t computeUs = 0;
    std::int64_t stallUs = 0;
    std::int64_t lastStep = 0;
    std::int64_t totalSteps = 0;
    std::int64_t tokens = 0;
    double lastLoss = std::numeric_limits<double>::quiet_NaN();
    // Loss of the model before training (step 0); NaN: it was not evaluated.
    double firstEval = std::numeric_limits<double>::quiet_NaN();
    double lastEval = std::numeric_limits<double>::quiet_NaN();
    std::int64_t lastEvalStep = -1; // -1: none after step 0
    // After step 0: the base is not a result of the run.
    double bestEval = std::numeric_limits<double>::quiet_NaN();
    std::int64_t bestEvalStep = -1;
    std::int64_t bestCheckpointStep = -1; // a kept one; -1: none has an evaluation at its step
    double energyJ = std::numeric_limits<double>::quiet_NaN(); // device only; NaN: not measured
    std::int64_t devicePeakBytes = 0;
    std::int64_t hostPeakBytes = 0;
    bool simulatedLink = false;
    std::string exitReason; // why it failed or stopped, for a person
    std::string dir;        // run folder
    std::string notes;
    std::vector<std::string> tags; // by name
    std::int64_t deletedMs = 0;    // 0: it is not; then deletedRuns() has it, and runs() has not
    bool resumable = false;        // ended early, and `resume` takes it
    bool startsAgain = false;      // then from the beginning: it has no checkpoint yet
};

struct ScalarRow {
    std::int64_t step = 0;
    std::int64_t timeMs = 0; // since the run began
    double value = 0.0;
};

enum class EventLevel : std::uint8_t { Info, Warning, Error };

struct EventRow {
    std::int64_t id = 0;
    std::int64_t step = 0;
    std::int64_t timeMs = 0; // since the run began
    EventLevel level = EventLevel::Info;
    std::string code; // "checkpoint", "eval", "nan", "started", ...
    std::string text;
    // A JSON object, for readers that word the event themselves. "paused": reason ("full": no room,
    // or "unwritable"), what ("checkpoint" or "model"), step, folder, needed_bytes, free_bytes,
    // why. "checkpoint_broken": checkpoint, why, step (from which the run goes on), set_aside
    // (where the checkpoint lies now; empty: as before).
    std::string data = {};
};

struct CheckpointRow {
    std::int64_t step = 0;
    std::string path;
    std::int64_t bytes = 0;
    std::string state; // writing, complete, verified, broken, deleted
    std::int64_t createdMs = 0;
    std::int64_t writeMs = 0;
    // Loss of the evaluation after this very step; NaN: there was none.
    double evalLoss = std::numeric_limits<double>::quiet_NaN();
    bool best = false; // the lowest of those kept; of equal ones the newest. Set by the reader
};

// A model of a run that was written for other programs (export_model.h).
struct ExportRow {
    std::string form;               // ExportFormInfo::name
    std::string type;               // of the weights: "q8_0"
    std::string path;               // ".failed" in its name: it did not pass its check
    std::int64_t bytes = 0;         // 0: not counted
    bool passed = false;            // its check
    std::vector<std::string> facts; // sentences, as in ExportOutcome
    std::vector<std::string> faults;
    std::vector<std::string> notes;
    std::int64_t createdMs = 0;

    bool operator==(const ExportRow&) const = default;
};

// A series that was measured at a fixed period, as machine_metrics.h names them.
struct CounterInfo {
    std::string metric;
    std::string unit;
    std::int64_t endMs = 0; // since the run began: after the last one measured
};

// Half-open, since the run began. The answer has an entry for each of `columns` at least, or all
// that was measured.
struct CounterWindow {
    std::int64_t fromMs = 0;
    std::int64_t toMs = 0;
    std::int64_t columns = 1;
};

// Measurements from timeMs on, over one period of the series; NaN: there are none.
struct CounterEntry {
    std::int64_t timeMs = 0; // since the run began
    float min = 0.0F;
    float max = 0.0F;
    float mean = 0.0F;
};

struct CounterSeries {
    std::int64_t periodMs = 0;
    std::vector<CounterEntry> entries;
};

// A step with a timeline that the run kept.
struct TraceInfo {
    std::int64_t step = 0;
    std::string why; // "every 50th step", "slowest so far"
};

enum class AnswerState : std::uint8_t { Running, Done, Stopped, Failed };

// Answer that a run gave while it went on (Session::ask), as far as it has come.
struct AnswerRow {
    std::int64_t step = 0; // after it
    std::int64_t id = 0;   // Question::id
    Prompt prompt;
    Answer answer;
    AnswerState state = AnswerState::Running;
    std::string message; // only for Failed
};

struct StepTimeline; // step_timeline.h

class RunReader
{
public:
    static Result<std::unique_ptr<RunReader>> open(const std::string& database);
    virtual ~RunReader() = default;

    // Newest first. Runs with a dead process are reported as "lost".
    virtual Result<std::vector<RunRow>> runs() = 0;
    virtual Result<RunRow> run(std::int64_t id) = 0;
    // Runs that run_edits.h hid and did not erase yet, the last one deleted first. All other
    // functions leave these runs out.
    virtual Result<std::vector<RunRow>> deletedRuns() { return std::vector<RunRow>(); }
    // Steps after `afterStep`, ascending, at most `limit`.
    virtual Result<std::vector<StepRow>> steps(
        std::int64_t runId, std::int64_t afterStep, std::int64_t limit) = 0;
    // Intervals that ended after `afterUs`, in the order of their ends.
    virtual Result<std::vector<IntervalRow>> intervals(std::int64_t runId, std::int64_t afterUs)
    {
        (void)runId;
        (void)afterUs;
        return std::vector<IntervalRow>();
    }
    // A named series: "eval_loss", ...
    virtual Result<std::vector<ScalarRow>> scalars(
        std::int64_t runId, std::string_view metric, std::int64_t afterStep) = 0;
    virtual Result<std::vector<EventRow>> events(std::int64_t runId, std::int64_t afterId) = 0;
    virtual Result<std::vector<CheckpointRow>> checkpoints(std::int64_t runId) = 0;
    // Newest first.
    virtual Result<std::vector<ExportRow>> exports(std::int64_t runId)
    {
        (void)runId;
        return std::vector<ExportRow>();
    }
    // The series the run has, and one of them; without entries if the run does not have it.
    virtual Result<std::vector<CounterInfo>> counters(std::int64_t runId) = 0;
    virtual Result<CounterSeries> counter(
        std::int64_t runId, std::string_view metric, const CounterWindow& window) = 0;
    // By step. If the same text was asked again after the same step, only the last answer.
    virtual Result<std::vector<AnswerRow>> answers(std::int64_t runId) = 0;
    // The steps with a kept timeline, ascending, and the timeline of one of them, read from its
    // file: InvalidArgument for a step that was not kept.
    virtual Result<std::vector<TraceInfo>> traces(std::int64_t runId) = 0;
    virtual Result<StepTimeline> timeline(std::int64_t runId, std::int64_t step) = 0;
};

// $XDG_DATA_HOME/millrace/history.db, or ~/.local/share/millrace/history.db.
std::string defaultDatabasePath();
// The folder for run folders when none is named: .../millrace/runs.
std::string defaultRunsFolder();

} // namespace mr
