// `millrace train` and `millrace resume`: one run, with its records as JSON lines or for people.

#include "app/cli/commands.h"
#include "app/cli/data_options.h"
#include "app/cli/plan_data.h"
#include "app/cli/scratch_line.h"
#include "app/cli/spec_options.h"
#include "app/cli/stop_on_signal.h"
#include "app/compose.h"
#include "core/base/clock.h"
#include "core/run/engine.h"
#include "core/save/run_guard.h"
#include "core/save/trained_weights.h"
#include "core/telemetry/step_json.h"
#include "core/tokenizer/unicode_text.h"

#include <millrace/library.h>
#include <millrace/planner.h>
#include <millrace/spec_fields.h>

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

nlohmann::json startLine(const Engine& engine, const Device& device)
{
    const RunSetup& setup = engine.setup();
    PlanReport report = reportOf(setup);
    report.device = device.info().name;
    report.simulatedLink = device.info().simulatedLink;
    nlohmann::json json;
    json["event"] = "start";
    json["run_id"] = engine.runId();
    json["run_dir"] = engine.runDir().string();
    json["device"] = device.info().name;
    json["simulated_link"] = device.info().simulatedLink;
    json["policy"] = setup.spec.policy;
    json["exact"] = report.exact;
    json["parameters"] = report.parameters;
    json["trained_parameters"] = report.trainedParameters;
    json["plan"] = nlohmann::json::parse(toJson(report));
    json["data"] = nlohmann::json::parse(toJson(engine.data()));
    if (engine.products().wasMade())
        json["products"] = nlohmann::json::parse(toJson(engine.products()));
    if (const std::vector<std::string> advice = dataAdvice(engine.data()); !advice.empty())
        json["advice"] = advice;
    return json;
}

std::filesystem::path trainedPath(const Engine& engine)
{
    return engine.saveDir() / trainedFolder(engine.setup().table);
}

nlohmann::json endLine(const Engine& engine, const char* status)
{
    const RunProgress& progress = engine.progress();
    nlohmann::json json;
    json["event"] = "end";
    json["status"] = status;
    json["steps"] = progress.step;
    json["final_loss"] = progress.lastLoss;
    // None: the last steps were made after the last checkpoint, and that is of other weights.
    json["weights_hash"] = progress.weightsHash.empty() ? nlohmann::json(nullptr)
                                                        : nlohmann::json(progress.weightsHash);
    json["seconds"] = static_cast<double>(progress.activeMs) / 1000.0;
    json[trainedFolder(engine.setup().table)] = trainedPath(engine).string();
    const RunOutcome outcome = engine.outcome();
    if (std::isfinite(outcome.evaluations.before))
        json["eval_before"] = outcome.evaluations.before;
    if (outcome.evaluations.lastStep > 0)
        json["eval_after"] = outcome.evaluations.last;
    if (const std::string worse = describeOutcome(outcome); !worse.empty())
        json["worse"] = worse;
    return json;
}

void printStep(const StepRow& row)
{
    const double stalled = row.wallUs > 0
                               ? 100.0 * static_cast<double>(row.wallUs - row.computeUs) /
                                     static_cast<double>(row.wallUs)
                               : 0.0;
    printText("step %5lld  loss %.4f  lr %.2e  norm %.3f  %.0f ms  waiting %.1f %%",
        static_cast<long long>(row.step), row.loss, row.learningRate, row.gradNorm,
        static_cast<double>(row.wallUs) / 1000.0, stalled);
}

// Opening of a run: its progress line, and the signals that end it. Outlives the engine.
struct Opening {
    explicit Opening(bool json)
        : line(scratchLineKind(json), scratchLineWriter(scratchLineKind(json)))
    {
    }

    OpeningWatch watch()
    {
        return {[this](std::uint64_t done, std::uint64_t all) { line.show(nowNs(), done, all); },
            [this] { return signals.isSeen(); }};
    }

    StopOnSignal signals;
    ScratchLine line;
};

int notOpened(const Status& status, Opening& opening, bool json)
{
    opening.line.end();
    if (status.kind() != ErrorKind::Cancelled)
        return fail(status, json);
    say(status.message());
    if (json)
        printJson({{"event", "end"}, {"status", "stopped"}, {"reason", status.message()}});
    return exitCode(status);
}

struct TrainOptions {
    SpecOptions spec;
    std::string runDir;
    std::string database;
    std::string onDiskFull;
    std::string checkpointDir;
    ResumeChanges changes;
    std::string map;
    std::string deviceMemory;
    std::string hostMemory;
    bool threadedDevice = false;
    bool json = false;
    bool dryRun = false;
};

Result<OnDiskFull> parseOnDiskFull(const std::string& word)
{
    if (word.empty()) // on a terminal, a person sees the message and can make room
        return ::isatty(STDERR_FILENO) != 0 ? OnDiskFull::Wait : OnDiskFull::Stop;
    if (word == "wait")
        return OnDiskFull::Wait;
    if (word == "stop")
        return OnDiskFull::Stop;
    if (word == "skip")
        return OnDiskFull::Skip;
    return Status::error(
        ErrorKind::InvalidArgument, "--on-disk-full '" + word + "': want stop, wait or skip");
}

