#include "core/engine/replan.h"

#include "core/engine/disk_choice.h"
#include "core/engine/policy_choice.h"
#include "core/plan/traversal.h"

#include <algorithm>
#include <vector>

namespace mr {
namespace {

using Options = std::map<std::string, std::string>;

constexpr const char* kSmallTile = "4MiB"; // of uploads, where their landing is what lacks

// A setup with everything but a plan.
RunSetup withoutPlan(const RunSetup& from)
{
    RunSetup setup;
    setup.spec = from.spec;
    setup.asked = from.asked;
    setup.config = from.config;
    setup.table = from.table;
    setup.micro = from.micro;
    setup.shape = from.shape;
    setup.step = from.step;
    setup.budget = from.budget;
    setup.rates = from.rates;
    return setup;
}

void shrink(RunSetup& setup, std::size_t planned, const MemoryShortage& shortage)
{
    const bool tellsMore = shortage.freeBytes && *shortage.freeBytes < planned;
    const std::size_t left = tellsMore ? *shortage.freeBytes : planned - planned / 10;
    if (shortage.tier == Tier::Device)
        setup.spec.deviceMemoryBytes = setup.budget.deviceBytes = left;
    else
        setup.spec.hostMemoryBytes = setup.budget.hostBytes = left;
}

bool isOpen(const RunSetup& setup, const char* option)
{
    return setup.asked.policyOptions.count(option) == 0;
}

// `options` and what may stand in their place without changing a number.
std::vector<Options> variants(const RunSetup& setup, bool flipped, Options options)
{
    std::vector<Options> all{options};
    for (const char* option : {"late", "order", "weights-on-device", "state-on-device", "boundary",
             "device-share", "disk-share"})
        if (isOpen(setup, option))
            options.erase(option);
    all.push_back(options);
    if (isOpen(setup, "order") && !flipped) {
        all.push_back(options);
        all.back()["order"] = "by-layer";
    }
    if (isOpen(setup, "tile")) {
        all.push_back(options);
        all.back()["tile"] = kSmallTile;
    }
    return all;
}

void addTrials(const RunSetup& setup, bool flipped, const std::string& policy,
    const std::vector<Options>& all, std::vector<PolicyTrial>& trials)
{
    for (const bool recompute : {false, true}) {
        const RecomputeChoice asked = setup.asked.recompute;
        if (recompute ? asked == RecomputeChoice::None : asked == RecomputeChoice::Block)
            continue;
        for (Options options : all) {
            if (flipped) // what the run began with stays
                options["order"] = "by-layer-flip";
            trials.push_back({policy, options, recompute});
            if ((policy != "streamed" && policy != kDiskPolicy) || !isOpen(setup, "turns"))
                continue;
            trials.push_back(trials.back());
            trials.back().options["turns"] = "1";
        }
    }
}

// Of the options, those another policy takes too. Two must be taken, because they change bits.
std::optional<Options> taken(const std::string& policy, const Options& options)
{
    Options kept;
    for (const auto& [option, value] : options) {
        if (makePolicy(policy, {{option, value}}).ok())
            kept[option] = value;
        else if (option == "order" || option == "state")
            return std::nullopt;
    }
    return kept;
}

std::vector<PolicyTrial> ownTrials(const RunSetup& setup, bool flipped, ReplanScope scope)
{
    const Options& options = setup.spec.policyOptions;
    std::vector<PolicyTrial> trials;
    // A job in flight counts tiles.
    addTrials(setup, flipped, setup.spec.policy,
        scope == ReplanScope::SamePolicy ? std::vector{options} : variants(setup, flipped, options),
        trials);
    // What is left of the host may need more on disk; of the exact policy all is tried there
    // anyway.
    const bool isFitted = setup.spec.policy != kDiskPolicy && takesDisk(setup.spec);
    if (isFitted && scope != ReplanScope::SamePolicy)
        for (PolicyTrial& trial : trials)
            trial = fittedToHost(setup, trial);
    return trials;
}

std::vector<PolicyTrial> otherTrials(const RunSetup& setup, bool flipped, ReplanScope scope)
{
    const bool staleToo =
        scope == ReplanScope::Any && setup.asked.policy == "auto" && setup.asked.allowStale;
    std::vector<PolicyTrial> trials;
    if (scope == ReplanScope::SamePolicy)
        return trials;
    for (const PolicyInfo& info : policyTable()) {
        const std::string policy(info.name);
        if (policy == setup.spec.policy || (!info.exact && !staleToo))
            continue;
        if (const auto options = taken(policy, setup.asked.policyOptions))
            addTrials(setup, flipped, policy, variants(setup, flipped, *options), trials);
    }
    return trials;
}

} // namespace

Result<RunSetup> withOptions(const RunSetup& before,
    const std::map<std::string, std::string>& options, const Feedback& rates)
{
    RunSetup setup = withoutPlan(before);
    setup.spec.policyOptions = options;
    setup.rates = rates;
    setup.reason = before.reason;
    MR_TRY(planWith(setup, {setup.spec.policy, options, setup.step.recompute}));
    return setup;
}

Result<RunSetup> replan(const RunSetup& before, const MemoryShortage& shortage, ReplanScope scope)
{
    const bool flipped = flipsSums(*before.policy.traversal);
    RunSetup setup = withoutPlan(before);
    shrink(setup, before.memory.bytes(shortage.tier), shortage);
    MR_TRY(chooseAmong(setup, ownTrials(setup, flipped, scope)));
    const std::vector<PolicyTrial> others = otherTrials(before, flipped, scope);
    if (!setup.limit.empty() && !others.empty())
        MR_TRY(chooseAmong(setup, others));
    if (!setup.limit.empty())
        return Status::error(ErrorKind::OutOfMemory, "no other plan fits: " + setup.limit);
    if (setup.spec.policy != "resident")
        setup.spec.threadedDevice = true; // when the run is resumed
    return setup;
}

} // namespace mr
