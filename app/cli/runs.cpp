// `millrace runs`: the history, on the command line.

#include "app/cli/commands.h"
#include "core/run/run_history.h"
#include "core/telemetry/step_json.h"

#include <millrace/run_outcome.h>
#include <millrace/run_reader.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr::app {
namespace {

using Json = nlohmann::json;
constexpr std::int64_t kAllSteps = std::numeric_limits<std::int64_t>::max();

struct RunsOptions {
    std::string database;
    std::string runDir;
    std::int64_t first = 0;
    std::int64_t second = 0;
    bool json = false;
    bool csv = false;
    bool trace = false;
    bool machine = false;
};

Result<std::unique_ptr<RunReader>> openReader(const RunsOptions& options)
{
    return RunReader::open(options.database.empty() ? defaultDatabasePath() : options.database);
}

// A sentence for a run that reached its last step and made the model worse; else empty.
std::string worseThanBefore(const RunRow& run)
{
    return run.status == RunStatus::Done ? describeOutcome(judge(evaluationsOf(run)))
                                         : std::string();
}

Json describe(const RunRow& run)
{
    return {{"id", run.id}, {"name", run.name}, {"status", name(run.status)},
        {"model", run.modelName}, {"dataset", run.datasetName}, {"steps", run.lastStep},
        {"total_steps", run.totalSteps}, {"tokens", run.tokens}, {"last_loss", run.lastLoss},
        {"best_eval", run.bestEval}, {"best_eval_step", run.bestEvalStep},
        {"eval_before", run.firstEval}, {"eval_after", run.lastEval},
        {"worse", worseThanBefore(run)}, {"best_checkpoint_step", run.bestCheckpointStep},
        {"active_ms", run.activeUs / 1000}, {"compute_ms", run.computeUs / 1000},
        {"stall_ms", run.stallUs / 1000}, {"device_peak_bytes", run.devicePeakBytes},
        {"host_peak_bytes", run.hostPeakBytes}, {"energy_j", run.energyJ},
        {"simulated_link", run.simulatedLink}, {"dir", run.dir}, {"resumable", run.resumable},
        {"starts_again", run.startsAgain}, {"exit_reason", run.exitReason}, {"note", run.notes},
        {"tags", run.tags}};
}

Json describe(const ExportRow& row)
{
    return {{"form", row.form}, {"type", row.type}, {"path", row.path}, {"bytes", row.bytes},
        {"passed", row.passed}, {"facts", row.facts}, {"faults", row.faults}, {"notes", row.notes},
        {"created_ms", row.createdMs}};
}

int list(const RunsOptions& options)
{
    auto reader = openReader(options);
    if (!reader.ok())
        return fail(reader.status(), options.json);
    auto runs = reader.value()->runs();
    if (!runs.ok())
        return fail(runs.status(), options.json);
    if (!options.json && runs.value().empty())
        printLine("No runs yet. Start one with `millrace train`.");
    for (const RunRow& run : runs.value()) {
        if (options.json)
            printJson(describe(run));
        else
            printText("%4lld  %-8s %6lld/%-6lld loss %-8.4f %s", static_cast<long long>(run.id),
                std::string(name(run.status)).c_str(), static_cast<long long>(run.lastStep),
                static_cast<long long>(run.totalSteps), run.lastLoss, run.name.c_str());
        if (const std::string worse = worseThanBefore(run); !options.json && !worse.empty())
            printLine("      " + worse);
    }
    return 0;
}

int show(const RunsOptions& options)
{
    auto reader = openReader(options);
    if (!reader.ok())
        return fail(reader.status(), options.json);
    auto run = reader.value()->run(options.first);
    if (!run.ok())
        return fail(run.status(), options.json);
    Json json = describe(run.value());
    json["config"] = Json::parse(run.value().configJson, nullptr, false);
    json["plan"] = Json::parse(run.value().planJson, nullptr, false);
    auto evals = reader.value()->scalars(options.first, "eval_loss", -1);
    if (evals.ok())
        for (const ScalarRow& row : evals.value())
            json["eval_loss"].push_back({{"step", row.step}, {"loss", row.value}});
    auto exports = reader.value()->exports(options.first);
    if (!exports.ok())
        return fail(exports.status(), options.json);
    json["exports"] = Json::array();
    for (const ExportRow& row : exports.value())
        json["exports"].push_back(describe(row));
    printJson(json, options.json ? -1 : 2);
    return 0;
}

// The settings that differ, and the results side by side.
int compare(const RunsOptions& options)
{
    auto reader = openReader(options);
    if (!reader.ok())
        return fail(reader.status(), options.json);
    auto a = reader.value()->run(options.first);
    if (!a.ok())
        return fail(a.status(), options.json);
    auto b = reader.value()->run(options.second);
    if (!b.ok())
        return fail(b.status(), options.json);
    const Json left = Json::parse(a.value().configJson, nullptr, false);
    const Json right = Json::parse(b.value().configJson, nullptr, false);
    Json differences = Json::object();
    for (const Json* config : {&left, &right})
        for (const auto& [key, unused] : config->items())
            if (left.value(key, Json()) != right.value(key, Json()))
                differences[key] = {left.value(key, Json()), right.value(key, Json())};
    const Json json{
        {"runs", {describe(a.value()), describe(b.value())}}, {"differences", differences}};
    printJson(json, options.json ? -1 : 2);
    return 0;
}

void printCsv(const std::vector<StepRow>& steps)
{
    std::string head = "step,loss,lr,grad_norm,tokens,wall_us,compute_us";
    for (const std::string_view cause : kStallCauseNames)
        head += ",stall_" + std::string(cause) + "_us";
    printLine(head + ",h2d_bytes,d2h_bytes,device_peak_bytes,host_peak_bytes");
    for (const StepRow& row : steps) {
        std::string line =
            formatted("%lld,%.9g,%.9g,%.9g,%lld,%lld,%lld", static_cast<long long>(row.step),
                row.loss, row.learningRate, row.gradNorm, static_cast<long long>(row.tokens),
                static_cast<long long>(row.wallUs), static_cast<long long>(row.computeUs));
        for (const std::int64_t stall : row.stallUs)
            line += formatted(",%lld", static_cast<long long>(stall));
        for (const std::int64_t bytes :
            {row.h2dBytes, row.d2hBytes, row.devicePeakBytes, row.hostPeakBytes})
            line += formatted(",%lld", static_cast<long long>(bytes));
        printLine(line);
    }
}

// All samples of a run, by their time.
Result<std::map<std::int64_t, MachineSample>> samplesOf(RunReader& reader, std::int64_t id)
{
    std::map<std::int64_t, MachineSample> samples;
    for (std::size_t i = 0; i < kMachineMetrics; ++i) {
        const CounterWindow whole{0, kAllSteps, kAllSteps};
        MR_ASSIGN(auto series, reader.counter(id, kMachineMetricInfos[i].name, whole));
        for (const CounterEntry& entry : series.entries) {
            if (std::isnan(entry.mean))
                continue; // that second was missed
            MachineSample& sample = samples[entry.timeMs];
            sample.timeMs = entry.timeMs;
            sample.values[i] = static_cast<double>(entry.mean);
        }
    }
    return samples;
}

int printMachine(RunReader& reader, const RunsOptions& options)
{
    auto samples = samplesOf(reader, options.first);
    if (!samples.ok())
        return fail(samples.status());
    std::string head = "time_ms";
    for (const MachineMetricInfo& metric : kMachineMetricInfos)
        head += "," + std::string(metric.name) + " (" + std::string(metric.unit) + ")";
    if (options.csv)
        printLine(head);
    for (const auto& [timeMs, sample] : samples.value()) {
        if (!options.csv) {
            printLine(toJson(sample));
            continue;
        }
        std::string line = std::to_string(timeMs);
        for (const std::optional<double>& value : sample.values)
            line += value ? formatted(",%.7g", *value) : ",";
        printLine(line);
    }
    return 0;
}

// The newest step trace the run folder keeps; it is Chrome JSON already.
int printTrace(const RunRow& run)
{
    std::filesystem::path newest;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run.dir, error)) {
        const std::string file = entry.path().filename().string();
        if (file.starts_with("trace-") && file.ends_with(".json") &&
            (newest.empty() || entry.path() > newest))
            newest = entry.path();
    }
    if (newest.empty())
        return fail(Status::error(ErrorKind::InvalidArgument,
            run.dir + ": keeps no step trace; the first is written at step 50"));
    std::ifstream file(newest);
    printLine(std::string(std::istreambuf_iterator<char>(file), {}));
    return 0;
}

