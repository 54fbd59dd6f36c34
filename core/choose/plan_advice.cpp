#include "core/choose/plan_advice.h"

#include "core/base/bytes.h"
#include "core/base/shown_text.h"
#include "core/choose/disk_choice.h"
#include "core/choose/lighter_choice.h"
#include "core/choose/policy_choice.h"
#include "core/model/prepared_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

namespace mr {
namespace {

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
    if (isMostlyRead(setup.spec)) {
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
        std::erase_if(other.policyOptions, [](const auto& option) {
            return option.first != "clip-mode" && option.first != "state"; // these change numbers
        });
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

} // namespace

void addAdvice(const RunSetup& setup, PlanReport& report)
{
    if (wantsLighter(setup))
        report.lighter = fittingWays(setup);
    if (!report.fits) {
        advise(setup, report);
        adviseDisk(setup, report);
    } else if (setup.forecast.known) {
        adviseFaster(setup, report);
        adviseTokens(setup, report);
    } else {
        adviseDiskBench(setup, report);
    }
}

} // namespace mr
