#include "core/engine/policy_choice.h"

#include "core/base/bytes.h"
#include "core/engine/disk_choice.h"
#include "core/plan/placement.h"
#include "core/plan/plan_builder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <span>
#include <tuple>
#include <vector>

namespace mr {
namespace {

std::string shortOf(std::string_view tier, std::size_t needed, std::size_t budget)
{
    if (needed <= budget)
        return {};
    return std::string(tier) + " memory: needs " + formatBytes(needed) + ", the budget is " +
           formatBytes(budget) + ", " + formatBytes(needed - budget) + " short";
}

void findLimit(RunSetup& setup)
{
    setup.limit = shortOf("device", setup.memory.bytes(Tier::Device), setup.budget.deviceBytes);
    if (setup.limit.empty())
        setup.limit = shortOf("host", setup.memory.bytes(Tier::PinnedHost), setup.budget.hostBytes);
    const std::size_t onDisk = setup.memory.bytes(Tier::Disk);
    if (!setup.limit.empty() || onDisk == 0)
        return;
    if (setup.spec.diskPaths.empty())
        setup.limit = "the optimizer state needs " + formatBytes(onDisk) +
                      " on disk, and no scratch folder is named for it (--disk-path)";
    else if (setup.budget.diskBytes == 0)
        setup.limit = "disk: needs " + formatBytes(onDisk) + ", and nothing is free in " +
                      setup.spec.diskPaths.front() +
                      "; free some space or name another folder (--disk-path)";
    else
        setup.limit = shortOf("disk", onDisk, setup.budget.diskBytes);
}

void add(const StepForecast& step, double share, StepForecast& sum)
{
    sum.known = step.known;
    sum.stepSeconds += share * step.stepSeconds;
    sum.computeSeconds += share * step.computeSeconds;
    for (std::size_t cause = 0; cause < kStallCauses; ++cause)
        sum.stallSeconds[cause] += share * step.stallSeconds[cause];
}

// The mean of a window's steps in the middle of a run: the second window after the warm-up, which
// also does what the first left for it.
Status forecast(RunSetup& setup)
{
    Feedback rates = setup.rates;
    setup.scratch.addRates(setup.memory.bytes(Tier::Disk), rates);
    PlanBuilder builder(setup.shape, setup.budget, setup.rates, setup.policy);
    StepForecaster forecaster;
    BuiltStep built;
    built.out.step = setup.policy.clock->warmup();
    StepSpec step = setup.step;
    const int window = setup.policy.clock->rule(GroupId{0}, kWholeRun, setup.rates).windowSteps;
    setup.forecast = {};
    setup.traffic = {};
    setup.diskTraffic = {};
    for (int n = 0; n < 2 * window; ++n) {
        const Carry in = built.out;
        step.step = in.step + 1;
        MR_TRY(builder.buildPlanInto(step, in, setup.rates, built));
        if (n < window)
            continue;
        add(forecaster.forecast(
                built.plan, {setup.shape, rates, setup.step.precision, setup.step.recompute}),
            1.0 / window, setup.forecast);
        const LinkTraffic traffic = linkTraffic(built.plan, setup.shape, setup.step.precision);
        setup.traffic.hostToDeviceBytes += traffic.hostToDeviceBytes / window;
        setup.traffic.deviceToHostBytes += traffic.deviceToHostBytes / window;
        const DiskTraffic disk = diskTraffic(built.plan, setup.shape, setup.step.precision);
        setup.diskTraffic.readBytes += disk.readBytes;
        setup.diskTraffic.writtenBytes += disk.writtenBytes;
    }
    setup.diskTraffic.readBytes /= window;
    setup.diskTraffic.writtenBytes /= window;
    return {};
}

// The shortest window that is worth it comes first (note()), so longer ones are chosen where they
// take a stall away and nowhere else.
void addWindows(const PolicyTrial& plain, bool ratesKnown, std::vector<PolicyTrial>& trials)
{
    if (!ratesKnown) {
        trials.push_back(plain);
        return;
    }
    for (const char* interval : {"1", "2", "3", "4", "6", "8", "12", "16"}) {
        trials.push_back(plain);
        trials.back().options["interval"] = interval;
    }
}

// Where a window of several steps is summed is open too: the device has less to send and more to
// hold.
void addSites(std::size_t first, bool ratesKnown, std::vector<PolicyTrial>& trials)
{
    for (std::size_t t = first, end = trials.size(); t < end; ++t) {
        trials[t].options["accumulate-on"] = "host";
        const auto interval = trials[t].options.find("interval");
        if (!ratesKnown || (interval != trials[t].options.end() && interval->second == "1"))
            continue;
        trials.push_back(trials[t]);
        trials.back().options["accumulate-on"] = "device";
    }
}

// Is the choice ours? Of `auto` unless it was said, else only where it was asked for: what was
// chosen stays chosen.
bool isOpen(const RunSpec& spec, const char* option)
{
    const auto said = spec.policyOptions.find(option);
    return said == spec.policyOptions.end() ? spec.policy == "auto" : said->second == "auto";
}

// Trials of one policy. Where rates are known the order of work and the late share are open too;
// both change times and bytes, and no number.
void addTrials(const RunSpec& spec, const std::string& policy, bool ratesKnown, bool recompute,
    std::vector<PolicyTrial>& trials)
{
    PolicyTrial trial{policy, spec.policyOptions, recompute};
    if (policy == "zenflow") {
        const std::size_t first = trials.size();
        if (isOpen(spec, "interval"))
            addWindows(trial, ratesKnown, trials);
        else
            trials.push_back(trial);
        return isOpen(spec, "accumulate-on") ? addSites(first, ratesKnown, trials) : void();
    }
    trials.push_back(trial);
    if (policy == "zero-offload-dpu" || spec.policy != "auto" || policy == "resident" ||
        spec.policyOptions.count("order") > 0)
        return;
    trial.options["order"] = "by-layer";
    trials.push_back(trial);
    if (spec.policyOptions.count("late") > 0)
        return;
    trial.options["late"] = "1";
    trials.push_back(trial);
    trial.options.erase("order");
    trials.push_back(trial);
}

using Options = std::map<std::string, std::string>;

PolicyTrial recomputing(const RunSpec& spec, std::string_view policy, const Options& options)
{
    Options all = spec.policyOptions; // what was said holds
    all.insert(options.begin(), options.end());
    return {std::string(policy), std::move(all), true};
}

// From what streams least to what needs the least memory. Where rates are known a share of the
// updates may be the device's, with the host's beside the next forward or beside them.
void addStreams(
    const RunSpec& spec, const ModelShape& shape, bool ratesKnown, std::vector<PolicyTrial>& trials)
{
    const auto tryWith = [&](const Options& options) {
        trials.push_back(recomputing(spec, "streamed", options));
    };
    const bool isShareOpen = ratesKnown && spec.policyOptions.count("device-share") == 0;
    const auto tryShares = [&](Options options) {
        tryWith(options);
        if (!isShareOpen)
            return;
        options["device-share"] = "auto";
        for (const char* late : {"1", "0"}) {
            options["late"] = late;
            tryWith(options);
        }
    };
    for (const char* share : {"0.75", "0.5", "0.25", "0"})
        tryShares({{"weights-on-device", share}, {"boundary", "device"}});
    for (const char* share : {"1", "0.5", "0"})
        tryShares({{"weights-on-device", share}});
    for (const char* kept : {"1", "0.5"}) // where the link brings them sooner than they are made
        for (const char* share : {"1", "0"})
            if (ratesKnown && spec.policyOptions.count("activations-on-host") == 0)
                tryWith({{"weights-on-device", share}, {"activations-on-host", kept}});
    tryWith({{"turns", "1"}});
    tryWith({{"turns", "1"}, {"tile", smallTile(shape)}});
}

// Windows whose state does not all fit the host; those that do are tried already.
void addWindowsOnDisk(const RunSetup& setup, std::vector<PolicyTrial>& trials)
{
    std::vector<PolicyTrial> windows;
    for (const char* policy : {"zero-offload-dpu", "zenflow"})
        addTrials(setup.spec, policy, true, true, windows);
    for (const PolicyTrial& trial : windows) {
        PolicyTrial onDisk = fittedToHost(setup, trial);
        if (onDisk.options != trial.options)
            trials.push_back(std::move(onDisk));
    }
}

std::vector<PolicyTrial> trialsOf(const RunSetup& setup, bool ratesKnown)
{
    const RunSpec& spec = setup.spec;
    std::vector<std::string> policies{spec.policy};
    if (spec.policy == "auto") {
        policies = {"resident", "zero-offload"};
        if (ratesKnown)
            policies.emplace_back("deep-optimizer-states");
        if (spec.allowStale && ratesKnown)
            policies.insert(policies.end(), {"zero-offload-dpu", "zenflow"});
    }
    std::vector<PolicyTrial> trials;
    for (const std::string& policy : policies)
        for (const bool recompute : {false, true}) {
            const bool asked = recompute ? spec.recompute != RecomputeChoice::None
                                         : spec.recompute != RecomputeChoice::Block;
            if (asked)
                addTrials(spec, policy, ratesKnown, recompute, trials);
        }
    if (spec.policy == "auto" && spec.recompute != RecomputeChoice::None)
        addStreams(spec, setup.shape, ratesKnown, trials);
    if (spec.policy == "auto" && spec.recompute != RecomputeChoice::None &&
        !spec.diskPaths.empty()) {
        std::vector<PolicyTrial> onDisk = diskTrials(setup);
        std::move(onDisk.begin(), onDisk.end(), std::back_inserter(trials));
        if (spec.allowStale && ratesKnown)
            addWindowsOnDisk(setup, trials);
    }
    if (spec.policy == kDiskPolicy || takesDisk(spec))
        for (PolicyTrial& trial : trials)
            trial = fittedToHost(setup, trial);
    return trials;
}

std::string seconds(double value)
{
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), value < 1.0 ? "%.0f ms" : "%.2f s",
        value < 1.0 ? 1e3 * value : value);
    return text.data();
}