int exportRun(const RunsOptions& options)
{
    auto reader = openReader(options);
    if (!reader.ok())
        return fail(reader.status());
    auto run = reader.value()->run(options.first);
    if (!run.ok())
        return fail(run.status());
    if (options.trace)
        return printTrace(run.value());
    if (options.machine)
        return printMachine(*reader.value(), options);
    auto steps = reader.value()->steps(options.first, -1, kAllSteps);
    if (!steps.ok())
        return fail(steps.status());
    if (options.csv) {
        printCsv(steps.value());
        return 0;
    }
    for (const StepRow& row : steps.value())
        printLine(toJson(row));
    return 0;
}

// Enters a run into the history from the files in its folder.
int rebuild(const RunsOptions& options)
{
    const std::string database =
        options.database.empty() ? defaultDatabasePath() : options.database;
    auto store = RunStore::open(database);
    if (!store.ok())
        return fail(store.status(), options.json);
    auto id = rebuildHistory(*store.value(), options.runDir);
    if (!id.ok())
        return fail(id.status(), options.json);
    auto reader = RunReader::open(database);
    auto run = reader.ok() ? reader.value()->run(id.value()) : Result<RunRow>(reader.status());
    if (!run.ok())
        return fail(run.status(), options.json);
    if (options.json)
        printLine(describe(run.value()).dump(-1, ' ', false, Json::error_handler_t::replace));
    else
        std::printf("run %lld: %lld of %lld steps, %s\n", static_cast<long long>(id.value()),
            static_cast<long long>(run.value().lastStep),
            static_cast<long long>(run.value().totalSteps),
            std::string(name(run.value().status)).c_str());
    return 0;
}

} // namespace