void sayHowToGoOn()
{
    say("Ctrl-C ends the run with what is saved already; `millrace resume RUN --checkpoint-dir "
        "FOLDER` goes on with another folder");
}

EngineHooks hooksFor(const TrainOptions& options, OnDiskFull onDiskFull, Opening& opening)
{
    const bool json = options.json;
    EngineHooks hooks;
    hooks.opening = opening.watch();
    hooks.onDiskFull = onDiskFull;
    hooks.saveFolder = options.checkpointDir;
    hooks.records.onStep = [json](const StepRow& row) {
        if (json)
            printLine(toJson(row));
        else
            printStep(row);
    };
    hooks.records.onInterval = [json](const IntervalRow& row) {
        if (json)
            printLine(toJson(row));
    };
    hooks.records.onScalar = [json](std::string_view metric, const ScalarRow& row) {
        if (json)
            printJson(
                {{"event", "eval"}, {"step", row.step}, {"metric", metric}, {"loss", row.value}});
        else
            printText("step %5lld  %s %.4f", static_cast<long long>(row.step),
                std::string(metric).c_str(), row.value);
    };
    hooks.records.onMessage = [json](const EventRow& row) {
        if (json && row.level != EventLevel::Info)
            printLine(toJson(row));
        else if (!json || row.level != EventLevel::Info)
            say(row.text);
        if (json && row.code == "paused") // in any case: somebody has to make room
            say(row.text);
        if (row.code == "paused")
            sayHowToGoOn();
    };
    hooks.onCheckpoint = [json](const CheckpointWritten& written, const RunProgress& progress) {
        if (!json)
            return;
        nlohmann::json line{{"event", "checkpoint"}, {"step", progress.step},
            {"path", written.path.string()}, {"bytes", written.bytes},
            {"weights_hash", progress.weightsHash}};
        if (std::isfinite(progress.evalLoss))
            line["eval_loss"] = progress.evalLoss;
        printJson(line);
    };
    return hooks;
}

// It ended as it was asked to, but not everything is on the disk.
int failUnsaved(const Engine& engine, bool json)
{
    if (json)
        printJson(endLine(engine, "stopped"));
    const bool canResume = !engine.checkpoints().empty();
    return fail(Status::error(engine.unsaved().kind(),
                    fmt::format("stopped at step {}: {}{}", engine.progress().step,
                        engine.unsaved().message(),
                        canResume ? std::string(engine.lacksSpace() ? "; make room and continue"
                                                                    : "; mend that and continue") +
                                        " from there with `millrace resume " +
                                        engine.saveDir().string() + "`"
                                  : "")),
        json);
}

int carryOut(Engine& engine, const Device& device, Opening& opening, bool json)
{
    opening.line.end();
    if (json)
        printJson(startLine(engine, device));
    else
        printText("run %lld in %s: %s, policy %s, %lld steps",
            static_cast<long long>(engine.runId()), engine.runDir().c_str(),
            parameterWords(reportOf(engine.setup())).c_str(), engine.setup().spec.policy.c_str(),
            static_cast<long long>(engine.setup().spec.steps));
    opening.signals.watch(engine);
    const Status started = engine.start();
    const Status ended = started.ok() ? engine.wait() : started;
    opening.signals.end();
    if (!engine.unsaved().ok())
        return failUnsaved(engine, json);
    if (!ended.ok())
        return fail(ended, json);
    const bool finished = engine.state() == RunState::Finished;
    if (json)
        printJson(endLine(engine, finished ? "done" : "stopped"));
    else if (finished)
        printText("done: the %s is in %s", trainedFolder(engine.setup().table).c_str(),
            trainedPath(engine).c_str());
    else
        printText("stopped and saved: continue with `millrace resume %s`", engine.runDir().c_str());
    return finished ? 0 : 130;
}

// Prints the plan and how the data is read; refuses the data that a run would refuse.
int dryRun(RunSpec asked, bool json)
{
    auto looked = lookAtData(asked);
    if (!looked.ok())
        return fail(looked.status(), json);
    auto complete = completeForMachine(asked);
    if (!complete.ok())
        return fail(complete.status(), json);
    auto report = planRun(complete.value());
    if (!report.ok())
        return fail(report.status(), json);
    auto line = nlohmann::json::parse(toJson(report.value()));
    if (looked.value().report)
        line["data"] = nlohmann::json::parse(toJson(*looked.value().report));
    printJson(line);
    return report.value().fits ? 0 : 3;
}