std::string words(const PolicyTrial& trial)
{
    std::string text = trial.policy;
    for (const auto& [option, value] : trial.options)
        text += " " + option + "=" + value;
    return text + (trial.recompute ? ", recompute" : "");
}

// Bytes by which the plan is larger than its budgets.
std::size_t shortage(const RunSetup& setup)
{
    const auto over = [&](Tier tier, std::size_t budget) {
        const std::size_t bytes = setup.memory.bytes(tier);
        return bytes > budget ? bytes - budget : 0;
    };
    return over(Tier::Device, setup.budget.deviceBytes) +
           over(Tier::PinnedHost, setup.budget.hostBytes) +
           over(Tier::Disk, setup.budget.diskBytes);
}

struct Tried {
    const PolicyTrial* nearest = nullptr; // where nothing fits: what lacks least
    std::size_t lacks = 0;
    const PolicyTrial* best = nullptr;
    double bestSeconds = 0.0; // 0: no forecast
    const PolicyTrial* second = nullptr;
    double secondSeconds = 0.0;
};

// Trials come from the simplest to the most involved; a later one must be worth it.
void note(Tried& tried, const PolicyTrial& trial, const StepForecast& forecast)
{
    constexpr double kWorthIt = 0.99;
    const double taken = forecast.known ? forecast.stepSeconds : 0.0;
    if (!tried.best || (taken > 0.0 && taken < kWorthIt * tried.bestSeconds)) {
        tried.second = tried.best;
        tried.secondSeconds = tried.bestSeconds;
        tried.best = &trial;
        tried.bestSeconds = taken;
    } else if (taken > 0.0 && (!tried.second || taken < tried.secondSeconds)) {
        tried.second = &trial;
        tried.secondSeconds = taken;
    }
}

