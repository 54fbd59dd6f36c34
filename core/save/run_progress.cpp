#include "core/save/run_progress.h"

#include "core/save/checkpoint_text.h"

#include <nlohmann/json.hpp>

namespace mr {
namespace {

using Json = nlohmann::json;

Json toJson(const Carry& carry, const WindowState& state)
{
    Json json = {{"window", carry.window}, {"steps_into_window", carry.stepsIntoWindow},
        {"landed", carry.landed}, {"ownership", carry.ownership.value},
        {"device_updates", state.deviceUpdates}, {"host_updates", state.hostUpdates}};
    for (const WindowBank& bank : state.banks)
        json["banks"].push_back({bank.gradients, bank.applied, bank.scale});
    for (const StepScalars& scalars : {state.step, state.urgent})
        json["scalars"].push_back(
            {exactly(scalars.gradNorm), exactly(scalars.clipFactor), scalars.finite});
    if (const auto& job = carry.hostJob)
        json["job"] = {
            job->window, job->version, job->dueStep, job->tilesDone, job->normJoined, job->sent};
    return json;
}

void parseWindow(const Json& json, Carry& carry, WindowState& state)
{
    carry.window = json.at("window");
    carry.stepsIntoWindow = json.at("steps_into_window");
    carry.landed = json.at("landed");
    carry.ownership.value = json.at("ownership");
    state.deviceUpdates = json.at("device_updates");
    state.hostUpdates = json.at("host_updates");
    for (std::size_t b = 0; b < state.banks.size(); ++b) {
        const Json& bank = json.at("banks").at(b);
        state.banks[b] = {bank.at(0), bank.at(1), bank.at(2)};
    }
    const auto scalars = [&](std::size_t i) {
        const Json& from = json.at("scalars").at(i);
        return StepScalars{readExact<double>(from.at(0)).value(),
            readExact<float>(from.at(1)).value(), from.at(2)};
    };
    state.step = scalars(0);
    state.urgent = scalars(1);
    if (!json.contains("job"))
        return;
    const Json& job = json.at("job");
    const bool sent = job.size() < 6 || job.at(5).get<bool>(); // older ones have no such place
    carry.hostJob = {job.at(0), job.at(1), job.at(2), job.at(3), job.at(4), sent};
}

Json toJson(std::int64_t turn, const std::vector<TurnedGroup>& turned)
{
    Json groups = Json::array();
    for (const TurnedGroup& group : turned)
        groups.push_back({group.group.value, group.file, group.hash});
    return {{"turn", turn}, {"groups", std::move(groups)}};
}

void parseTurns(const Json& json, RunProgress& progress)
{
    progress.turn = json.at("turn");
    for (const Json& group : json.at("groups"))
        progress.turned.push_back({GroupId{group.at(0)}, group.at(1), group.at(2)});
}

} // namespace

std::string toJson(const RunProgress& progress)
{
    const RunProgress& p = progress;
    Json json = {{"step", p.step}, {"update_count", p.updateCount}, {"tokens", p.tokens},
        {"active_ms", p.activeMs}, {"bad_steps", p.badSteps},
        {"last_grad_norm", exactly(p.lastGradNorm)}, {"last_loss", exactly(p.lastLoss)},
        {"eval_loss", exactly(p.evalLoss)}, {"run", p.runId},
        {"sampler", {p.sampler.seed, p.sampler.epoch, p.sampler.position, p.sampler.count}},
        {"instruction_set", p.instructionSet}, {"precision", p.precision},
        {"weights_hash", p.weightsHash}, {"data_hash", p.dataHash}, {"base_hash", p.baseHash},
        {"window", toJson(p.carry, p.windows)}, {"version", 1}};
    if (!p.optimizer.empty())
        json["optimizer"] = p.optimizer;
    if (p.turn > 0 || !p.turned.empty())
        json["turns"] = toJson(p.turn, p.turned);
    return json.dump(1);
}

Result<RunProgress> progressFromJson(std::string_view text, const std::filesystem::path& path)
{
    MR_ASSIGN(auto checked, parseStateText(text, path.string()));
    try {
        const Json& json = checked;
        RunProgress p;
        p.step = json.at("step");
        p.updateCount = json.at("update_count");
        p.tokens = json.at("tokens");
        p.activeMs = json.at("active_ms");
        p.badSteps = json.at("bad_steps");
        p.lastGradNorm = readExact<double>(json.at("last_grad_norm")).value();
        p.lastLoss = readExact<double>(json.at("last_loss")).value();
        if (json.contains("eval_loss"))
            p.evalLoss = readExact<double>(json.at("eval_loss")).value();
        p.runId = json.value("run", std::string());
        const Json& sampler = json.at("sampler");
        p.sampler = {sampler.at(0), sampler.at(1), sampler.at(2), sampler.at(3)};
        p.instructionSet = json.at("instruction_set");
        p.precision = json.at("precision");
        p.optimizer = json.value("optimizer", std::string());
        p.weightsHash = json.at("weights_hash");
        p.dataHash = json.at("data_hash");
        p.baseHash = json.value("base_hash", std::string()); // earlier programs had no adapters
        if (json.contains("turns"))
            parseTurns(json.at("turns"), p);
        if (json.contains("window"))
            parseWindow(json.at("window"), p.carry, p.windows);
        p.carry.step = p.step;
        return p;
    } catch (const Json::exception& e) {
        return Status::error(ErrorKind::DataCorrupt, path.string() + ": " + e.what());
    }
}

} // namespace mr