void addRuns(CLI::App& app, Action& action)
{
    auto options = std::make_shared<RunsOptions>();
    CLI::App* command = app.add_subcommand("runs", "The history");
    command->add_option("--db", options->database, "History database");
    command->add_flag("--json", options->json, "JSON on stdout");
    command->require_subcommand(0, 1);
    command->fallthrough();
    // Parents are called after their subcommand, so the list must not take its place.
    command->callback([options, &action, command] {
        if (command->get_subcommands().empty())
            action = [options] { return list(*options); };
    });
    CLI::App* one = command->add_subcommand("show", "One run");
    one->add_option("id", options->first, "Run")->required();
    one->callback([options, &action] { action = [options] { return show(*options); }; });
    CLI::App* two = command->add_subcommand("compare", "Two runs: what differs");
    two->add_option("id", options->first, "Run")->required();
    two->add_option("other", options->second, "Other run")->required();
    two->callback([options, &action] { action = [options] { return compare(*options); }; });
    CLI::App* out = command->add_subcommand("export", "Steps of a run");
    out->add_option("id", options->first, "Run")->required();
    out->add_flag("--csv", options->csv, "Comma-separated values");
    out->add_flag("--trace", options->trace, "Chrome/Perfetto trace of a step");
    out->add_flag("--machine", options->machine, "The machine, once a second, instead of steps");
    out->callback([options, &action] { action = [options] { return exportRun(*options); }; });
    CLI::App* made = command->add_subcommand(
        "rebuild", "Enter a run in the history from its folder, where the history lost it");
    made->add_option("run", options->runDir, "Run folder")->required();
    made->callback([options, &action] { action = [options] { return rebuild(*options); }; });
}

} // namespace mr::app