std::string reasonOf(const Tried& tried)
{
    if (tried.bestSeconds == 0.0)
        return "the first that fits: " + words(*tried.best) + " (no rates are measured yet)";
    std::string text = "the fastest that fits: " + words(*tried.best) + ", " +
                       seconds(tried.bestSeconds) + " a step";
    if (tried.second && tried.secondSeconds > 0.0)
        text += "; next " + words(*tried.second) + ", " + seconds(tried.secondSeconds);
    return text;
}

// What was chosen stays chosen: the numbers go into the record of the run.
void keepChoice(RunSetup& setup, const PolicyTrial& trial)
{
    RunSpec& spec = setup.spec;
    spec.policy = trial.policy;
    spec.policyOptions = trial.options;
    spec.recompute = trial.recompute ? RecomputeChoice::Block : RecomputeChoice::None;
    const auto interval = spec.policyOptions.find("interval");
    if (interval != spec.policyOptions.end() && interval->second == "magnitude")
        spec.policyOptions["energy"] = "l1"; // that it is chosen by, also of the run after
    if (interval != spec.policyOptions.end() && interval->second == "auto") // without rates
        interval->second = std::to_string(
            setup.policy.clock->rule(GroupId{0}, kWholeRun, setup.rates).windowSteps);
    if (const auto share = setup.policy.placement->balancedShare(setup.rates))
        spec.policyOptions["device-share"] = std::to_string(*share);
}

} // namespace

