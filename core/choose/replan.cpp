#include "core/choose/replan.h"

#include "core/choose/disk_choice.h"
#include "core/choose/policy_choice.h"
#include "core/plan/traversal.h"

#include <algorithm>
#include <vector>

namespace mr {
namespace {

// Tile of uploads where their landing does not fit: 4 MiB in BF16.
constexpr std::int64_t kSmallTile = std::int64_t{2} << 20;

// A setup with everything but a plan.
RunSetup withoutPlan(const RunSetup& from)
{
    RunSetup setup;
    setup.spec = from.spec;
    setup.asked = from.asked;
    setup.numbers = from.numbers;
    setup.askedNumbers = from.askedNumbers;
    setup.config = from.config;
    setup.table = from.table;
    setup.micro = from.micro;
    setup.shape = from.shape;
    setup.step = from.step;
    setup.turns = from.turns;
    setup.policy.id = from.policy.id;
    setup.budget = from.budget;
    setup.host = from.host;
    setup.rates = from.rates;
    setup.readsOwnFiles = from.readsOwnFiles;
    setup.baseDrive = from.baseDrive;
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

// `numbers` and variants that change no number of the training.
std::vector<PolicyNumbers> variants(const RunSetup& setup, bool flipped, PolicyNumbers numbers)
{
    const PolicyNumbers& asked = setup.askedNumbers;
    const auto reopen = [&](auto member) {
        if (!(asked.*member))
            (numbers.*member).reset();
    };
    std::vector<PolicyNumbers> all{numbers};
    reopen(&PolicyNumbers::late);
    reopen(&PolicyNumbers::order);
    reopen(&PolicyNumbers::weightsOnDevice);
    reopen(&PolicyNumbers::stateOnDevice);
    reopen(&PolicyNumbers::boundary);
    reopen(&PolicyNumbers::deviceShare);
    reopen(&PolicyNumbers::diskShare);
    all.push_back(numbers);
    if (!asked.order && !flipped) {
        all.push_back(numbers);
        all.back().order = WorkOrder::ByLayer;
    }
    if (!asked.tileElements) {
        all.push_back(numbers);
        all.back().tileElements = kSmallTile;
    }
    return all;
}

void addTrials(const RunSetup& setup, bool flipped, const PolicyInfo& policy,
    const std::vector<PolicyNumbers>& all, std::vector<PolicyTrial>& trials)
{
    for (const Recompute how : kRecomputeKinds) {
        if (!isAllowed(how, setup.asked.recompute))
            continue;
        for (PolicyNumbers numbers : all) {
            if (flipped) // the order the run began with stays
                numbers.order = WorkOrder::ByLayerFlip;
            trials.push_back({policy.id, numbers, how});
            if (!policy.doesTake(kHomes) || setup.askedNumbers.buffers)
                continue;
            trials.push_back(trials.back());
            trials.back().numbers.buffers = 1;
        }
    }
}

std::vector<PolicyTrial> ownTrials(const RunSetup& setup, bool flipped, ReplanScope scope)
{
    const PolicyInfo& policy = policyInfo(setup.policy.id);
    const PolicyNumbers& numbers = setup.numbers;
    std::vector<PolicyTrial> trials;
    // A job in flight counts tiles.
    addTrials(setup, flipped, policy,
        scope == ReplanScope::SamePolicy ? std::vector{numbers} : variants(setup, flipped, numbers),
        trials);
    // A smaller host budget may need more on disk. Policies that use the disk need no fitting:
    // reopened, they have all state there.
    const bool isFitted = !policy.usesDisk && takesDisk(setup.spec);
    if (isFitted && scope != ReplanScope::SamePolicy)
        for (PolicyTrial& trial : trials)
            trial = fittedToHost(setup, trial);
    return trials;
}

std::vector<PolicyTrial> otherTrials(const RunSetup& setup, bool flipped, ReplanScope scope)
{
    const bool staleToo =
        scope == ReplanScope::Any && isAuto(setup.asked) && setup.asked.allowStale;
    std::vector<PolicyTrial> trials;
    if (scope == ReplanScope::SamePolicy)
        return trials;
    for (const PolicyInfo& info : policyTable()) {
        if (info.id == setup.policy.id || (!info.exact && !staleToo) ||
            !doesTrain(info, setup.spec, setup.shape))
            continue;
        const PolicyNumbers taken = onlyTaken(info.takes, setup.askedNumbers);
        addTrials(setup, flipped, info, variants(setup, flipped, taken), trials);
    }
    return trials;
}

} // namespace

Result<RunSetup> withNumbers(
    const RunSetup& before, const PolicyNumbers& numbers, const Feedback& rates)
{
    RunSetup setup = withoutPlan(before);
    setup.rates = rates;
    setup.reason = before.reason;
    keepNumbers(setup, numbers);
    MR_TRY(planWith(setup, {before.policy.id, numbers, setup.step.recompute}));
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
    if (!policyInfo(setup.policy.id).isAllOnDevice)
        setup.spec.threadedDevice = true; // when the run is resumed
    return setup;
}

} // namespace mr
