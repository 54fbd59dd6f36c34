#include "core/engine/checkpoint.h"

#include "core/base/file.h"
#include "core/engine/checkpoint_text.h"
#include "core/engine/checkpoint_window.h"
#include "core/engine/run_master.h"
#include "core/model/safetensors.h"
#include "core/model/weights.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace mr {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
constexpr const char* kManifest = "manifest.json";
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct StateTensor {
    const char* name;
    StatePart part;
    const char* dtype;
};

constexpr std::array<StateTensor, 3> kPlainTensors = {{{"low.", StatePart::Low, "I16"},
    {"m.", StatePart::FirstMoment, "F32"}, {"v.", StatePart::SecondMoment, "F32"}}};
constexpr std::array<StateTensor, 5> kCompactTensors = {{{"remainder.", StatePart::Low, "I8"},
    {"m.", StatePart::FirstMoment, "I8"}, {"v.", StatePart::SecondMoment, "U8"},
    {"m_scale.", StatePart::FirstScale, "F32"}, {"v_scale.", StatePart::SecondScale, "F32"}}};

std::span<const StateTensor> stateTensors(StateCodec codec)
{
    if (codec == StateCodec::Compact)
        return kCompactTensors;
    return kPlainTensors;
}

Result<std::string> hashFile(const fs::path& path)
{
    auto opened = File::openRead(path);
    if (!opened.ok())
        return opened.status();
    const File file = std::move(opened).value();
    auto size = file.bytes();
    if (!size.ok())
        return size.status();
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
        XXH3_createState(), &XXH3_freeState);
    XXH3_64bits_reset(state.get());
    std::vector<std::byte> piece(kPieceBytes);
    for (std::uint64_t at = 0; at < size.value(); at += piece.size()) {
        const std::size_t count = std::min<std::uint64_t>(piece.size(), size.value() - at);
        MR_TRY(file.readAt(at, {piece.data(), count}));
        XXH3_64bits_update(state.get(), piece.data(), count);
    }
    std::array<char, 17> text{};
    (void)std::snprintf(text.data(), text.size(), "%016" PRIx64, XXH3_64bits_digest(state.get()));
    return std::string(text.data());
}

std::string stepFolder(std::int64_t step)
{
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "step-%08" PRId64, step);
    return text.data();
}

Json toJson(const Carry& carry, const WindowState& state)
{
    Json json = {{"window", carry.window}, {"steps_into_window", carry.stepsIntoWindow},
        {"landed", carry.landed}, {"ownership", carry.ownership.value},
        {"device_updates", state.deviceUpdates}, {"host_updates", state.hostUpdates}};
    for (const WindowBank& bank : state.banks)
        json["banks"].push_back({bank.gradients, bank.applied, bank.scale});
    for (const StepScalars& scalars : {state.step, state.urgent})
        json["scalars"].push_back({scalars.gradNorm, scalars.clipFactor, scalars.finite});
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
        const double norm = from.at(0).is_null() ? std::nan("") : from.at(0).get<double>();
        return StepScalars{norm, from.at(1), from.at(2)};
    };
    state.step = scalars(0);
    state.urgent = scalars(1);
    if (!json.contains("job"))
        return;
    const Json& job = json.at("job");
    const bool sent = job.size() < 6 || job.at(5).get<bool>(); // older ones have no such place
    carry.hostJob = {job.at(0), job.at(1), job.at(2), job.at(3), job.at(4), sent};
}

Json toJson(const RunProgress& p)
{
    return {{"step", p.step}, {"update_count", p.updateCount}, {"tokens", p.tokens},
        {"active_ms", p.activeMs}, {"bad_steps", p.badSteps}, {"last_grad_norm", p.lastGradNorm},
        {"last_loss", p.lastLoss},
        {"sampler", {p.sampler.seed, p.sampler.epoch, p.sampler.position, p.sampler.count}},
        {"instruction_set", p.instructionSet}, {"precision", p.precision},
        {"weights_hash", p.weightsHash}, {"data_hash", p.dataHash},
        {"window", toJson(p.carry, p.windows)}, {"version", 1}};
}

Result<RunProgress> parseProgress(const std::string& text, const fs::path& path)
{
    auto checked = parseStateText(text, path.string());
    if (!checked.ok())
        return checked.status();
    try {
        const Json& json = checked.value();
        RunProgress p;
        p.step = json.at("step");
        p.updateCount = json.at("update_count");
        p.tokens = json.at("tokens");
        p.activeMs = json.at("active_ms");
        p.badSteps = json.at("bad_steps");
        const auto number = [&](const char* key) { // NaN is written as null
            return json.at(key).is_null() ? 0.0 : json.at(key).get<double>();
        };
        p.lastGradNorm = number("last_grad_norm");
        p.lastLoss = number("last_loss");
        const Json& sampler = json.at("sampler");
        p.sampler = {sampler.at(0), sampler.at(1), sampler.at(2), sampler.at(3)};
        p.instructionSet = json.at("instruction_set");
        p.precision = json.at("precision");
        p.weightsHash = json.at("weights_hash");
        p.dataHash = json.at("data_hash");
        if (json.contains("window"))
            parseWindow(json.at("window"), p.carry, p.windows);
        p.carry.step = p.step;
        return p;
    } catch (const Json::exception& e) {
        return Status::error(ErrorKind::DataCorrupt, path.string() + ": " + e.what());
    }
}

