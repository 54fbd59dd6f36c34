#include "core/choose/policy_trials.h"

#include "core/choose/disk_choice.h"
#include "core/choose/trained_part.h"

#include <algorithm>
#include <iterator>

namespace mr {
namespace {

// The shortest window that is worth it comes first (note()), so longer ones are chosen where they
// take a stall away and nowhere else.
void addWindows(const PolicyTrial& plain, bool ratesKnown, std::vector<PolicyTrial>& trials)
{
    if (!ratesKnown) {
        trials.push_back(plain);
        return;
    }
    for (const int steps : {1, 2, 3, 4, 6, 8, 12, 16}) {
        trials.push_back(plain);
        trials.back().numbers.interval = {WindowInterval::From::User, steps};
    }
}

// The tier that sums a window of several steps is open too: the device has less to send and more to
// hold.
void addSites(std::size_t first, bool ratesKnown, std::vector<PolicyTrial>& trials)
{
    for (std::size_t t = first, end = trials.size(); t < end; ++t) {
        trials[t].numbers.accumulateOn = WindowSums::Host;
        const auto& interval = trials[t].numbers.interval;
        if (!ratesKnown || (interval && interval->steps == 1))
            continue;
        trials.push_back(trials[t]);
        trials.back().numbers.accumulateOn = WindowSums::Device;
    }
}

// Does the program choose? With `auto` unless the user chose, else only where the user asked for
// it: a choice that was made stays.
bool isIntervalOpen(const RunSetup& setup)
{
    const auto& said = setup.numbers.interval;
    return said ? said->from == WindowInterval::From::Rates : isAuto(setup.spec);
}

bool isSiteOpen(const RunSetup& setup)
{
    const auto& said = setup.numbers.accumulateOn;
    return said ? said == WindowSums::Auto : isAuto(setup.spec);
}

// Trials of one policy. Where it is chosen, the order of work and the late share are open too; both
// change times and bytes, and no number.
void addTrials(const RunSetup& setup, const PolicyInfo& policy, bool ratesKnown,
    Recompute recompute, std::vector<PolicyTrial>& trials)
{
    PolicyTrial trial{policy.id, setup.numbers, recompute};
    if (policy.doesTake(kColumns)) {
        const std::size_t first = trials.size();
        if (isIntervalOpen(setup))
            addWindows(trial, ratesKnown, trials);
        else
            trials.push_back(trial);
        return isSiteOpen(setup) ? addSites(first, ratesKnown, trials) : void();
    }
    trials.push_back(trial);
    if (!policy.doesTake(kLate) || !isAuto(setup.spec) || setup.numbers.order)
        return;
    trial.numbers.order = WorkOrder::ByLayer;
    trials.push_back(trial);
    if (setup.numbers.late)
        return;
    trial.numbers.late = 1.0;
    trials.push_back(trial);
    trial.numbers.order.reset();
    trials.push_back(trial);
}

// From the trial that streams least to the one that needs the least memory. Where rates are known
// the device may make a share of the updates, with the host's beside the next forward or beside
// the device's; and activations may be kept in the memory that weights leave.
class StreamTrials
{
public:
    StreamTrials(const RunSetup& setup, bool ratesKnown, std::vector<PolicyTrial>& trials)
        : m_setup(setup)
        , m_ratesKnown(ratesKnown)
        , m_trials(trials)
    {
    }

    void add()
    {
        for (const Recompute how : keepingTrials(m_setup, m_ratesKnown))
            addOnDevice(how);
        if (isAllowed(Recompute::Block, m_setup.spec.recompute))
            addLeast();
    }

private:
    // Boundaries are a small part of the activations that forward keeps, and lie beside them.
    void addOnDevice(Recompute how)
    {
        m_recompute = how;
        for (const double share : {0.75, 0.5, 0.25, 0.0})
            addShares(share, Tier::Device);
    }

    void addLeast()
    {
        addOnDevice(Recompute::Block);
        for (const double share : {1.0, 0.5, 0.0})
            addShares(share, std::nullopt);
        addKept();
        PolicyNumbers numbers;
        numbers.buffers = 1;
        addOne(numbers);
        numbers.tileElements = smallTile(m_setup.shape);
        addOne(numbers);
        addTiled();
    }

    // Embedding and head by tiles: more bytes over the link, fewer on the device.
    void addTiled()
    {
        if (m_setup.shape.vocabulary.rows == 0 || !updatesByTiles(m_setup.spec.optimizer) ||
            m_setup.numbers.vocabulary || m_setup.numbers.boundary == Tier::Device ||
            m_setup.step.precision != Precision::BF16)
            return;
        PolicyNumbers numbers;
        numbers.vocabulary = Tier::PinnedHost;
        for (const double share : {1.0, 0.75, 0.5, 0.25, 0.0}) {
            numbers.weightsOnDevice = share;
            addOne(numbers);
        }
        numbers.buffers = 1;
        addOne(numbers);
    }

