#include "core/choose/checkpoint_size.h"

#include "core/choose/trained_part.h"
#include "core/data/columns.h"
#include "core/model/export_plan.h"
#include "core/model/peft_folder.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

namespace mr {
namespace fs = std::filesystem;
namespace {

// Bytes of a tensor's entry in the header of its file, and of a file's entry in the manifest.
// Measured names are shorter.
constexpr std::uint64_t kEntryBytes = 192;
constexpr std::uint64_t kSmallFilesBytes = 4096;      // state.json and the padding of headers
constexpr std::uint64_t kBuiltInTemplateBytes = 1024; // at most; it depends on the tokenizer
constexpr std::uint64_t kMostPerGroup = 6;            // tensors, in either file of the state

std::uint64_t fileBytes(const fs::path& path)
{
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    return error ? 0 : bytes + kEntryBytes;
}

// Bytes of a saved model beside its tensors (saveModel).
std::uint64_t carriedBytes(const RunSetup& setup)
{
    const fs::path from =
        setup.spec.modelDir.empty() ? setup.spec.scratchTokenizer : setup.spec.modelDir;
    std::error_code error;
    std::uint64_t bytes = setup.config.text.size();
    if (!setup.spec.data.empty())
        if (const std::string taught = templateAsked(setup.spec.data.front()); !taught.empty())
            bytes += std::max<std::uint64_t>(taught.size(), kBuiltInTemplateBytes) + kEntryBytes;
    if (fs::is_regular_file(from, error))
        return bytes + fileBytes(from);
    for (const auto& entry : fs::directory_iterator(from, error))
        if (isCarried(entry.path().filename().string()))
            bytes += fileBytes(entry.path());
    return bytes;
}

// Items of the plan that a checkpoint holds as they are (checkpoint.h, checkpoint_window.h).
std::uint64_t savedBytes(const MemoryItem& item, const MemoryPlan& plan)
{
    switch (item.use) {
    case MemoryUse::LowPlane:
    case MemoryUse::FirstMoments:
    case MemoryUse::SecondMoments:
    case MemoryUse::DiskState:
    case MemoryUse::Averages:
        return item.bytes;
    case MemoryUse::DiskWeights: // in F32 half of them is the low plane
        return plan.diskParts.low ? 0 : item.bytes / 2;
    case MemoryUse::WindowSums:
    case MemoryUse::UrgentSums:
    case MemoryUse::ColumnLists:
        return item.bytes;
    case MemoryUse::Gradients: // landed on the host and not yet summed
        return plan.window.isActive() && item.tier == Tier::PinnedHost ? item.bytes : 0;
    case MemoryUse::UrgentState: // else it is published into the planes above
        return plan.stateCodec == StateCodec::Compact || plan.disk.isActive() ? item.bytes : 0;
    case MemoryUse::ColumnEnergies: // the running half
        return item.tier == Tier::Device ? item.bytes / 2 : 0;
    default:
        return 0;
    }
}

// Is there an evaluation before that of the last step?
bool evaluates(const RunSpec& spec)
{
    return spec.evalEvery != 0 && (!spec.evalData.empty() || spec.holdOut > 0.0);
}

// By the forecast, if there is one. A checkpoint by steps puts off the next one by time.
std::int64_t timedCheckpoints(const RunSetup& setup)
{
    const RunSpec& spec = setup.spec;
    if (spec.checkpointMinutes == 0 || !setup.forecast.known)
        return 0;
    const auto within = [&](std::int64_t steps) {
        const double minutes = static_cast<double>(steps) * setup.forecast.stepSeconds / 60.0;
        return static_cast<std::int64_t>(minutes / static_cast<double>(spec.checkpointMinutes));
    };
    if (spec.checkpointEvery == 0)
        return within(spec.steps);
    return spec.steps / spec.checkpointEvery * within(spec.checkpointEvery) +
           within(spec.steps % spec.checkpointEvery);
}

// Changes of groups that take turns.
std::uint64_t turnsOf(const RunSpec& spec)
{
    const bool isAny = trainsInTurns(spec) && spec.steps > 0;
    return isAny ? static_cast<std::uint64_t>((spec.steps - 1) / spec.blockSteps) : 0;
}

} // namespace

// The weights as any program loads them: model/ of a checkpoint and of the run, or their adapter/.
std::uint64_t exportBytes(const RunSetup& setup)
{
    if (isAdapterRun(setup.spec)) {
        std::uint64_t bytes = kSmallFilesBytes;
        for (const NamedTensor& tensor : peftTable(setup.table).tensors)
            bytes += static_cast<std::uint64_t>(tensor.count()) * sizeof(float) + kEntryBytes;
        return bytes;
    }
    const ParamTable& table = wholeModel(setup.table);
    std::uint64_t bytes = carriedBytes(setup);
    for (const NamedTensor& tensor : table.tensors) {
        const DType type = tensor.isWide ? DType::F32 : setup.micro.compute;
        bytes += static_cast<std::uint64_t>(tensor.count()) * sizeOf(type) + kEntryBytes;
    }
    for (const CarriedTensor& tensor : table.carried)
        bytes += tensor.bytes() + kEntryBytes;
    return bytes;
}

std::uint64_t checkpointBytes(const RunSetup& setup)
{
    const std::uint64_t groups = setup.table.groups.size();
    std::uint64_t bytes = setup.turns.isActive() ? turnFileBytes(setup) : exportBytes(setup);
    for (const MemoryItem& item : setup.memory.items)
        bytes += savedBytes(item, setup.memory);
    return bytes + 2 * kMostPerGroup * groups * kEntryBytes + kSmallFilesBytes;
}

std::uint64_t roomNeeded(const RunSetup& setup)
{
    const std::uint64_t checkpoint = checkpointBytes(setup);
    if (!setup.turns.isActive())
        return 2 * checkpoint;
    const auto kept = static_cast<std::uint64_t>(checkpointsKept(setup));
    const auto groups = static_cast<std::uint64_t>(setup.turns.schedule.groups.size());
    return checkpoint + std::max(checkpoint, exportBytes(setup)) +
           (groups + kept) * turnFileBytes(setup);
}

std::int64_t checkpointsKept(const RunSetup& setup)
{
    const RunSpec& spec = setup.spec;
    const bool meet = (spec.checkpointMinutes > 0 && spec.evalEvery == 1) ||
                      (spec.checkpointEvery > 0 &&
                          (spec.steps == 0 || spec.evalEvery <= 0 ||
                              std::lcm(spec.checkpointEvery, spec.evalEvery) < spec.steps));
    return spec.keepCheckpoints + (evaluates(spec) && (meet || spec.keepBest) ? 1 : 0);
}

std::uint64_t savedBytesOfRun(const RunSetup& setup)
{
    const RunSpec& spec = setup.spec;
    if (spec.steps == 0)
        return 0;
    const auto between = [&](std::int64_t every) { // the last step is not counted
        return every > 0 ? (spec.steps - 1) / every : 0;
    };
    std::int64_t before = between(spec.checkpointEvery);
    if (spec.keepBest && evaluates(spec)) // each may be the best so far
        before += between(spec.evalEvery) -
                  (spec.checkpointEvery > 0 && spec.evalEvery > 0
                          ? between(std::lcm(spec.checkpointEvery, spec.evalEvery))
                          : 0);
    before += timedCheckpoints(setup);
    return static_cast<std::uint64_t>(before + 1) * checkpointBytes(setup) + exportBytes(setup) +
           turnsOf(spec) * turnFileBytes(setup);
}

} // namespace mr
