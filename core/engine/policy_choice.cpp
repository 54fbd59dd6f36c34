#include "core/engine/policy_choice.h"

#include "core/base/bytes.h"
#include "core/plan/placement.h"
#include "core/plan/plan_builder.h"

#include <array>
#include <cstdio>
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
}

// A step in the middle of a run: the second, which also does what the first left for it.
Result<StepPlan> steadyStep(const RunSetup& setup)
{
    PlanBuilder builder(setup.shape, setup.budget, setup.rates, setup.policy);
    BuiltStep built;
    StepSpec step = setup.step;
    for (step.step = 1; step.step <= 2; ++step.step) {
        const Carry in = built.out;
        MR_TRY(builder.buildPlanInto(step, in, setup.rates, built));
    }
    return std::move(built.plan);
}

Status forecast(RunSetup& setup)
{
    auto plan = steadyStep(setup);
    MR_TRY(plan.status());
    StepForecaster forecaster;
    setup.forecast = forecaster.forecast(
        plan.value(), {setup.shape, setup.rates, setup.step.precision, setup.step.recompute});
    setup.traffic = linkTraffic(plan.value(), setup.shape, setup.step.precision);
    return {};
}

// Trials of one policy. Where rates are known the order of work and the late share are open too;
// both change times and bytes, and no number.
void addTrials(const RunSpec& spec, const std::string& policy, bool open, bool recompute,
    std::vector<PolicyTrial>& trials)
{
    PolicyTrial trial{policy, spec.policyOptions, recompute};
    trials.push_back(trial);
    if (!open || policy == "resident" || spec.policyOptions.count("order") > 0)
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

std::vector<PolicyTrial> trialsOf(const RunSpec& spec, bool ratesKnown)
{
    std::vector<std::string> policies{spec.policy};
    if (spec.policy == "auto") {
        policies = {"resident", "zero-offload"};
        if (ratesKnown)
            policies.emplace_back("deep-optimizer-states");
    }
    std::vector<PolicyTrial> trials;
    for (const std::string& policy : policies)
        for (const bool recompute : {false, true}) {
            const bool asked = recompute ? spec.recompute != RecomputeChoice::None
                                         : spec.recompute != RecomputeChoice::Block;
            if (asked)
                addTrials(spec, policy, spec.policy == "auto", recompute, trials);
        }
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

struct Tried {
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
    const auto share = spec.policyOptions.find("device-share");
    if (spec.policy == "deep-optimizer-states" &&
        (share == spec.policyOptions.end() || share->second == "auto"))
        spec.policyOptions["device-share"] = std::to_string(balancedDeviceShare(setup.rates));
}

} // namespace

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

Status choosePolicy(RunSetup& setup)
{
    const bool automatic = setup.spec.policy == "auto";
    const bool ratesKnown = setup.rates.hostAdamwElementsPerSecond > 0.0;
    const std::vector<PolicyTrial> trials = trialsOf(setup.spec, ratesKnown);
    Tried tried;
    for (const PolicyTrial& trial : trials) {
        if (automatic && !makePolicy(trial.policy, trial.options).ok())
            continue; // it does not take an option that was given
        MR_TRY(planWith(setup, trial));
        if (setup.limit.empty())
            note(tried, trial, setup.forecast);
        if (tried.best && !ratesKnown)
            break;
    }
    const PolicyTrial& chosen = tried.best ? *tried.best : trials.back();
    if (tried.best && automatic)
        setup.reason = reasonOf(tried);
    keepChoice(setup, chosen);
    return planWith(setup, {setup.spec.policy, setup.spec.policyOptions, chosen.recompute});
}

} // namespace mr