Status writeState(const CheckpointContext& context, const fs::path& file)
{
    std::vector<SafetensorSource> sources;
    for (std::int64_t g = 0; g < context.memory.groupCount(); ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        const StateCodec codec = context.memory.stateCodec();
        for (const StateTensor& tensor : stateTensors(codec)) {
            const StatePlane& plane = planeOf(codec, tensor.part);
            const std::size_t each = plane.valueBytes;
            SafetensorSource source;
            source.name = tensor.name + std::to_string(g);
            source.dtype = tensor.dtype;
            source.shape = {plane.values(context.memory.group(id).elements)};
            source.bytes = plane.bytes(context.memory.group(id).elements);
            source.fill = [&context, id, each, part = tensor.part](
                              std::uint64_t offset, std::span<std::byte> out) {
                return context.executor.readState(
                    id, part, static_cast<std::int64_t>(offset / each), out);
            };
            sources.push_back(std::move(source));
        }
    }
    return writeSafetensors(file, sources);
}

Status loadState(const CheckpointContext& context, const fs::path& file)
{
    auto opened = SafetensorsReader::open(file);
    if (!opened.ok())
        return opened.status();
    const SafetensorsReader reader = std::move(opened).value();
    std::vector<std::byte> piece(kPieceBytes);
    for (std::int64_t g = 0; g < context.memory.groupCount(); ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        const StateCodec codec = context.memory.stateCodec();
        for (const StateTensor& tensor : stateTensors(codec)) {
            const StatePlane& plane = planeOf(codec, tensor.part);
            const std::size_t each = plane.valueBytes;
            const std::size_t length = plane.bytes(context.memory.group(id).elements);
            const std::string name = tensor.name + std::to_string(g);
            const auto entry = reader.entries().find(name);
            if (entry == reader.entries().end() ||
                entry->second.end - entry->second.begin != length)
                return Status::error(ErrorKind::DataCorrupt,
                    file.string() + ": " + name + " is missing or of another length");
            for (std::uint64_t at = 0; at < length; at += piece.size()) {
                const std::size_t bytes = std::min<std::uint64_t>(piece.size(), length - at);
                MR_TRY(reader.readBytes(name, at, {piece.data(), bytes}));
                MR_TRY(context.executor.writeState(
                    id, tensor.part, static_cast<std::int64_t>(at / each), {piece.data(), bytes}));
            }
        }
    }
    return {};
}

// Lists every file below `folder` with its hash, fsyncs the folders, writes the manifest.
Result<CheckpointWritten> seal(const fs::path& folder)
{
    CheckpointWritten written;
    Json files = Json::object();
    std::error_code error; // not thrown: a disk that goes away is a failure like any other
    fs::recursive_directory_iterator entry(folder, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        if (entry->is_directory(error)) {
            MR_TRY(syncFolder(entry->path()));
            continue;
        }
        auto hash = hashFile(entry->path());
        if (!hash.ok())
            return hash.status();
        const std::uint64_t bytes = entry->file_size(error);
        if (error)
            break;
        written.bytes += bytes;
        files[entry->path().lexically_relative(folder).generic_string()] = {
            {"bytes", bytes}, {"xxh3", hash.value()}};
    }
    if (error)
        return Status::error(ErrorKind::Io, "list " + folder.string() + ": " + error.message());
    MR_TRY(replaceFile(folder / kManifest, Json{{"version", 1}, {"files", files}}.dump(1)));
    auto hash = hashFile(folder / kManifest);
    if (!hash.ok())
        return hash.status();
    written.manifestHash = hash.value();
    MR_TRY(syncFolder(folder));
    return written;
}

Status verify(const fs::path& folder)
{
    auto text = readWholeFile(folder / kManifest, 16 << 20);
    if (!text.ok())
        return text.status();
    auto manifest = parseManifestText(text.value(), (folder / kManifest).string());
    if (!manifest.ok())
        return manifest.status();
    for (const auto& [name, entry] : manifest.value()["files"].items()) {
        auto hash = hashFile(folder / name);
        if (!hash.ok())
            return hash.status();
        if (entry["xxh3"] != hash.value())
            return Status::error(ErrorKind::DataCorrupt,
                (folder / name).string() + ": the bytes are not those that were written");
    }
    return {};
}

