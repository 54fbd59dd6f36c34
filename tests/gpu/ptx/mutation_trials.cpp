#include "gpu/ptx/mutation_trials.h"

#include "gpu/ptx/decode.h"
#include "gpu/ptx/kernel_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

namespace mr::ptx {
namespace {

// A mutant that takes so many times the steps of the whole case does not come to an end.
constexpr std::uint64_t kMostTimesSteps = 4;

struct Probed {
    KernelTrials* kernel = nullptr;
    Probe probe;
    Program program;
};

using ProbedKernels = std::map<std::string, Probed>;

Result<ProbedKernels> probesOf(std::vector<KernelTrials>& kernels)
{
    ProbedKernels all;
    for (KernelTrials& kernel : kernels) {
        Probed& probed = all[kernel.text.entry->name];
        probed.kernel = &kernel;
        probed.probe = probeOf(*kernel.text.entry, kernel.mutants);
        MR_ASSIGN(probed.program, decode(*kernel.text.module, probed.probe.entry));
    }
    return all;
}

// Instructions that ran, without those of probes: which kernels have one does not matter.
std::uint64_t stepsOf(const std::vector<std::uint64_t>& times, const Probed* probed)
{
    if (probed == nullptr)
        return std::accumulate(times.begin(), times.end(), std::uint64_t{0});
    std::uint64_t steps = 0;
    for (const std::size_t place : probed->probe.places)
        steps += place < times.size() ? times[place] : 0;
    return steps;
}

// Block and shared memory of the kernel's first launch.
std::string blockOf(const DryRun& dry, const std::string& kernel)
{
    const auto launch = std::ranges::find_if(
        dry.shapes, [&](const std::string& shape) { return shape.starts_with(kernel + " ("); });
    return launch == dry.shapes.end() ? std::string() : launch->substr(launch->rfind('('));
}

// Runs the case and adds a trial to each kernel that it launches.
Status addTrial(
    const conformance::Case& line, int rows, const DryRun& dry, const ProbedKernels& probes)
{
    runtime().executed.clear();
    const auto device = deviceOf(runtime().target, rows);
    if (const std::string why = missed(*device, line, rounds().first(1)); !why.empty())
        return Status::error(ErrorKind::Internal, line.name + ": " + why);
    std::uint64_t steps = 0;
    for (const auto& [kernel, times] : runtime().executed) {
        const auto found = probes.find(kernel);
        steps += stepsOf(times, found == probes.end() ? nullptr : &found->second);
    }
    for (const auto& [kernel, times] : runtime().executed) {
        const auto found = probes.find(kernel);
        if (found == probes.end())
            continue;
        const auto& [trials, probe, program] = found->second;
        Trial trial{
            &line, rows, steps, blockOf(dry, kernel), {}, std::vector<bool>(probe.places.size())};
        for (const std::size_t place : probe.places)
            trial.isExecuted.push_back(place < times.size() && times[place] > 0);
        for (const auto& [index, place] : probe.differences)
            trial.isDifferent[index] = times[place] > 0;
        trials->trials.push_back(std::move(trial));
    }
    return {};
}

bool canNotice(const Trial& trial, const Mutant& mutant)
{
    return mutant.fault == Fault::ComparisonShifted ? trial.isDifferent[mutant.index]
                                                    : trial.isExecuted[mutant.index];
}

// How close the cases come to noticing a mutant.
int reachOf(const KernelTrials& kernel, const Mutant& mutant)
{
    int reach = 0;
    for (const Trial& trial : kernel.trials)
        reach = std::max(
            reach, canNotice(trial, mutant) ? 2 : static_cast<int>(trial.isExecuted[mutant.index]));
    return reach;
}

// Keeps one of the mutants that differ in nothing but the copy of an unrolled loop: the last of
// those that cases can notice, or else execute.
void dropCopies(KernelTrials& kernel)
{
    std::map<std::string, std::pair<int, std::size_t>> kept; // reach, place
    for (std::size_t i = 0; i < kernel.mutants.size(); ++i) {
        const Mutant& mutant = kernel.mutants[i];
        const Instruction& whole = kernel.text.entry->instructions[mutant.index];
        const std::pair now{reachOf(kernel, mutant), i};
        std::pair<int, std::size_t>& best = kept[fmt::format(
            "{} {} {} {}", nameOf(mutant.fault), mutant.form, whole.op, whole.place)];
        best = std::max(best, now);
    }
    std::set<std::size_t> places;
    for (const auto& [alike, best] : kept)
        places.insert(best.second);
    std::vector<Mutant> some;
    for (const std::size_t i : places)
        some.push_back(std::move(kernel.mutants[i]));
    kernel.mutants = std::move(some);
}

// Trials that can notice the mutant. Of many the shortest of every shape of a block, because what a
// thread does depends on it, and some of the others.
std::vector<const Trial*> trialsFor(
    const KernelTrials& kernel, const Mutant& mutant, std::size_t most)
{
    std::vector<const Trial*> all;
    for (const Trial& trial : kernel.trials)
        if (canNotice(trial, mutant))
            all.push_back(&trial);
    if (all.size() <= most)
        return all;
    std::vector<const Trial*> some;
    std::set<std::string> blocks;
    for (const Trial* trial : all)
        if (some.size() < most && blocks.insert(trial->block).second)
            some.push_back(trial);
    const std::size_t left = most - some.size();
    for (std::size_t i = 0; i < left; ++i) {
        const Trial* const trial = all[i * all.size() / left];
        if (std::ranges::find(some, trial) == some.end())
            some.push_back(trial);
    }
    std::ranges::stable_sort(some, {}, &Trial::steps);
    return some;
}

// Other orders and late copies can only matter where something waits.
std::span<const Round> roundsFor(Fault fault)
{
    switch (fault) {
    case Fault::BarrierRemoved:
    case Fault::WaitWeakened:
    case Fault::WaitRemoved:
    case Fault::CommitRemoved:
        return rounds();
    default:
        return rounds().first(1);
    }
}

} // namespace

std::string_view nameOf(Verdict verdict)
{
    constexpr std::array<std::string_view, static_cast<std::size_t>(Verdict::Count)> kNames = {
        "caught by a check", "caught by numbers", "survived", "not different", "not executed"};
    return kNames.at(static_cast<std::size_t>(verdict));
}

Status addTrials(const conformance::Table& table, std::vector<KernelTrials>& kernels)
{
    MR_ASSIGN(const ProbedKernels probes, probesOf(kernels));
    runtime().instead.clear();
    for (const auto& [name, probed] : probes)
        runtime().instead[name] = &probed.program;
    Status status;
    for (const conformance::Case& line : table) {
        std::set<Launches> seen; // other rows may choose the same tiles
        for (const int rows : rowsOf(line)) {
            const DryRun dry = dryRunOf(line, runtime().target, rows);
            const bool isWanted = std::ranges::any_of(
                dry.kernels, [&](const auto& launch) { return probes.contains(launch.first); });
            if (status.ok() && isWanted && seen.insert(dry.kernels).second)
                status = addTrial(line, rows, dry, probes);
        }
    }
    runtime().instead.clear();
    for (KernelTrials& kernel : kernels) {
        std::ranges::stable_sort(kernel.trials, {}, &Trial::steps);
        dropCopies(kernel);
    }
    return status;
}

Result<Verdict> verdictOn(const KernelTrials& kernel, const Mutant& mutant, std::size_t most)
{
    if (std::ranges::none_of(
            kernel.trials, [&](const Trial& trial) { return trial.isExecuted[mutant.index]; }))
        return Verdict::NotExecuted;
    MR_ASSIGN(const Program program, decodeMutant(*kernel.text.module, *kernel.text.entry, mutant));
    Runtime& all = runtime();
    Verdict verdict = Verdict::NotDifferent;
    all.instead = {{kernel.text.entry->name, &program}};
    for (const Trial* const trial : trialsFor(kernel, mutant, most)) {
        all.stepLimit = kMostTimesSteps * trial->steps;
        const auto device = deviceOf(all.target, trial->rows);
        const std::string why = missed(*device, *trial->line, roundsFor(mutant.fault));
        verdict = why.empty()        ? Verdict::Survived
                  : all.failure.ok() ? Verdict::CaughtByNumbers
                                     : Verdict::CaughtByCheck;
        if (!why.empty())
            break;
    }
    all.instead.clear();
    all.stepLimit = 0;
    all.failure = {};
    return verdict;
}

} // namespace mr::ptx
