#include "core/save/checkpoint_window.h"

#include "core/model/safetensors.h"
#include "core/save/checkpoint_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace mr {
namespace fs = std::filesystem;
namespace {

// One tensor of the file, and where its bytes are.
struct Stored {
    std::string name;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool onDevice = false;
};

// `isApart`: with the state of the device's columns.
std::vector<Stored> partsOf(RunMemory& memory, bool isApart)
{
    WindowMemory& window = *memory.window;
    std::vector<Stored> parts;
    const auto add = [&](const char* name, std::int32_t g, std::byte* data, std::size_t bytes,
                         bool onDevice) {
        if (data && bytes > 0)
            parts.push_back({name + std::to_string(g), data, bytes, onDevice});
    };
    for (std::int32_t g = 0; g < window.groupCount(); ++g) {
        const GroupId id{g};
        const WindowGroup& group = window.group(id);
        const auto packed = static_cast<std::size_t>(window.cut(id).packed);
        add("sums.", g, group.hostSums,
            window.bankBytes(id) * static_cast<std::size_t>(window.layout().banks), false);
        add("landed.", g, group.landed, packed * sizeOf(window.compute()), false);
        add("device_sums.", g, group.deviceSums, packed * sizeof(float), true);
        if (isApart)
            add("urgent_state.", g, group.state,
                stateBytes(StateCodec::Plain, window.cut(id).dense, true), true);
        const TensorView sums = window.urgentSums(id);
        add("urgent_sums.", g, sums.data, sums.bytes(), true);
        const TensorView energies = window.runningEnergies(id);
        add("energies.", g, energies.data, energies.bytes(), true);
        const auto columns = window.columns(id);
        add("columns.", g, reinterpret_cast<std::byte*>(columns.data()), columns.size_bytes(),
            false);
    }
    return parts;
}

// Between two windows nothing is in a sum. Then a run may go on with windows of another length,
// with sums of another size (columns.h: `direct`).
bool isBetweenWindows(const Carry& carry)
{
    return carry.stepsIntoWindow == 0 && !carry.landed && !carry.hostJob;
}

bool isSum(const Stored& part)
{
    return part.name.find("sums.") != std::string::npos || part.name.starts_with("landed.");
}

// Does the file keep columns apart? Plain state may have been elsewhere at the time of writing: on
// disk, where columns are kept apart, or in memory, where they are not.
bool keepsColumnsApart(const RunMemory& memory, const SafetensorsReader& reader)
{
    return memory.stateCodec() == StateCodec::Compact ||
           std::any_of(reader.entries().begin(), reader.entries().end(),
               [](const auto& entry) { return entry.first.starts_with("urgent_state."); });
}

// The lists that were read must name every column once, or indices would leave their rows.
Status checkColumns(WindowMemory& window, const fs::path& file)
{
    for (std::int32_t g = 0; g < window.groupCount(); ++g)
        for (const WeightCut& slot : window.cut(GroupId{g}).weights) {
            const auto list = window.columns(GroupId{g})
                                  .subspan(static_cast<std::size_t>(slot.listFirst),
                                      static_cast<std::size_t>(slot.cols));
            std::vector<std::int32_t> sorted(list.begin(), list.end());
            std::sort(sorted.begin(), sorted.end());
            for (std::size_t c = 0; c < sorted.size(); ++c)
                if (sorted[c] != static_cast<std::int32_t>(c))
                    return Status::error(ErrorKind::DataCorrupt,
                        fmt::format(
                            "{}: columns.{} does not name every column once", file.string(), g));
        }
    return {};
}

// The finished tiles of a job in flight are unpacked one by one, so there must be as many.
Status checkJob(const WindowMemory& window, const Carry& carry, const fs::path& file)
{
    const std::size_t tiles = window.layout().tiles.size();
    if (!carry.hostJob || static_cast<std::size_t>(carry.hostJob->tilesDone) <= tiles)
        return {};
    return Status::error(ErrorKind::DataCorrupt,
        fmt::format("{}: its state.json speaks of {} tiles of the update in flight, there are {}",
            file.string(), carry.hostJob->tilesDone, tiles));
}

} // namespace

Status writeWindow(const CheckpointContext& context, const fs::path& file)
{
    std::vector<SafetensorSource> sources;
    for (const Stored& part : partsOf(context.memory, context.memory.keepsColumnsApart())) {
        SafetensorSource source;
        source.name = part.name;
        source.dtype = "U8";
        source.shape = {static_cast<std::int64_t>(part.bytes)};
        source.bytes = part.bytes;
        source.fill = [&context, part](std::uint64_t offset, std::span<std::byte> out) {
            if (part.onDevice)
                return context.executor.copier().toHost(out, part.data + offset);
            std::memcpy(out.data(), part.data + offset, out.size());
            return Status();
        };
        sources.push_back(std::move(source));
    }
    return writeSafetensors(file, sources);
}

Status loadWindow(
    const CheckpointContext& context, const fs::path& file, const RunProgress& progress)
{
    MR_ASSIGN(const SafetensorsReader reader, SafetensorsReader::open(file));
    std::vector<std::byte> piece(kCheckpointPieceBytes);
    const bool isBetween = isBetweenWindows(progress.carry);
    const bool isApart = keepsColumnsApart(context.memory, reader);
    for (const Stored& part : partsOf(context.memory, isApart)) {
        const auto entry = reader.entries().find(part.name);
        const bool isThere = entry != reader.entries().end() &&
                             entry->second.end - entry->second.begin == part.bytes;
        if (!isThere && isBetween && isSum(part))
            continue;
        if (!isThere)
            return Status::error(ErrorKind::DataCorrupt,
                file.string() + ": " + part.name + " is missing or of another length");
        for (std::size_t at = 0; at < part.bytes; at += piece.size()) {
            const std::size_t bytes = std::min(piece.size(), part.bytes - at);
            MR_TRY(reader.readBytes(part.name, at, {piece.data(), bytes}));
            if (part.onDevice)
                MR_TRY(context.executor.copier().toDevice(part.data + at, {piece.data(), bytes}));
            else
                std::memcpy(part.data + at, piece.data(), bytes);
        }
    }
    MR_TRY(checkColumns(*context.memory.window, file));
    MR_TRY(checkJob(*context.memory.window, progress.carry, file));
    RunWindow& window = *context.executor.window();
    window.checkpoint().restore(progress.windows, progress.carry);
    return window.master().adopt(isApart);
}

} // namespace mr