Result<std::string> writeInto(
    const CheckpointContext& context, const fs::path& folder, RunProgress& progress)
{
    auto state = stateMaster(context.executor, context.memory);
    MR_TRY(state.status());
    auto hash = weightsHash(context.table, *state.value());
    MR_TRY(hash.status());
    progress.weightsHash = std::move(hash).value();
    WindowTasks* window = context.executor.window();
    if (window)
        progress.windows = window->capture();
    const bool wide = context.memory.compute() == DType::F32;
    // A host that works on a window is ahead of the weights.
    const std::unique_ptr<MasterReader> weights =
        progress.carry.hostJob ? weightsInUse(context.executor, context.memory)
                               : std::move(state).value();
    MR_TRY(saveModel(folder / "model", context.config, context.table, *weights,
        wide ? ExportType::F32 : ExportType::BF16, context.carryFrom));
    std::error_code error;
    fs::create_directories(folder / "state", error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create " + (folder / "state").string() + ": " + error.message());
    MR_TRY(writeState(context, folder / "state" / "state.safetensors"));
    if (window)
        MR_TRY(writeWindow(context, folder / "state" / "window.safetensors"));
    MR_TRY(replaceFile(folder / "state" / "state.json", toJson(progress).dump(1)));
    return progress.weightsHash;
}

Result<CheckpointWritten> writeAndRename(const CheckpointContext& context,
    const fs::path& temporary, const fs::path& final, RunProgress& progress)
{
    std::error_code error;
    fs::create_directories(temporary, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create " + temporary.string() + ": " + error.message());
    MR_TRY(writeInto(context, temporary, progress).status());
    auto sealed = seal(temporary);
    MR_TRY(sealed.status());
    fs::remove_all(final, error); // the same step written again after a resume
    fs::rename(temporary, final, error);
    if (error)
        return Status::error(ErrorKind::Io,
            "rename " + temporary.string() + " to " + final.string() + ": " + error.message());
    MR_TRY(syncFolder(final.parent_path()));
    CheckpointWritten result = std::move(sealed).value();
    result.path = final;
    return result;
}

// Of checkpoints; where a run moved to first.
std::vector<fs::path> foldersOf(const fs::path& runDir, const fs::path& saveDir)
{
    if (saveDir.empty() || saveDir == runDir)
        return {runDir / "checkpoints"};
    return {saveDir / "checkpoints", runDir / "checkpoints"};
}

} // namespace

Result<CheckpointWritten> writeCheckpoint(
    const CheckpointContext& context, const fs::path& runDir, RunProgress& progress)
{
    const fs::path folder = runDir / "checkpoints";
    const fs::path temporary = folder / ("." + stepFolder(progress.step));
    std::error_code error;
    fs::remove_all(temporary, error);
    auto written = writeAndRename(context, temporary, folder / stepFolder(progress.step), progress);
    if (!written.ok())
        fs::remove_all(temporary, error); // gives back the space; the run itself is untouched
    return written;
}

Result<RunProgress> loadCheckpoint(const CheckpointContext& context, const fs::path& checkpoint)
{
    MR_TRY(verify(checkpoint));
    auto text = readWholeFile(checkpoint / "state" / "state.json", 1 << 20);
    if (!text.ok())
        return text.status();
    auto progress = parseProgress(text.value(), checkpoint / "state" / "state.json");
    if (!progress.ok())
        return progress.status();
    auto weights = openWeights(checkpoint / "model", context.config, context.table);
    MR_TRY(weights.status());
    MR_TRY(installMaster(context.executor, context.memory, *weights.value()));
    MR_TRY(loadState(context, checkpoint / "state" / "state.safetensors"));
    if (context.executor.window())
        MR_TRY(loadWindow(context, checkpoint / "state" / "window.safetensors", progress.value()));
    else if (progress.value().carry.hostJob)
        return Status::error(ErrorKind::DataCorrupt,
            (checkpoint / "state" / "state.json").string() +
                ": field \"job\" is of a policy with windows, this run has none");
    return progress;
}

std::vector<fs::path> listCheckpoints(const fs::path& runDir, const fs::path& saveDir)
{
    std::vector<fs::path> found;
    std::error_code error;
    for (const fs::path& folder : foldersOf(runDir, saveDir))
        for (const auto& entry : fs::directory_iterator(folder, error))
            if (entry.path().filename().string().starts_with("step-") &&
                fs::exists(entry.path() / kManifest, error))
                found.push_back(entry.path());
    std::stable_sort(found.begin(), found.end(),
        [](const fs::path& a, const fs::path& b) { return a.filename() > b.filename(); });
    return found;
}

std::vector<fs::path> pruneCheckpoints(
    const fs::path& runDir, std::int64_t keep, const fs::path& saveDir)
{
    std::vector<fs::path> removed;
    std::error_code error;
    for (const fs::path& folder : foldersOf(runDir, saveDir))
        for (const auto& entry : fs::directory_iterator(folder, error))
            if (entry.path().filename().string().starts_with(".step-"))
                fs::remove_all(entry.path(), error); // what a crash left half written
    const auto complete = listCheckpoints(runDir, saveDir);
    for (std::size_t i = static_cast<std::size_t>(std::max<std::int64_t>(keep, 1));
         i < complete.size(); ++i) {
        if (fs::remove_all(complete[i], error) > 0)
            removed.push_back(complete[i]);
    }
    return removed;
}

} // namespace mr
