// `millrace train` and `millrace resume`: one run, with its records as JSON lines or for people.

#include "app/cli/commands.h"
#include "app/cli/scratch_line.h"
#include "app/cli/spec_options.h"
#include "app/cli/stop_on_signal.h"
#include "app/compose.h"
#include "core/base/clock.h"
#include "core/engine/engine.h"
#include "core/telemetry/step_json.h"

#include <millrace/planner.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

std::string startLine(const Engine& engine, const Device& device)
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
    json["parameters"] = setup.table.parameters;
    json["plan"] = nlohmann::json::parse(toJson(report));
    return json.dump();
}

std::string endLine(const Engine& engine, const char* status)
{
    const RunProgress& progress = engine.progress();
    nlohmann::json json;
    json["event"] = "end";
    json["status"] = status;
    json["steps"] = progress.step;
    json["final_loss"] = progress.lastLoss;
    json["weights_hash"] = progress.weightsHash;
    json["seconds"] = static_cast<double>(progress.activeMs) / 1000.0;
    json["model"] = (engine.runDir() / "model").string();
    return json.dump();
}

void printStep(const StepRow& row)
{
    const double stalled = row.wallUs > 0
                               ? 100.0 * static_cast<double>(row.wallUs - row.computeUs) /
                                     static_cast<double>(row.wallUs)
                               : 0.0;
    std::printf("step %5lld  loss %.4f  lr %.2e  norm %.3f  %.0f ms  waiting %.1f %%\n",
        static_cast<long long>(row.step), row.loss, row.learningRate, row.gradNorm,
        static_cast<double>(row.wallUs) / 1000.0, stalled);
    (void)std::fflush(stdout);
}

// How a run is opened: what it tells, and what ends it. Outlives the engine.
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
    (void)std::fprintf(stderr, "millrace: %s\n", status.message().c_str());
    if (json)
        printLine(
            nlohmann::json{{"event", "end"}, {"status", "stopped"}, {"reason", status.message()}}
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return exitCode(status);
}

EngineHooks hooksFor(Opening& opening, bool json)
{
    EngineHooks hooks;
    hooks.opening = opening.watch();
    hooks.records.onStep = [json](const StepRow& row) {
        if (json)
            printLine(toJson(row));
        else
            printStep(row);
    };
    hooks.records.onScalar = [json](std::string_view metric, const ScalarRow& row) {
        if (json)
            printLine(nlohmann::json{
                {"event", "eval"}, {"step", row.step}, {"metric", metric}, {"loss", row.value}}
                          .dump());
        else
            std::printf("step %5lld  %s %.4f\n", static_cast<long long>(row.step),
                std::string(metric).c_str(), row.value);
    };
    hooks.records.onMessage = [json](const EventRow& row) {
        if (json && row.level != EventLevel::Info)
            printLine(toJson(row));
        else if (!json || row.level != EventLevel::Info)
            (void)std::fprintf(stderr, "millrace: %s\n", row.text.c_str());
    };
    hooks.onCheckpoint = [json](const CheckpointWritten& written, const RunProgress& progress) {
        if (json)
            printLine(nlohmann::json{{"event", "checkpoint"}, {"step", progress.step},
                {"path", written.path.string()}, {"bytes", written.bytes},
                {"weights_hash", progress.weightsHash}}
                          .dump());
    };
    return hooks;
}

int carryOut(Engine& engine, const Device& device, Opening& opening, bool json)
{
    opening.line.end();
    if (json)
        printLine(startLine(engine, device));
    else
        std::printf("run %lld in %s: %lld parameters, policy %s, %lld steps\n",
            static_cast<long long>(engine.runId()), engine.runDir().c_str(),
            static_cast<long long>(engine.setup().table.parameters),
            engine.setup().spec.policy.c_str(), static_cast<long long>(engine.setup().spec.steps));
    opening.signals.watch(engine);
    const Status started = engine.start();
    const Status ended = started.ok() ? engine.wait() : started;
    opening.signals.end();
    if (!ended.ok())
        return fail(ended, json);
    const bool finished = engine.state() == RunState::Finished;
    if (json)
        printLine(endLine(engine, finished ? "done" : "stopped"));
    else if (finished)
        std::printf("done: the model is in %s\n", (engine.runDir() / "model").c_str());
    else
        std::printf(
            "stopped and saved: continue with `millrace resume %s`\n", engine.runDir().c_str());
    return finished ? 0 : 130;
}

struct TrainOptions {
    SpecOptions spec;
    std::string runDir;
    std::string database;
    bool json = false;
    bool dryRun = false;
};

int train(const TrainOptions& options)
{
    Opening opening(options.json);
    auto asked = options.spec.spec();
    if (!asked.ok())
        return fail(asked.status(), options.json);
    auto spec = completeForMachine(asked.value());
    if (!spec.ok())
        return fail(spec.status(), options.json);
    auto resolved = resolveSpec(spec.value(), 0);
    if (!resolved.ok())
        return fail(resolved.status(), options.json);
    if (options.dryRun) {
        auto report = planRun(spec.value());
        if (!report.ok())
            return fail(report.status(), options.json);
        printLine(toJson(report.value()));
        return report.value().fits ? 0 : 3;
    }
    auto device = makeDevice(resolved.value());
    if (!device.ok())
        return fail(device.status(), options.json);
    auto store = openStore(spec.value().database);
    if (!store.ok())
        return fail(store.status(), options.json);
    auto engine = Engine::open(
        spec.value(), *device.value(), *store.value(), hooksFor(opening, options.json));
    if (!engine.ok())
        return notOpened(engine.status(), opening, options.json);
    return carryOut(*engine.value(), *device.value(), opening, options.json);
}

int resume(const TrainOptions& options)
{
    Opening opening(options.json);
    auto spec = readRunSpec(options.runDir);
    if (!spec.ok())
        return fail(spec.status(), options.json);
    auto device = makeDevice(spec.value());
    if (!device.ok())
        return fail(device.status(), options.json);
    auto store = openStore(options.database.empty() ? spec.value().database : options.database);
    if (!store.ok())
        return fail(store.status(), options.json);
    auto engine = Engine::resume(
        options.runDir, *device.value(), *store.value(), hooksFor(opening, options.json));
    if (!engine.ok())
        return notOpened(engine.status(), opening, options.json);
    return carryOut(*engine.value(), *device.value(), opening, options.json);
}

} // namespace

void addTrain(CLI::App& app, Action& action)
{
    auto options = std::make_shared<TrainOptions>();
    CLI::App* command = app.add_subcommand("train", "Fine-tune a model");
    options->spec.addTo(*command, true);
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
    command->add_flag("--json", options->json, "One JSON object per line on stdout");
    command->callback([options, &action] { action = [options] { return resume(*options); }; });
}

} // namespace mr::app
