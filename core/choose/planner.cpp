// The public planner: RunSetup put into the words of PlanReport.

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/host_readings.h"
#include "core/base/shown_text.h"
#include "core/choose/checkpoint_size.h"
#include "core/choose/disk_choice.h"
#include "core/choose/policy_choice.h"
#include "core/choose/run_setup.h"
#include "core/choose/trained_part.h"
#include "core/model/prepared_base.h"
#include "core/plan/cost_model.h"
#include "core/plan/traversal.h"
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
        const std::size_t index =
            item.group.value < 0 ? groups.size() - 1 : static_cast<std::size_t>(item.group.value);
        groups.at(index).bytes.push_back(
            {std::string(tierWord(item.tier)), std::string(name(item.use)), item.bytes});
    }
    return groups;
}

// Plans the same run with one change; the report's words if that would fit.
void advise(const RunSetup& setup, PlanReport& report)
{
    const auto attempt = [&](const std::string& words, auto change) {
        RunSpec other = setup.spec;
        change(other);
        auto changed = setUpRun(other, 0);
        if (changed.ok() && changed.value().limit.empty())
            report.advice.push_back(words);
    };
    if (policyInfo(setup.policy.id).isAllOnDevice)
        attempt("Keep the optimizer state in host memory: policy zero-offload.",
            [](RunSpec& s) { s.policy = policyInfo(PolicyId::ZeroOffload).name; });
    const std::size_t before = report.advice.size();
    if (setup.step.recompute == Recompute::None)
        attempt("Recompute norms and activation functions in the backward pass: recompute cheap.",
            [](RunSpec& s) { s.recompute = RecomputeChoice::Cheap; });
    if (setup.step.recompute != Recompute::Block && report.advice.size() == before)
        attempt("Recompute activations in the backward pass: recompute block.",
            [](RunSpec& s) { s.recompute = RecomputeChoice::Block; });
    if (setup.spec.seqLen >= 256)
        attempt(fmt::format("Halve the sequence length to {}.", setup.spec.seqLen / 2),
            [](RunSpec& s) { s.seqLen /= 2; });
    if (setup.spec.microBatch >= 2)
        attempt(
            "Halve the micro-batch and double the accumulation: the same result in less memory.",
            [](RunSpec& s) {
                s.microBatch /= 2;
                s.accumulate *= 2;
            });
}

// Where memory lacks and no folder was named: advises an SSD, if the run would fit with it.
void adviseDisk(const RunSetup& setup, PlanReport& report)
{
    if (!setup.spec.diskPaths.empty() || setup.limit.empty() ||
        policyInfo(setup.policy.id).usesDisk)
        return;
    RunSpec other = setup.asked;
    other.diskPaths = {
        std::filesystem::temp_directory_path().string()}; // any: only sizes are asked
    if (!takesDisk(other))
        other.policy = policyInfo(PolicyId::SsdVertical).name;
    auto changed = setUpRun(other, 0);
    if (!changed.ok())
        return;
    RunSetup& disk = changed.value();
    disk.budget.diskBytes = std::size_t{1} << 50;
    const std::size_t needed = disk.memory.scratchBytes();
    if (disk.memory.bytes(Tier::Device) > disk.budget.deviceBytes ||
        disk.memory.bytes(Tier::PinnedHost) > disk.budget.hostBytes)
        return;
    if (isAdapterRun(setup.spec)) {
        report.advice.push_back(
            "Read the frozen weights from an SSD for every use (policy " + other.policy +
            "); nothing is written there" +
            (disk.readsOwnFiles ? "."
                                : ", but for one file of " +
                                      formatBytes(preparedBytes(disk.table, disk.micro.compute)) +
                                      " that later runs share (--disk-path)."));
        return;
    }
    report.advice.push_back("Keep the optimizer state on an SSD (policy " + other.policy +
                            "): name a scratch folder there (--disk-path). It needs " +
                            formatBytes(needed) + " there, and every step writes " +
                            formatBytes(static_cast<std::size_t>(disk.diskTraffic.writtenBytes)) +
                            " to it.");
}

