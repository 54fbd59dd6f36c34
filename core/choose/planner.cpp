// The public planner: RunSetup put into the words of PlanReport.

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/host_readings.h"
#include "core/base/shown_text.h"
#include "core/choose/checkpoint_size.h"
#include "core/choose/disk_choice.h"
#include "core/choose/plan_advice.h"
#include "core/choose/policy_choice.h"
#include "core/choose/run_setup.h"
#include "core/choose/trained_part.h"
#include "core/model/prepared_base.h"
#include "core/plan/cost_model.h"
#include "core/plan/traversal.h"
#include "core/plan/turn_memory.h"
#include "core/tier/disk_health.h"
#include "core/tier/disk_wear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <tuple>

namespace mr {
namespace {

PlanTier tierOf(const RunSetup& setup, Tier tier, std::string_view word, std::size_t budget)
{
    PlanTier out;
    out.tier = word;
    out.budgetBytes = budget;
    out.totalBytes = setup.memory.bytes(tier);
    for (const MemoryItem& item : setup.memory.items) {
        if (item.tier != tier)
            continue;
        if (out.kinds.empty() || out.kinds.back().kind != name(item.use))
            out.kinds.push_back({std::string(name(item.use)), 0});
        out.kinds.back().bytes += item.bytes;
    }
    return out;
}

std::string_view tierWord(Tier tier)
{
    switch (tier) {
    case Tier::Device:
        return "device";
    case Tier::PinnedHost:
        return "host";
    case Tier::Disk:
        break;
    }
    return "disk";
}

std::vector<PlanGroup> groupsOf(const RunSetup& setup)
{
    std::vector<PlanGroup> groups;
    for (const GroupShape& group : setup.shape.groups)
        groups.push_back({group.name, {}});
    groups.push_back({"shared", {}});
    for (const MemoryItem& item : setup.memory.items) {
        const bool isShared = item.group.value < 0 ||
                              (setup.turns.isActive() && goesWithTurn(item, setup.turns.trained));
        const std::size_t index =
            isShared ? groups.size() - 1 : static_cast<std::size_t>(item.group.value);
        groups.at(index).bytes.push_back(
            {std::string(tierWord(item.tier)), std::string(name(item.use)), item.bytes});
    }
    return groups;
}

// A line a drive, from its share of the bytes that each step writes.
std::string wearOf(const RunSetup& setup, double writtenPerStep)
{
    const std::vector<double> parts = setup.scratch.divide(setup.memory.scratchBytes());
    std::map<std::string, std::pair<DiskHealth, double>> drives; // by name
    for (std::size_t i = 0; i < parts.size(); ++i) {
        DiskHealth health = readDiskHealth(setup.scratch.members[i].folder.device);
        auto& drive = drives[health.drive];
        drive.first = std::move(health);
        drive.second += parts[i];
    }
    if (drives.empty())
        drives[{}] = {DiskHealth{}, 1.0};
    double all = 0.0;
    for (const auto& [name, drive] : drives)
        all += drive.second;
    std::string lines;
    for (const auto& [name, drive] : drives) {
        const double share = all > 0.0 ? drive.second / all : 0.0;
        const DiskWear wear{static_cast<std::uint64_t>(share * writtenPerStep), setup.spec.steps,
            setup.forecast.stepSeconds, 0};
        lines += (lines.empty() ? "" : "\n") + wearLine(wear, drive.first);
    }
    return lines;
}

// Filling the scratch file counts once, beside the steps.
void describeDisk(const RunSetup& setup, PlanReport& report)
{
    const std::uint64_t held = setup.memory.scratchBytes();
    if (setup.memory.bytes(Tier::Disk) > 0)
        report.tiers.push_back(tierOf(setup, Tier::Disk, "disk",
            setup.budget.diskBytes + setup.memory.bytes(Tier::Disk, MemoryUse::FrozenWeights)));
    report.diskReadBytesPerStep = setup.diskTraffic.readBytes;
    report.diskWriteBytesPerStep = setup.diskTraffic.writtenBytes;
    const auto perStep = static_cast<std::uint64_t>(report.diskWriteBytesPerStep);
    const bool isPrepared = !setup.memory.disk.frozen.empty() && !setup.readsOwnFiles;
    const std::uint64_t prepared =
        isPrepared ? preparedBytes(readTable(setup), setup.micro.compute) : 0; // unless it is there
    if (report.steps > 0)
        report.diskWriteBytesOfRun = held + prepared +
                                     static_cast<std::uint64_t>(report.steps) * perStep +
                                     savedBytesOfRun(setup);
    if (perStep > 0)
        report.wear = wearOf(setup, static_cast<double>(perStep));
}

// Pieces of files, masters and hashes; tst_heap_of_runs holds runs to it.
constexpr std::uint64_t kPiecesBytes = std::uint64_t{18} << 20;
// Stacks of threads, and code, that a plan has not touched yet. Measured (tests/bench/ssd.md).
constexpr std::uint64_t kThreadsBytes = std::uint64_t{10} << 20;

// A CPU device's memory is the machine's. Asked before the run holds anything.
std::uint64_t processBytesOf(const RunSetup& setup)
{
    std::uint64_t bytes = setup.memory.bytes(Tier::PinnedHost) + kPiecesBytes + kThreadsBytes;
    if (setup.spec.device == DeviceChoice::Cpu)
        bytes += setup.memory.bytes(Tier::Device);
    HostProbe probe;
    return bytes + static_cast<std::uint64_t>(probe.read(nowNs()).residentBytes.value_or(0.0));
}

// Each group by its own norm: the same bits under every policy, but others than the norm of all
// groups gives.
bool clipsByGroup(const RunSetup& setup)
{
    return setup.policy.clipMode == ClipMode::PerGroup && setup.spec.clipNorm > 0.0;
}

// "Blocks take turns of 20 steps ..."
std::string turnWords(const RunSetup& setup)
{
    const TurnSchedule& schedule = setup.turns.schedule;
    const auto round = static_cast<std::int64_t>(schedule.groups.size()) * schedule.steps;
    std::string text = fmt::format("{} blocks take turns of {} steps, so a round has {}",
        schedule.groups.size(), schedule.steps, round);
    if (setup.spec.steps > 0)
        text += fmt::format(" and the run {:.1f} rounds",
            static_cast<double>(setup.spec.steps) / static_cast<double>(round));
    return text + ". Bytes are the most of any turn; times are of a turn in the middle of the "
                  "model. After its turn a block is written to the run folder.";
}

// The option that makes other bits than those of `resident`; empty: none does.
std::string inexactBy(const RunSetup& setup)
{
    if (flipsSums(*setup.policy.traversal))
        return "order=by-layer-flip";
    return clipsByGroup(setup) ? "clip-mode=per-group" : "";
}

} // namespace

std::string believedBudget(const RunSetup& setup)
{
    return believedBudgetWords(
        setup.budget.hostBytes, setup.memory.bytes(Tier::PinnedHost), setup.host);
}

PlanReport reportOf(const RunSetup& setup)
{
    PlanReport report;
    report.method = methodWord(setup.spec);
    report.policy = setup.spec.policy;
    report.exact = policyInfo(setup.policy.id).exact;
    report.inexactBy = inexactBy(setup);
    report.exact = report.exact && report.inexactBy.empty();
    report.fits = setup.limit.empty();
    report.limit = setup.limit;
    report.device = std::string(name(setup.spec.device));
    report.simulatedLink = setup.spec.linkBytesPerSecond > 0.0;
    report.precision = std::string(name(setup.spec.precision)) +
                       (emulationNote(setup).empty() ? "" : " (emulated)");
    report.recompute = std::string(name(setup.spec.recompute));
    if (isLight(setup.spec.optimizer))
        report.optimizer =
            fmt::format("{}, weights {}", name(setup.spec.optimizer), name(setup.spec.weights));
    report.parameters = wholeModel(setup.table).parameters;
    report.trainedParameters = everTrained(setup).parameters;
    report.steps = setup.spec.steps;
    report.tokensPerStep = setup.micro.tokens() * setup.micro.microBatches;
    report.tiers = {tierOf(setup, Tier::Device, "device", setup.budget.deviceBytes),
        tierOf(setup, Tier::PinnedHost, "host", setup.budget.hostBytes)};
    report.groups = groupsOf(setup);
    report.checkpointBytes = checkpointBytes(setup);
    report.checkpointsKept = checkpointsKept(setup);
    report.reason = setup.reason;
    report.h2dBytesPerStep = setup.traffic.hostToDeviceBytes;
    report.d2hBytesPerStep = setup.traffic.deviceToHostBytes;
    describeDisk(setup, report);
    constexpr double kMs = 1e3;
    report.predictedStepMs = kMs * setup.forecast.stepSeconds;
    report.predictedComputeMs = kMs * setup.forecast.computeSeconds;
    for (std::size_t i = 0; i < kStallCauses; ++i)
        report.predictedStallMs[i] = kMs * setup.forecast.stallSeconds[i];
    if (std::string believed = believedBudget(setup); !believed.empty())
        report.advice.push_back(std::move(believed));
    return report;
}

std::string emulationNote(const RunSetup& setup)
{
    if (setup.spec.precision != PrecisionChoice::Fp8 || setup.spec.device != DeviceChoice::Cpu)
        return {};
    return "The processor has no FP8 products; they are emulated, with a card's rounding but not "
           "its speed.";
}

Status checkPolicy(const RunSpec& spec)
{
    MR_ASSIGN(auto numbers, numbersOf(spec));
    if (!isAuto(spec))
        return makePolicy(spec.policy, spec.policyOptions, {numbers.optimizer, numbers.lightState})
            .status();
    Status first;
    for (const PolicyInfo& info : policyTable()) {
        const Status status = makePolicy(info.id, numbers).status();
        if (status.ok())
            return {};
        first = status; // the last takes the most
    }
    return first;
}

Result<RunSpec> resolveSpec(const RunSpec& spec, std::int64_t trainRows)
{
    MR_ASSIGN(auto setup, setUpRun(spec, trainRows));
    return std::move(setup).spec;
}

Result<PlanReport> planRun(const RunSpec& spec)
{
    MR_ASSIGN(auto setup, setUpRun(spec, 0));
    PlanReport report = reportOf(setup);
    report.processBytes = processBytesOf(setup);
    for (const std::string& note : setup.config.notes)
        report.advice.push_back(note);
    if (setup.policy.intervalByMagnitude)
        report.advice.push_back(fmt::format("The interval is chosen when the warm-up ends; bytes "
                                            "and times are those of windows of {} steps.",
            setup.memory.window.steps));
    if (setup.turns.isActive())
        report.advice.push_back(turnWords(setup));
    if (std::string note = emulationNote(setup); !note.empty())
        report.advice.push_back(std::move(note));
    if (setup.policy.clipMode == ClipMode::PreviousNorm)
        report.advice.push_back("Gradients are clipped by the norm of the step before, because a "
                                "layer is updated before that of its own step is known; the first "
                                "step is not clipped.");
    if (passesTwice(setup.policy, setup.step))
        report.advice.push_back("Gradients are clipped by the norm of the whole step. A layer is "
                                "updated right behind its backward, so every backward is made "
                                "twice: first for the norm, then for the update. clip-mode=own "
                                "makes it once.");
    if (isForwardOnly(setup.policy.optimizer))
        report.advice.push_back("No backward pass is made: two forward passes of weights that are "
                                "moved both ways along random signs say how far to step. It needs "
                                "10 to 100 times the steps of the others, and rates of 1e-6 to "
                                "1e-4: an experiment. clip, beta1, beta2 and eps are not used.");
    else if (setup.policy.clipMode == ClipMode::Own)
        report.advice.push_back(
            "The optimizer limits the step of each weight by itself: clip, beta1, "
            "beta2 and eps are not used.");
    if (clipsByGroup(setup))
        report.advice.push_back("Each group of weights is clipped by its own norm, so the results "
                                "are not those of clip-mode=exact.");
    if (flipsSums(*setup.policy.traversal))
        report.advice.push_back("Every other layer sums its gradients from the last micro-batch to "
                                "the first, so the results are not those of the other orders.");
    addAdvice(setup, report);
    return report;
}

} // namespace mr
