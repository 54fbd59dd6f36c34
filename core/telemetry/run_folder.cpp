#include "core/telemetry/run_folder.h"

#include "core/base/file.h"
#include "core/telemetry/step_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

namespace mr {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kMaxRecordBytes = 16U << 20U;
constexpr std::uint64_t kMaxLogBytes = std::uint64_t{4} << 30U; // 10 M steps are 4 GiB

// A missing log is an empty one.
Result<std::string> readLog(const fs::path& path)
{
    std::error_code failed;
    if (!fs::exists(path, failed))
        return std::string();
    return readWholeFile(path, kMaxLogBytes);
}

template <typename OnLine>
void forEachLine(std::string_view text, OnLine&& onLine)
{
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (end > 0)
            onLine(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

// A resumed run writes some of its steps again: a step takes the place of all from it on.
std::map<std::int64_t, StepRow> readStepLog(std::string_view text)
{
    std::map<std::int64_t, StepRow> steps;
    forEachLine(text, [&](std::string_view line) {
        const Result<StepRow> row = stepFromJson(line);
        if (!row.ok())
            return;
        const StepRow step = Result<StepRow>(row).value();
        steps.erase(steps.lower_bound(step.step), steps.end());
        steps.emplace(step.step, step);
    });
    return steps;
}

// After a step that was made again nothing of before counts.
std::vector<IntervalRow> readIntervalLog(std::string_view text)
{
    std::vector<IntervalRow> intervals;
    forEachLine(text, [&](std::string_view line) {
        if (const Result<StepRow> step = stepFromJson(line); step.ok()) {
            const std::int64_t at = Result<StepRow>(step).value().step;
            std::erase_if(intervals, [at](const IntervalRow& row) { return row.step >= at; });
        } else if (Result<IntervalRow> row = intervalFromJson(line); row.ok()) {
            intervals.push_back(std::move(row).value());
        }
    });
    return intervals;
}

// As with the steps: a sample takes the place of all from its time on.
std::map<std::int64_t, MachineSample> readSampleLog(std::string_view text)
{
    std::map<std::int64_t, MachineSample> samples;
    forEachLine(text, [&](std::string_view line) {
        Result<MachineSample> read = sampleFromJson(line);
        if (!read.ok())
            return;
        const MachineSample sample = std::move(read).value();
        samples.erase(samples.lower_bound(sample.timeMs), samples.end());
        samples.emplace(sample.timeMs, sample);
    });
    return samples;
}

std::string text(const Json& object, const char* key)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t integer(const Json& object, const char* key)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

bool flag(const Json& object, const char* key)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

// The steps, in pieces that keep the writer's transactions short.
Status importSteps(
    RunStore& store, std::int64_t runId, const std::map<std::int64_t, StepRow>& steps)
{
    constexpr std::size_t kPiece = 5000;
    StoreBatch batch;
    std::int64_t timeUs = 0;
    for (const auto& [number, row] : steps) {
        timeUs += row.wallUs;
        batch.steps.push_back(row);
        batch.steps.back().timeMs = timeUs / 1000;
        if (batch.steps.size() == kPiece) {
            MR_TRY(store.append(runId, batch));
            batch.steps.clear();
        }
    }
    return store.append(runId, batch);
}

Status importSamples(
    RunStore& store, std::int64_t runId, const std::map<std::int64_t, MachineSample>& samples)
{
    constexpr std::size_t kPiece = 5000;
    StoreBatch batch;
    for (const auto& [timeMs, sample] : samples) {
        batch.samples.push_back(sample);
        if (batch.samples.size() == kPiece) {
            MR_TRY(store.append(runId, batch));
            batch.samples.clear();
        }
    }
    return store.append(runId, batch);
}

} // namespace

Status saveRunRecord(const std::string& runDir, const NewRun& run)
{
    const Json record = {{"uuid", run.uuid}, {"name", run.name}, {"model_path", run.modelPath},
        {"model_architecture", run.modelArchitecture}, {"model_dtype", run.modelDtype},
        {"parameters", run.parameters}, {"dataset_path", run.datasetPath},
        {"dataset_format", run.datasetFormat}, {"config", run.configJson}, {"asked", run.askedJson},
        {"plan", run.planJson}, {"host", run.hostJson}, {"engine_version", run.engineVersion},
        {"total_steps", run.totalSteps}, {"simulated_link", run.simulatedLink},
        {"products", run.productsJson}, {"prompts", run.prompts},
        {"ascending_sums", run.ascendingSums}};
    return replaceFile(fs::path(runDir) / "run.json",
        record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<NewRun> readRunRecord(const std::string& runDir)
{
    const fs::path path = fs::path(runDir) / "run.json";
    MR_ASSIGN(std::string content, readWholeFile(path, kMaxRecordBytes));
    const Json record = Json::parse(content, nullptr, false);
    NewRun run;
    run.uuid = record.is_object() ? text(record, "uuid") : std::string();
    if (run.uuid.empty())
        return Status::error(ErrorKind::DataCorrupt,
            fmt::format("{} does not describe a run (no field \"uuid\")", path.string()));
    run.name = text(record, "name");
    run.modelPath = text(record, "model_path");
    run.modelArchitecture = text(record, "model_architecture");
    run.modelDtype = text(record, "model_dtype");
    run.parameters = integer(record, "parameters");
    run.datasetPath = text(record, "dataset_path");
    run.datasetFormat = text(record, "dataset_format");
    run.configJson = text(record, "config");
    run.askedJson = text(record, "asked"); // earlier programs wrote none
    run.planJson = text(record, "plan");
    run.hostJson = text(record, "host");
    run.engineVersion = text(record, "engine_version");
    run.dir = runDir;
    run.totalSteps = integer(record, "total_steps");
    run.simulatedLink = flag(record, "simulated_link");
    run.productsJson = text(record, "products"); // earlier programs wrote none
    // Earlier programs wrote neither, and flipped.
    run.prompts = flag(record, "prompts");
    run.ascendingSums = flag(record, "ascending_sums");
    return run;
}

Result<std::int64_t> rebuildFromRunFolder(RunStore& store, const std::string& runDir)
{
    Result<NewRun> run = readRunRecord(runDir);
    MR_TRY(run.status());
    MR_ASSIGN(std::string stepLog, readLog(fs::path(runDir) / "steps.jsonl"));
    MR_ASSIGN(std::string eventLog, readLog(fs::path(runDir) / "events.jsonl"));
    MR_ASSIGN(std::string sampleLog, readLog(fs::path(runDir) / "samples.jsonl"));

    Result<std::int64_t> known = store.findRun(run.value().uuid);
    if (!known.ok() && known.status().kind() != ErrorKind::InvalidArgument)
        return known.status();
    Result<std::int64_t> id = known.ok() ? known : store.beginRun(run.value());
    MR_TRY(id.status());
    const std::map<std::int64_t, StepRow> steps = readStepLog(stepLog);
    MR_TRY(importSteps(store, id.value(), steps));
    StoreBatch events;
    events.intervals = readIntervalLog(stepLog);
    forEachLine(eventLog, [&](std::string_view line) { (void)eventFromJson(line, events); });
    MR_TRY(store.append(id.value(), events));
    MR_TRY(importSamples(store, id.value(), readSampleLog(sampleLog)));
    if (known.ok())
        return id;
    const std::int64_t last = steps.empty() ? 0 : steps.rbegin()->first;
    const bool isComplete = run.value().totalSteps > 0 && last >= run.value().totalSteps;
    MR_TRY(store.endRun(id.value(), isComplete ? RunStatus::Done : RunStatus::Lost, 0,
        "read back from the run folder"));
    return id;
}

} // namespace mr