// Bytes of an upload in BF16 (policies.cpp).
std::string smallTile(const ModelShape& shape)
{
    std::int64_t largest = 0;
    for (std::size_t g = 1; g + 1 < shape.groups.size(); ++g)
        largest = std::max(largest, shape.groups[g].elements);
    return std::to_string(2 * std::clamp(largest / 8, kCutElements, kTileElements));
}

Status planWith(RunSetup& setup, const PolicyTrial& trial)
{
    auto policy = makePolicy(trial.policy, trial.options);
    MR_TRY(policy.status());
    setup.policy = std::move(policy).value();
    setup.step.recompute = trial.recompute;
    auto memory = planMemory(setup.step, setup.shape, setup.budget, setup.rates, setup.policy);
    MR_TRY(memory.status());
    setup.memory = std::move(memory).value();
    findLimit(setup);
    return forecast(setup);
}

Status chooseAmong(RunSetup& setup, std::span<const PolicyTrial> trials)
{
    const bool ratesKnown = setup.rates.hostAdamwElementsPerSecond > 0.0;
    Tried tried;
    for (const PolicyTrial& trial : trials) {
        if (trials.size() > 1 && !makePolicy(trial.policy, trial.options).ok())
            continue; // it does not take an option that was given
        MR_TRY(planWith(setup, trial));
        if (setup.limit.empty())
            note(tried, trial, setup.forecast);
        else if (const std::size_t lacks = shortage(setup); !tried.nearest || lacks < tried.lacks)
            std::tie(tried.nearest, tried.lacks) = std::tuple(&trial, lacks);
        if (tried.best && !ratesKnown)
            break;
    }
    const PolicyTrial& last = tried.nearest ? *tried.nearest : trials.back();
    const PolicyTrial& chosen = tried.best ? *tried.best : last;
    if (tried.best)
        setup.reason = reasonOf(tried);
    MR_TRY(planWith(setup, chosen)); // its answers are what is kept
    keepChoice(setup, chosen);
    return planWith(setup, {setup.spec.policy, setup.spec.policyOptions, chosen.recompute});
}

namespace {

// Beside what was chosen before, so that there are few plans to try.
Status chooseLateShare(RunSetup& setup, const Options& said)
{
    const std::vector<PolicyTrial> trials = lateTrials(setup, said);
    if (trials.empty())
        return {};
    std::string before = setup.reason.empty() ? std::string() : setup.reason + "; ";
    MR_TRY(chooseAmong(setup, trials));
    if (!setup.limit.empty())
        return {};
    setup.reason = std::move(before) + "late=" + setup.spec.policyOptions.at("late") +
                   " is the fastest of the late shares tried, " +
                   seconds(setup.forecast.stepSeconds) + " a step";
    return {};
}

} // namespace

Status choosePolicy(RunSetup& setup)
{
    const bool automatic = setup.spec.policy == "auto";
    const Options asked = setup.spec.policyOptions;
    const bool ratesKnown = setup.rates.hostAdamwElementsPerSecond > 0.0;
    MR_TRY(chooseAmong(setup, trialsOf(setup, ratesKnown)));
    if (automatic)
        return chooseLateShare(setup, asked);
    setup.reason.clear(); // it was asked for
    const bool isFitted =
        setup.spec.policy == kDiskPolicy
            ? setup.spec.policyOptions != asked
            : setup.spec.policyOptions.count("disk-share") > asked.count("disk-share");
    if (isFitted && setup.limit.empty())
        setup.reason = "what host memory lacks is on disk: " +
                       words({setup.spec.policy, setup.spec.policyOptions, false});
    return chooseLateShare(setup, asked);
}

} // namespace mr