// Advises single changes and the speed they bring by forecast; silent below a twentieth. Where a
// policy is faster within the budget there is, the run does not lack memory.
void adviseFaster(const RunSetup& setup, PlanReport& report)
{
    constexpr double kWorthIt = 1.05;
    constexpr std::uint64_t kEndless = std::uint64_t{1} << 50;
    const auto attempt = [&](const char* what, Tier tier, std::size_t budget, auto change) {
        RunSpec other = setup.spec;
        other.policy = "auto";
        other.policyOptions.clear();
        other.recompute = RecomputeChoice::Auto;
        change(other);
        auto changed = setUpRun(other, 0);
        if (!changed.ok() || !changed.value().forecast.known)
            return;
        const RunSetup& faster = changed.value();
        const double gain = setup.forecast.stepSeconds / faster.forecast.stepSeconds;
        if (gain < kWorthIt)
            return;
        std::array<char, 32> times{};
        (void)std::snprintf(times.data(), times.size(), ": %.1fx the speed.", gain);
        const std::size_t needed = faster.memory.bytes(tier);
        const std::string words = needed <= budget
                                      ? "With policy " + faster.spec.policy + ", which fits, too"
                                      : std::string(what) + " " + formatBytes(needed) +
                                            " (policy " + faster.spec.policy + ")";
        auto& advice = report.advice;
        if (std::find(advice.begin(), advice.end(), words + times.data()) == advice.end())
            advice.push_back(words + times.data());
    };
    attempt("With a device memory of", Tier::Device, setup.budget.deviceBytes,
        [](RunSpec& s) { s.deviceMemoryBytes = kEndless; });
    attempt("With a host memory of", Tier::PinnedHost, setup.budget.hostBytes,
        [](RunSpec& s) { s.hostMemoryBytes = kEndless; });
}

// A forecast that only the disk's rates keep from being known.
void adviseDiskBench(const RunSetup& setup, PlanReport& report)
{
    const bool isMeasured = setup.rates.diskReadBytesPerSecond > 0.0 || setup.forecast.known;
    if (setup.diskTraffic.readBytes + setup.diskTraffic.writtenBytes == 0 || isMeasured)
        return;
    const std::string folder = setup.readsOwnFiles && !setup.memory.usesScratch()
                                   ? setup.spec.modelDir
                               : setup.spec.diskPaths.empty() ? "FOLDER"
                                                              : setup.spec.diskPaths.front();
    report.advice.push_back("The time of a step is not known: the disk of " + shownName(folder) +
                            " was never measured. `millrace bench disk --disk-path FOLDER` "
                            "measures it, once for all plans.");
}

// Disk traffic of a step does not grow with its micro-batches: from how many on does the device no
// longer wait for the disk?
void adviseTokens(const RunSetup& setup, PlanReport& report)
{
    constexpr double kHidden = 0.05; // share of a step
    constexpr std::int64_t kMostTimes = 64;
    const auto waits = [](const StepForecast& forecast) {
        return forecast.stallSeconds[static_cast<std::size_t>(StallCause::Disk)] /
               forecast.stepSeconds;
    };
    if (setup.diskTraffic.readBytes == 0 || waits(setup.forecast) < kHidden)
        return;
    for (std::int64_t times = 2; times <= kMostTimes; times *= 2) {
        RunSpec other = setup.spec;
        other.accumulate *= times;
        auto changed = setUpRun(other, 0);
        if (!changed.ok() || !changed.value().limit.empty() || !changed.value().forecast.known)
            return;
        const RunSetup& longer = changed.value();
        if (waits(longer.forecast) >= kHidden)
            continue;
        const double gain =
            static_cast<double>(times) * setup.forecast.stepSeconds / longer.forecast.stepSeconds;
        std::array<char, 128> text{};
        (void)std::snprintf(text.data(), text.size(),
            "With %lld micro-batches a step (%lld tokens) the disk is hidden: %.1fx the tokens per "
            "second.",
            static_cast<long long>(other.accumulate),
            static_cast<long long>(longer.micro.tokens() * longer.micro.microBatches), gain);
        report.advice.emplace_back(text.data());
        return;
    }
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
        isPrepared ? preparedBytes(setup.table, setup.micro.compute) : 0; // unless it is there
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
    report.parameters = wholeModel(setup.table).parameters;
    report.trainedParameters = setup.table.parameters;
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
    if (!isAuto(spec))
        return makePolicy(spec.policy, spec.policyOptions).status();
    MR_ASSIGN(auto numbers, readOptionsOf(spec.policy, spec.policyOptions));
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
    if (setup.policy.intervalByMagnitude)
        report.advice.push_back(fmt::format("The interval is chosen when the warm-up ends; bytes "
                                            "and times are those of windows of {} steps.",
            setup.memory.window.steps));
    if (std::string note = emulationNote(setup); !note.empty())
        report.advice.push_back(std::move(note));
    if (clipsByGroup(setup))
        report.advice.push_back("Each group of weights is clipped by its own norm, so the results "
                                "are not those of clip-mode=exact.");
    if (flipsSums(*setup.policy.traversal))
        report.advice.push_back("Every other layer sums its gradients from the last micro-batch to "
                                "the first, so the results are not those of the other orders.");
    if (!report.fits) {
        advise(setup, report);
        adviseDisk(setup, report);
    } else if (setup.forecast.known) {
        adviseFaster(setup, report);
        adviseTokens(setup, report);
    } else {
        adviseDiskBench(setup, report);
    }
    return report;
}

} // namespace mr