int train(const TrainOptions& options)
{
    Opening opening(options.json);
    auto onDiskFull = parseOnDiskFull(options.onDiskFull);
    if (!onDiskFull.ok())
        return fail(onDiskFull.status(), options.json);
    auto asked = options.spec.spec();
    if (!asked.ok())
        return fail(asked.status(), options.json);
    auto spec = completeForMachine(asked.value());
    if (!spec.ok())
        return fail(spec.status(), options.json);
    auto resolved = resolveSpec(spec.value(), 0);
    if (!resolved.ok())
        return fail(resolved.status(), options.json);
    if (options.dryRun)
        return dryRun(asked.value(), options.json);
    auto device = makeDevice(resolved.value());
    if (!device.ok())
        return fail(device.status(), options.json);
    auto store = openStore(spec.value().database);
    if (!store.ok())
        return fail(store.status(), options.json);
    EngineHooks hooks = hooksFor(options, onDiskFull.value(), opening);
    hooks.asked = asked.value();
    auto engine = Engine::open(spec.value(), *device.value(), *store.value(), std::move(hooks));
    if (!engine.ok())
        return notOpened(engine.status(), opening, options.json);
    return carryOut(*engine.value(), *device.value(), opening, options.json);
}

Result<ResumeChanges> changesOf(const TrainOptions& options)
{
    ResumeChanges changes = options.changes;
    for (const auto& [text, bytes] : {std::pair{&options.deviceMemory, &changes.deviceMemoryBytes},
             {&options.hostMemory, &changes.hostMemoryBytes}}) {
        if (text->empty())
            continue;
        MR_ASSIGN(*bytes, parseBytes(*text));
    }
    if (options.threadedDevice)
        changes.threadedDevice = true;
    MR_TRY(readPairs(options.map, "--map", changes.columns));
    return changes;
}

int resume(const TrainOptions& options)
{
    Opening opening(options.json);
    auto onDiskFull = parseOnDiskFull(options.onDiskFull);
    if (!onDiskFull.ok())
        return fail(onDiskFull.status(), options.json);
    auto changes = changesOf(options);
    if (!changes.ok())
        return fail(changes.status(), options.json);
    if (!isUtf8(options.checkpointDir))
        return fail(Status::error(ErrorKind::InvalidArgument,
                        "--checkpoint-dir " + options.checkpointDir +
                            ": this path is not UTF-8, so the run could not find it again; rename "
                            "it, or give a link to it"),
            options.json);
    auto spec = readRunSpec(options.runDir);
    if (!spec.ok())
        return fail(spec.status(), options.json);
    const RunSpec wanted = changed(spec.value(), changes.value());
    if (const Status status = checkSpec(wanted); !status.ok()) // the folder may be a stranger's
        return fail(status, options.json);
    auto device = makeDevice(wanted);
    if (!device.ok())
        return fail(device.status(), options.json);
    const Status known =
        options.database.empty() ? mayUseDatabase(spec.value(), options.runDir) : Status();
    if (!known.ok())
        return fail(known, options.json);
    auto store = openStore(options.database.empty() ? spec.value().database : options.database);
    if (!store.ok())
        return fail(store.status(), options.json);
    EngineHooks hooks = hooksFor(options, onDiskFull.value(), opening);
    hooks.changes = changes.value();
    auto engine = Engine::resume(options.runDir, *device.value(), *store.value(), std::move(hooks));
    if (!engine.ok())
        return notOpened(engine.status(), opening, options.json);
    return carryOut(*engine.value(), *device.value(), opening, options.json);
}

} // namespace

void addOnDiskFull(CLI::App& command, TrainOptions& options)
{
    command.add_option("--on-disk-full", options.onDiskFull,
        "Where a checkpoint or the model finds no room or no folder: wait (pause, look every few "
        "seconds, go on when there is room), stop (end; older checkpoints stay) or skip (go on "
        "without). Default: wait on a terminal, else stop");
}

void addTrain(CLI::App& app, Action& action)
{
    auto options = std::make_shared<TrainOptions>();
    CLI::App* command = app.add_subcommand("train", "Fine-tune a model");
    options->spec.addTo(*command, true);
    addOnDiskFull(*command, *options);
    command->add_flag("--json", options->json, "One JSON object per line on stdout");
    command->add_flag("--dry-run", options->dryRun, "Plan only");
    command->callback([options, &action] { action = [options] { return train(*options); }; });
}

void addResume(CLI::App& app, Action& action)
{
    auto options = std::make_shared<TrainOptions>();
    CLI::App* command = app.add_subcommand("resume", "Continue a stopped or killed run");
    command->add_option("run", options->runDir, "Run folder")->required();
    command->add_option("--db", options->database, "History database");
    command->add_option("--checkpoint-dir", options->checkpointDir,
        "Folder in which checkpoints and the model are put from here on, if the run folder has no "
        "room for them");
    command
        ->add_option("--threads", options->changes.threads,
            "Compute threads from here on; the result is the same")
        ->check(CLI::PositiveNumber);
    command->add_option("--map", options->map,
        "Columns of a run that an earlier version began without --map, where they are asked for "
        "now; "
        "the data must give the tokens it began with");
    command->add_option("--device-memory", options->deviceMemory, "Another budget, as 6GiB");
    command->add_option("--host-memory", options->hostMemory, "Another budget, as 24GiB");
    command->add_flag("--threaded-device", options->threadedDevice,
        "CPU device: every stream is a thread of its own from here on");
    addOnDiskFull(*command, *options);
    command->add_flag("--json", options->json, "One JSON object per line on stdout");
    command->callback([options, &action] { action = [options] { return resume(*options); }; });
}

} // namespace mr::app
