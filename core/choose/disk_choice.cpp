#include "core/choose/disk_choice.h"

#include "core/choose/policy_trials.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace mr {
namespace {

constexpr int kParts = 64; // a share is tried in these

// Does it fit host memory? Nothing of an allocation is tried.
bool fitsHost(const RunSetup& setup, const PolicyTrial& trial)
{
    auto policy = makePolicy(trial.policy, trial.numbers);
    if (!policy.ok())
        return false;
    StepSpec step = setup.step;
    step.recompute = trial.recompute;
    auto memory = runMemory(setup, step, policy.value());
    return memory.ok() && memory.value().bytes(Tier::PinnedHost) <= setup.budget.hostBytes;
}

// Do updates follow their gradients? Then gradients that are not late are never on disk.
bool followGradients(const RunSetup& setup, const PolicyTrial& trial)
{
    auto policy = makePolicy(trial.policy, trial.numbers);
    return policyInfo(trial.policy).usesDisk && policy.ok() &&
           updatesFollowGradients(policy.value(), setup.step, false);
}

// Shares that are set together.
using Share = std::optional<double> PolicyNumbers::*;
using Shares = std::vector<Share>;

constexpr Share kWeightsShare = &PolicyNumbers::weightsOnDisk;
constexpr Share kGradientsShare = &PolicyNumbers::gradientsOnDisk;
constexpr Share kBoundariesShare = &PolicyNumbers::boundariesOnDisk;
constexpr Share kStateShare = &PolicyNumbers::diskShare;

void setTo(PolicyNumbers& numbers, const Shares& shares, int parts)
{
    for (const Share share : shares)
        numbers.*share = static_cast<double>(parts) / kParts;
}

// The smallest share of `what` that fits, where all of it does. More on disk needs less memory.
int smallestShare(const RunSetup& setup, PolicyTrial trial, const Shares& what)
{
    int fits = kParts;
    for (int low = 0; low < fits;) {
        const int middle = (low + fits) / 2;
        setTo(trial.numbers, what, middle);
        if (fitsHost(setup, trial))
            fits = middle;
        else
            low = middle + 1;
    }
    return fits;
}

// All that the policy takes and nobody has said is on disk; boundaries are apart from the rest.
// Where most of the model is only read these are frozen weights, which are read alone: writing
// boundaries to keep some of them in memory would wear the drive.
void putAllOnDisk(PolicyTrial& trial, bool isRead)
{
    const PolicyInfo& policy = policyInfo(trial.policy);
    PolicyNumbers all;
    const double most = trial.numbers.diskShare.value_or(1.0);
    if (policy.doesTake(kAllDisk))
        all.weightsOnDisk = most;
    if (policy.doesTake(kDisk) && !isRead)
        all.diskShare = most;
    if (policy.doesTake(kAllDisk) && !isRead) {
        all.gradientsOnDisk = most;
        // Where boundaries stay on the device, none pass through the host.
        if (trial.numbers.boundary != Tier::Device)
            all.boundariesOnDisk = 1.0;
    }
    trial.numbers = filledUp(std::move(trial.numbers), all);
}

// Shares in the order in which they come back to memory, without those the user gave.
std::vector<Shares> inOrder(const PolicyNumbers& said, const PolicyNumbers& numbers, bool follow)
{
    const std::vector<Shares> all = follow && !said.diskShare
                                        ? std::vector<Shares>{{kWeightsShare},
                                              {kStateShare, kGradientsShare}, {kBoundariesShare}}
                                        : std::vector<Shares>{{kWeightsShare}, {kGradientsShare},
                                              {kBoundariesShare}, {kStateShare}};
    std::vector<Shares> order;
    for (Shares shares : all) {
        std::erase_if(
            shares, [&](Share share) { return (said.*share).has_value() || !(numbers.*share); });
        if (!shares.empty())
            order.push_back(std::move(shares));
    }
    return order;
}

PolicyTrial fitted(const RunSetup& setup, PolicyTrial trial)
{
    const PolicyNumbers said = trial.numbers;
    putAllOnDisk(trial, isMostlyRead(setup.spec));
    if (!fitsHost(setup, trial))
        return trial;
    for (const Shares& shares : inOrder(said, trial.numbers, followGradients(setup, trial))) {
        const int parts = smallestShare(setup, trial, shares);
        setTo(trial.numbers, shares, parts);
        if (parts > 0)
            break;
    }
    return trial;
}

std::vector<PolicyNumbers> partsOnDevice(std::optional<Tier> boundary)
{
    std::vector<PolicyNumbers> parts;
    for (const double share : {0.75, 0.5, 0.25, 0.0}) {
        parts.emplace_back().weightsOnDevice = share;
        parts.back().boundary = boundary;
    }
    return parts;
}

} // namespace

bool takesDisk(const RunSpec& spec)
{
    const PolicyInfo* policy = findPolicy(spec.policy);
    return !spec.diskPaths.empty() && policy != nullptr && policy->doesTake(kDisk);
}

PolicyTrial fittedToHost(const RunSetup& setup, const PolicyTrial& asked)
{
    return fitsHost(setup, asked) ? asked : fitted(setup, asked);
}

std::vector<PolicyTrial> lateTrials(const RunSetup& setup, const PolicyNumbers& said)
{
    const bool isOpen = policyInfo(setup.policy.id).usesDisk && !said.late &&
                        !isMostlyRead(setup.spec) && !isLight(setup.spec.optimizer);
    if (!isOpen || !setup.forecast.known)
        return {};
    const bool follow = updatesFollowGradients(setup.policy, setup.step, false);
    // Late gradients may have to go to the disk where the others need not; with one norm for all, a
    // late share saves reads.
    const std::vector<double> shares =
        follow ? std::vector{0.0, 0.1, 0.25, 0.5} : std::vector{0.25, 0.0, 0.1, 0.5, 1.0};
    std::vector<PolicyTrial> trials;
    for (const double late : shares) {
        trials.push_back({setup.policy.id, setup.numbers, setup.step.recompute});
        trials.back().numbers.late = late;
    }
    return trials;
}

std::vector<PolicyTrial> diskTrials(const RunSetup& setup, bool ratesKnown)
{
    std::array<PolicyNumbers, 4> shapes;
    shapes[0].weightsOnDevice = 1.0;
    shapes[0].boundary = Tier::Device;
    shapes[2].buffers = shapes[3].buffers = 1;
    shapes[3].tileElements = smallTile(setup.shape);
    std::vector<PolicyTrial> trials;
    const auto add = [&](const PolicyNumbers& shape, Recompute how) { // options of the user hold
        trials.push_back(
            fitted(setup, {PolicyId::SsdVertical, filledUp(setup.numbers, shape), how}));
    };
    PolicyNumbers streams = shapes[0];
    streams.weightsOnDevice.reset();
    std::vector<PolicyNumbers> keeping = {shapes[0], streams};
    if (isMostlyRead(setup.spec)) // no state has to go with the weights
        keeping = partsOnDevice(Tier::Device);
    for (const Recompute how : keepingTrials(setup, ratesKnown))
        for (const PolicyNumbers& shape : keeping)
            add(shape, how);
    if (isMostlyRead(setup.spec) && isAllowed(Recompute::Block, setup.spec.recompute))
        for (const auto boundary : {std::optional(Tier::Device), std::optional<Tier>()})
            for (const PolicyNumbers& shape : partsOnDevice(boundary))
                add(shape, Recompute::Block);
    if (isAllowed(Recompute::Block, setup.spec.recompute))
        for (const PolicyNumbers& shape : shapes)
            add(shape, Recompute::Block);
    return trials;
}

} // namespace mr