    void addOne(const PolicyNumbers& numbers)
    {
        m_trials.push_back({PolicyId::Streamed, filledUp(m_setup.numbers, numbers), m_recompute});
    }

    void addShares(double weightsOnDevice, std::optional<Tier> boundary)
    {
        PolicyNumbers numbers;
        numbers.weightsOnDevice = weightsOnDevice;
        numbers.boundary = boundary;
        addOne(numbers);
        if (!m_ratesKnown || m_setup.numbers.deviceShare || isMostlyRead(m_setup.spec))
            return;
        numbers.deviceShare = kBalanced;
        for (const double late : {1.0, 0.0}) {
            numbers.late = late;
            addOne(numbers);
        }
    }

    // Activations that the link brings sooner than they are made.
    void addKept()
    {
        if (!m_ratesKnown || m_setup.numbers.activationsOnHost || m_setup.shape.codesInputs())
            return;
        for (const double kept : {1.0, 0.5})
            for (const double share : {1.0, 0.0}) {
                PolicyNumbers numbers;
                numbers.weightsOnDevice = share;
                numbers.activationsOnHost = kept;
                addOne(numbers);
            }
    }

    const RunSetup& m_setup;
    const bool m_ratesKnown;
    Recompute m_recompute = Recompute::Block;
    std::vector<PolicyTrial>& m_trials;
};

// Windows with state that does not all fit the host; those that fit are tried already.
void addWindowsOnDisk(const RunSetup& setup, std::vector<PolicyTrial>& trials)
{
    std::vector<PolicyTrial> windows;
    for (const PolicyInfo& policy : policyTable())
        if (policy.hasWindows)
            addTrials(setup, policy, true, Recompute::Block, windows);
    for (const PolicyTrial& trial : windows) {
        PolicyTrial onDisk = fittedToHost(setup, trial);
        if (onDisk.numbers != trial.numbers)
            trials.push_back(std::move(onDisk));
    }
}

// Policies that `auto` tries whole; those that stream or need the disk have trials of their own.
// All but the first two are compared by time alone.
std::vector<const PolicyInfo*> candidates(const RunSetup& setup, bool ratesKnown)
{
    if (!isAuto(setup.spec))
        return {findPolicy(setup.spec.policy)};
    std::vector<const PolicyInfo*> exact;
    std::vector<const PolicyInfo*> stale;
    for (const PolicyInfo& policy : policyTable()) {
        if (!doesTrain(policy, setup.spec, setup.shape))
            continue;
        const bool needsRates = policy.isBalanced || policy.hasWindows;
        if (policy.streams || policy.usesDisk || (needsRates && !ratesKnown))
            continue;
        if (policy.exact)
            exact.push_back(&policy);
        else if (setup.spec.allowStale)
            stale.push_back(&policy);
    }
    exact.insert(exact.end(), stale.begin(), stale.end());
    return exact;
}

} // namespace

std::int64_t smallTile(const ModelShape& shape) noexcept
{
    std::int64_t largest = 0;
    for (std::size_t g = 1; g + 1 < shape.groups.size(); ++g)
        largest = std::max({largest, shape.groups[g].elements, shape.groups[g].frozenElements});
    return std::clamp(largest / 8, kCutElements, kTileElements) / kCutElements * kCutElements;
}

std::vector<Recompute> keepingTrials(const RunSetup& setup, bool ratesKnown)
{
    const RecomputeChoice asked = setup.spec.recompute;
    std::vector<Recompute> tried;
    for (const Recompute how : {Recompute::None, Recompute::Cheap})
        if (isAllowed(how, asked) && (ratesKnown || asked != RecomputeChoice::Auto))
            tried.push_back(how);
    return tried;
}

std::vector<PolicyTrial> trialsOf(const RunSetup& setup, bool ratesKnown)
{
    const RunSpec& spec = setup.spec;
    std::vector<PolicyTrial> trials;
    for (const PolicyInfo* policy : candidates(setup, ratesKnown))
        for (const Recompute how : kRecomputeKinds)
            if (isAllowed(how, spec.recompute))
                addTrials(setup, *policy, ratesKnown, how, trials);
    if (isAuto(spec))
        StreamTrials(setup, ratesKnown, trials).add();
    // Only the frozen weights are large enough for the disk there.
    const bool mayRead = isMostlyRead(spec) && setup.readsOwnFiles;
    if (isAuto(spec) && (mayRead || !spec.diskPaths.empty())) {
        std::vector<PolicyTrial> onDisk = diskTrials(setup, ratesKnown);
        std::move(onDisk.begin(), onDisk.end(), std::back_inserter(trials));
        if (spec.allowStale && ratesKnown && !setup.shape.hasFrozen() &&
            isAllowed(Recompute::Block, spec.recompute))
            addWindowsOnDisk(setup, trials);
    }
    const PolicyInfo* asked = findPolicy(spec.policy);
    if (takesDisk(spec) || (asked != nullptr && asked->usesDisk))
        for (PolicyTrial& trial : trials)
            trial = fittedToHost(setup, trial);
    return trials;
}

} // namespace mr
