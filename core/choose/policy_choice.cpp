#include "core/choose/policy_choice.h"

#include "core/base/bytes.h"
#include "core/choose/disk_choice.h"
#include "core/choose/policy_trials.h"
#include "core/choose/trained_part.h"
#include "core/model/prepared_base.h"
#include "core/plan/plan_builder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <tuple>
#include <utility>
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
    const std::size_t onHost = setup.memory.bytes(Tier::PinnedHost);
    if (setup.limit.empty() && onHost > setup.budget.hostBytes)
        setup.limit = shortOf("host", onHost, setup.budget.hostBytes) + hostMemoryWords(setup.host);
    const bool lacksFolder =
        !setup.memory.disk.frozen.empty() && !setup.readsOwnFiles && setup.spec.diskPaths.empty();
    if (setup.limit.empty() && lacksFolder)
        setup.limit = "the frozen weights are read from disk in a form that the model's files do "
                      "not have, and no scratch folder is named for a file of " +
                      formatBytes(preparedBytes(readTable(setup), setup.micro.compute)) +
                      " that has it (--disk-path)";
    const std::size_t onDisk = setup.memory.scratchBytes();
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
// also does the work that the first left for it.
Status forecast(RunSetup& setup)
{
    Feedback rates = setup.rates;
    setup.scratch.addRates(setup.memory.scratchBytes(), rates);
    if (!setup.memory.usesScratch())
        setup.baseDrive.addRates(setup.memory.bytes(Tier::Disk), rates);
    const ModelShape& shape = forecastShape(setup);
    PlanBuilder builder(shape, setup.budget, setup.rates, setup.policy);
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
                built.plan, {shape, rates, setup.step.precision, setup.step.recompute}),
            1.0 / window, setup.forecast);
        const LinkTraffic traffic = linkTraffic(built.plan, shape, setup.step.precision);
        setup.traffic.hostToDeviceBytes += traffic.hostToDeviceBytes / window;
        setup.traffic.deviceToHostBytes += traffic.deviceToHostBytes / window;
        const DiskTraffic disk = diskTraffic(built.plan, shape, setup.step.precision);
        setup.diskTraffic.readBytes += disk.readBytes;
        setup.diskTraffic.writtenBytes += disk.writtenBytes;
    }
    setup.diskTraffic.readBytes /= window;
    setup.diskTraffic.writtenBytes /= window;
    return {};
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
    std::string text(policyInfo(trial.policy).name);
    for (const auto& [option, value] : policyOptionTexts(trial.numbers))
        text += " " + option + "=" + value;
    if (trial.recompute != Recompute::None)
        text.append(", recompute ").append(name(trial.recompute));
    return text;
}

// Bytes by which the plan is larger than its budgets.
std::size_t shortage(const RunSetup& setup)
{
    const auto over = [&](Tier tier, std::size_t budget) {
        const std::size_t bytes =
            tier == Tier::Disk ? setup.memory.scratchBytes() : setup.memory.bytes(tier);
        return bytes > budget ? bytes - budget : 0;
    };
    return over(Tier::Device, setup.budget.deviceBytes) +
           over(Tier::PinnedHost, setup.budget.hostBytes) +
           over(Tier::Disk, setup.budget.diskBytes);
}

struct Tried {
    const PolicyTrial* nearest = nullptr; // where nothing fits: the one that lacks least
    std::size_t lacks = 0;
    const PolicyTrial* best = nullptr;
    double bestSeconds = 0.0; // 0: no forecast
    const PolicyTrial* second = nullptr;
    double secondSeconds = 0.0;
};

// Does a trial that fits differ in nothing but less recomputation? Then this one is not faster.
bool isBeaten(const PolicyTrial& trial, std::span<const PolicyTrial* const> fitting)
{
    return std::ranges::any_of(fitting, [&](const PolicyTrial* other) {
        return other->policy == trial.policy && other->recompute < trial.recompute &&
               other->numbers == trial.numbers;
    });
}

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

// A choice is made once: its numbers go into the record of the run. The plan is that of the trial;
// answers replace only options that would be chosen again.
Status keepChoice(RunSetup& setup, const PolicyTrial& trial)
{
    PolicyNumbers numbers = trial.numbers;
    if (setup.policy.intervalByMagnitude)
        numbers.energy = ColumnEnergy::Absolutes; // it decides the interval; the run keeps it
    if (numbers.interval && numbers.interval->from == WindowInterval::From::Rates) // without rates
        numbers.interval = {WindowInterval::From::User,
            setup.policy.clock->rule(GroupId{0}, kWholeRun, setup.rates).windowSteps};
    if (const auto share = setup.policy.placement->balancedShare(setup.rates))
        numbers.deviceShare = *share;
    auto policy = makePolicy(trial.policy, numbers);
    MR_TRY(policy.status());
    setup.policy = std::move(policy).value();
    setup.spec.policy = policyInfo(trial.policy).name;
    setup.spec.recompute = choiceOf(trial.recompute);
    keepNumbers(setup, std::move(numbers));
    return {};
}

} // namespace

