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
#include <span>
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

std::span<const StateTensor> stateTensors(StateCodec codec)
{
    if (codec == StateCodec::Compact)
        return kCompactTensors;
    return kPlainTensors;
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
                return context.executor.state().read(
                    id, part, static_cast<std::int64_t>(offset / each), out);
            };
            sources.push_back(std::move(source));
        }
    }
    return writeSafetensors(file, sources);
}

Status loadState(const CheckpointContext& context, const fs::path& file)
{
    MR_ASSIGN(const SafetensorsReader reader, SafetensorsReader::open(file));
    std::vector<std::byte> piece(kCheckpointPieceBytes);
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
                MR_TRY(context.executor.state().write(
                    id, tensor.part, static_cast<std::int64_t>(at / each), {piece.data(), bytes}));
            }
        }
    }
    return {};
}

Result<std::string> writeInto(
    const CheckpointContext& context, const fs::path& folder, RunProgress& progress)
{
    auto state = stateMaster(context.executor, context.memory);
    MR_TRY(state.status());
    MR_ASSIGN(progress.weightsHash, weightsHash(context.table, *state.value()));
    progress.runId = context.runId;
    progress.baseHash = context.baseHash;
    RunWindow* window = context.executor.window();
    if (window)
        progress.windows = window->checkpoint().capture();
    // A host that works on a window is ahead of the weights.
    const std::unique_ptr<MasterReader> weights =
        progress.carry.hostJob ? weightsInUse(context.executor, context.memory)
                               : std::move(state).value();
    MR_TRY(saveTrained(context, folder, *weights));
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
    auto progress = examineCheckpoint(checkpoint, context.runId, VerifyDepth::Bytes);
    if (!progress.ok())
        return progress.status();
    MR_TRY(loadTrained(context, checkpoint));
    MR_TRY(loadState(context, checkpoint / "state" / "state.safetensors"));
    if (context.executor.window())
        MR_TRY(loadWindow(context, checkpoint / "state" / "window.safetensors", progress.value()));
    else if (progress.value().carry.hostJob)
        return Status::error(ErrorKind::DataCorrupt,
            (checkpoint / "state" / "state.json").string() +
                ": field \"job\" is of a policy with windows, this run has none");
    return progress;
}

} // namespace mr
