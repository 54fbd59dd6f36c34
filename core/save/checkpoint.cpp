#include "core/save/checkpoint.h"

#include "core/base/file.h"
#include "core/model/safetensors.h"
#include "core/model/weights.h"
#include "core/save/checkpoint_manifest.h"
#include "core/save/checkpoint_window.h"
#include "core/save/trained_weights.h"
#include "core/step/run_master.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mr {
namespace fs = std::filesystem;
namespace {

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

// An optimizer without moments has the first tensor of these, or none.
std::span<const StateTensor> stateTensors(StateCodec codec)
{
    switch (codec) {
    case StateCodec::Compact:
        return kCompactTensors;
    case StateCodec::Halves:
        return std::span(kPlainTensors).first(1);
    case StateCodec::Bits24:
        return std::span(kCompactTensors).first(1);
    case StateCodec::Random16:
        return {};
    case StateCodec::Plain:
        break;
    }
    return kPlainTensors;
}

// A tensor of a group's state in the file, and where its bytes are in the run; offsets count bytes.
struct SavedTensor {
    std::string name;
    const char* dtype = nullptr;
    std::int64_t values = 0;
    std::uint64_t bytes = 0;
    std::function<Status(std::uint64_t at, std::span<std::byte> out)> read;
    std::function<Status(std::uint64_t at, std::span<const std::byte> in)> write;
};

SavedTensor savedPlane(const CheckpointContext& context, GroupId id, const StateTensor& tensor)
{
    const StatePlane& plane = planeOf(context.memory.stateCodec(), tensor.part);
    const std::int64_t elements = context.memory.group(id).elements;
    const auto valueAt = [each = plane.valueBytes](
                             std::uint64_t at) { return static_cast<std::int64_t>(at / each); };
    StateAccess& state = context.executor.state();
    return {tensor.name + std::to_string(id.value), tensor.dtype, plane.values(elements),
        plane.bytes(elements),
        [=, &state, part = tensor.part](std::uint64_t at, std::span<std::byte> out) {
            return state.read(id, part, valueAt(at), out);
        },
        [=, &state, part = tensor.part](std::uint64_t at, std::span<const std::byte> in) {
            return state.write(id, part, valueAt(at), in);
        }};
}

// Averages of a light optimizer, all of a group's weights one after the other.
SavedTensor savedAverages(const CheckpointContext& context, GroupId id)
{
    const std::size_t bytes = context.memory.group(id).averages.size();
    const auto valueAt = [](std::uint64_t at) {
        return static_cast<std::int64_t>(at / sizeof(float));
    };
    StateAccess& state = context.executor.state();
    return {"averages." + std::to_string(id.value), "F32", valueAt(bytes), bytes,
        [=, &state](std::uint64_t at, std::span<std::byte> out) {
            return state.readAverages(id, valueAt(at), out);
        },
        [=, &state](std::uint64_t at, std::span<const std::byte> in) {
            return state.writeAverages(id, valueAt(at), in);
        }};
}

std::vector<SavedTensor> savedTensors(const CheckpointContext& context)
{
    std::vector<SavedTensor> tensors;
    for (std::int64_t g = 0; g < context.memory.groupCount(); ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        for (const StateTensor& tensor : stateTensors(context.memory.stateCodec()))
            tensors.push_back(savedPlane(context, id, tensor));
        if (!context.memory.group(id).averages.empty())
            tensors.push_back(savedAverages(context, id));
    }
    return tensors;
}

Status writeState(const CheckpointContext& context, const fs::path& file)
{
    std::vector<SafetensorSource> sources;
    for (SavedTensor& tensor : savedTensors(context)) {
        SafetensorSource source;
        source.name = std::move(tensor.name);
        source.dtype = tensor.dtype;
        source.shape = {tensor.values};
        source.bytes = tensor.bytes;
        source.fill = std::move(tensor.read);
        sources.push_back(std::move(source));
    }
    return writeSafetensors(file, sources);
}

Status loadState(const CheckpointContext& context, const fs::path& file)
{
    MR_ASSIGN(const SafetensorsReader reader, SafetensorsReader::open(file));
    std::vector<std::byte> piece(kCheckpointPieceBytes);
    for (const SavedTensor& tensor : savedTensors(context)) {
        const auto entry = reader.entries().find(tensor.name);
        if (entry == reader.entries().end() ||
            entry->second.end - entry->second.begin != tensor.bytes)
            return Status::error(ErrorKind::DataCorrupt,
                file.string() + ": " + tensor.name + " is missing or of another length");
        for (std::uint64_t at = 0; at < tensor.bytes; at += piece.size()) {
            const std::size_t bytes = std::min<std::uint64_t>(piece.size(), tensor.bytes - at);
            MR_TRY(reader.readBytes(tensor.name, at, {piece.data(), bytes}));
            MR_TRY(tensor.write(at, {piece.data(), bytes}));
        }
    }
    return {};
}

// Empty: AdamW.
std::string lightOptimizer(const CheckpointContext& context)
{
    const Optimizer optimizer = context.memory.optimizer();
    return isLight(optimizer) ? std::string(name(optimizer)) : std::string();
}

Status refuseOtherOptimizer(
    const CheckpointContext& context, const fs::path& checkpoint, const RunProgress& progress)
{
    const std::string now = lightOptimizer(context);
    if (progress.optimizer == now)
        return {};
    const auto word = [](const std::string& optimizer) {
        return optimizer.empty() ? std::string(name(Optimizer::AdamW)) : optimizer;
    };
    return Status::error(ErrorKind::InvalidArgument,
        checkpoint.string() + ": was made with optimizer " + word(progress.optimizer) +
            ", and the run's record says " + word(now) +
            "; a run goes on with the optimizer it began with: put the record back, or begin a new "
            "run from the checkpoint's model");
}

Result<std::string> writeInto(
    const CheckpointContext& context, const fs::path& folder, RunProgress& progress)
{
    auto state = stateMaster(context.executor, context.memory);
    MR_TRY(state.status());
    MR_ASSIGN(progress.weightsHash, weightsHash(context.table, *state.value()));
    progress.runId = context.runId;
    progress.baseHash = context.baseHash;
    progress.optimizer = lightOptimizer(context);
    RunWindow* window = context.executor.window();
    if (window)
        progress.windows = window->checkpoint().capture();
    // A host that works on a window is ahead of the weights.
    const std::unique_ptr<MasterReader> weights =
        progress.carry.hostJob ? weightsInUse(context.executor, context.memory)
                               : std::move(state).value();
    MR_TRY(saveForCheckpoint(context, folder, *weights));
    std::error_code error;
    fs::create_directories(folder / "state", error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create " + (folder / "state").string() + ": " + error.message());
    MR_TRY(writeState(context, folder / "state" / "state.safetensors"));
    if (window)
        MR_TRY(writeWindow(context, folder / "state" / "window.safetensors"));
    MR_TRY(replaceFile(folder / "state" / "state.json", toJson(progress)));
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
    MR_ASSIGN(auto sealed, sealCheckpoint(temporary));
    MR_TRY(installCheckpoint(temporary, final));
    return CheckpointWritten{final, sealed.bytes, sealed.manifestHash};
}

} // namespace

Result<CheckpointWritten> writeCheckpoint(
    const CheckpointContext& context, const fs::path& runDir, RunProgress& progress)
{
    const fs::path folder = runDir / "checkpoints";
    const fs::path temporary = folder / ("." + checkpointName(progress.step));
    std::error_code error;
    fs::remove_all(temporary, error);
    auto written =
        writeAndRename(context, temporary, folder / checkpointName(progress.step), progress);
    if (!written.ok())
        fs::remove_all(temporary, error); // gives back the space; the run itself is untouched
    return written;
}

Result<RunProgress> examineCheckpoint(
    const fs::path& checkpoint, const std::string& runId, VerifyDepth depth)
{
    MR_TRY(verifyCheckpoint(checkpoint, depth));
    const fs::path file = checkpoint / "state" / "state.json";
    MR_ASSIGN(auto text, readWholeFile(file, kCheckpointPieceBytes));
    auto progress = progressFromJson(text, file);
    if (!progress.ok())
        return progress.status();
    const std::string& owner = progress.value().runId;
    if (!owner.empty() && !runId.empty() && owner != runId)
        return Status::error(ErrorKind::InvalidArgument,
            checkpoint.string() + ": is a checkpoint of another run (" + owner + ")");
    const std::string name = checkpointName(progress.value().step);
    if (checkpoint.filename() != name)
        return Status::error(ErrorKind::InvalidArgument,
            checkpoint.string() + ": is named for another step; what it holds is " + name);
    return progress;
}

Result<RunProgress> loadCheckpoint(const CheckpointContext& context, const fs::path& checkpoint)
{
    MR_ASSIGN(
        RunProgress progress, examineCheckpoint(checkpoint, context.runId, VerifyDepth::Bytes));
    MR_TRY(loadExamined(context, checkpoint, progress));
    return progress;
}

Status loadExamined(
    const CheckpointContext& context, const fs::path& checkpoint, const RunProgress& progress)
{
    MR_TRY(refuseOtherOptimizer(context, checkpoint, progress));
    MR_TRY(loadTrained(context, checkpoint));
    MR_TRY(loadState(context, checkpoint / "state" / "state.safetensors"));
    if (context.executor.window())
        MR_TRY(loadWindow(context, checkpoint / "state" / "window.safetensors", progress));
    else if (progress.carry.hostJob)
        return Status::error(ErrorKind::DataCorrupt,
            (checkpoint / "state" / "state.json").string() +
                ": field \"job\" is of a policy with windows, this run has none");
    return {};
}

} // namespace mr