bool doesTrain(const PolicyInfo& policy, const RunSpec& spec, const ModelShape& shape) noexcept
{
    if (isMostlyRead(spec))
        return policy.isAllOnDevice || policy.streams;
    return !policy.hasWindows || !shape.hasFrozen();
}

Result<PolicyNumbers> numbersOf(const RunSpec& spec)
{
    auto numbers = readOptionsOf(spec.policy, spec.policyOptions);
    MR_TRY(numbers.status());
    numbers.value().optimizer = spec.optimizer;
    numbers.value().lightState = lightCodec(spec.weights, spec.precision == PrecisionChoice::F32);
    return numbers;
}

Status readNumbers(RunSetup& setup)
{
    auto numbers = numbersOf(setup.spec);
    MR_TRY(numbers.status());
    MR_ASSIGN(auto asked, numbersOf(setup.asked));
    asked.lightState = numbers.value().lightState; // of the precision that was resolved
    setup.numbers = std::move(numbers).value();
    setup.askedNumbers = std::move(asked);
    return {};
}

void keepNumbers(RunSetup& setup, PolicyNumbers numbers)
{
    setup.spec.policyOptions = policyOptionTexts(numbers);
    setup.numbers = std::move(numbers);
}

Status planWith(RunSetup& setup, const PolicyTrial& trial)
{
    auto policy = makePolicy(trial.policy, trial.numbers);
    MR_TRY(policy.status());
    setup.policy = std::move(policy).value();
    setup.step.recompute = trial.recompute;
    MR_ASSIGN(setup.memory, runMemory(setup, setup.step, setup.policy));
    findLimit(setup);
    return forecast(setup);
}

Status chooseAmong(RunSetup& setup, std::span<const PolicyTrial> trials)
{
    const bool ratesKnown = setup.rates.hostAdamwElementsPerSecond > 0.0;
    Tried tried;
    std::vector<const PolicyTrial*> fitting;
    for (const PolicyTrial& trial : trials) {
        if (trials.size() > 1 && !makePolicy(trial.policy, trial.numbers).ok())
            continue; // it does not take an option that was given
        if (isBeaten(trial, fitting))
            continue;
        MR_TRY(planWith(setup, trial));
        if (!setup.limit.empty()) {
            if (const std::size_t lacks = shortage(setup); !tried.nearest || lacks < tried.lacks)
                std::tie(tried.nearest, tried.lacks) = std::tuple(&trial, lacks);
            continue;
        }
        fitting.push_back(&trial);
        note(tried, trial, setup.forecast);
        if (!ratesKnown)
            break;
    }
    const PolicyTrial& last = tried.nearest ? *tried.nearest : trials.back();
    const PolicyTrial& chosen = tried.best ? *tried.best : last;
    if (tried.best)
        setup.reason = reasonOf(tried);
    MR_TRY(planWith(setup, chosen)); // keepChoice() keeps its answers
    return keepChoice(setup, chosen);
}

namespace {

// After the other choices, so that there are few plans to try.
Status chooseLateShare(RunSetup& setup, const PolicyNumbers& said)
{
    const std::vector<PolicyTrial> trials = lateTrials(setup, said);
    if (trials.empty())
        return {};
    std::string before = setup.reason.empty() ? std::string() : setup.reason + "; ";
    MR_TRY(chooseAmong(setup, trials));
    if (!setup.limit.empty())
        return {};
    setup.reason = std::move(before) + "late=" + policyOptionTexts(setup.numbers).at("late") +
                   " is the fastest of the late shares tried, " +
                   seconds(setup.forecast.stepSeconds) + " a step";
    return {};
}

Status checkTrained(const RunSetup& setup)
{
    const PolicyInfo* asked = findPolicy(setup.spec.policy); // none: the program chooses
    if (asked == nullptr || doesTrain(*asked, setup.spec, setup.shape))
        return {};
    std::string names = "auto";
    for (const PolicyInfo& policy : policyTable())
        if (doesTrain(policy, setup.spec, setup.shape))
            names.append(", ").append(policy.name);
    return Status::error(ErrorKind::InvalidArgument,
        "policy " + setup.spec.policy + " does not train " +
            std::string(isAdapterRun(setup.spec)    ? "an adapter"
                        : trainsInTurns(setup.spec) ? "blocks in turn"
                                                    : "some layers of a model") +
            "; use one of " + names);
}

} // namespace

Status choosePolicy(RunSetup& setup)
{
    MR_TRY(checkTrained(setup));
    const bool automatic = isAuto(setup.spec);
    const PolicyNumbers asked = setup.numbers;
    const bool ratesKnown = setup.rates.hostAdamwElementsPerSecond > 0.0;
    MR_TRY(chooseAmong(setup, trialsOf(setup, ratesKnown)));
    if (automatic)
        return chooseLateShare(setup, asked);
    setup.reason.clear(); // it was asked for
    const bool isFitted = policyInfo(setup.policy.id).usesDisk
                              ? setup.numbers != asked
                              : setup.numbers.diskShare && !asked.diskShare;
    if (isFitted && setup.limit.empty())
        setup.reason = "what host memory lacks is on disk: " +
                       words({setup.policy.id, setup.numbers, Recompute::None});
    return chooseLateShare(setup, asked);
}

} // namespace mr
