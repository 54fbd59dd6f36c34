#include "core/engine/disk_choice.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace mr {
namespace {

using Options = std::map<std::string, std::string>;

constexpr int kParts = 64; // a share is tried in these

std::string shareText(int parts)
{
    return std::to_string(static_cast<double>(parts) / kParts);
}

// Does it fit host memory? Nothing of an allocation is tried.
bool fitsHost(const RunSetup& setup, const PolicyTrial& trial)
{
    auto policy = makePolicy(trial.policy, trial.options);
    if (!policy.ok())
        return false;
    StepSpec step = setup.step;
    step.recompute = trial.recompute;
    auto memory = planMemory(step, setup.shape, setup.budget, setup.rates, policy.value());
    return memory.ok() && memory.value().bytes(Tier::PinnedHost) <= setup.budget.hostBytes;
}

// Do updates follow their gradients? Then those of what is not late are never on disk.
bool followGradients(const RunSetup& setup, const PolicyTrial& trial)
{
    auto policy = makePolicy(trial.policy, trial.options);
    return trial.policy == kDiskPolicy && policy.ok() &&
           updatesFollowGradients(policy.value(), setup.step, false);
}

// Shares that are set together.
using Shares = std::vector<std::string>;

void setTo(Options& options, const Shares& shares, int parts)
{
    for (const std::string& share : shares)
        options[share] = shareText(parts);
}

// The smallest share of `what` that fits, where all of it does. More on disk needs less memory.
int smallestShare(const RunSetup& setup, PolicyTrial trial, const Shares& what)
{
    int fits = kParts;
    for (int low = 0; low < fits;) {
        const int middle = (low + fits) / 2;
        setTo(trial.options, what, middle);
        if (fitsHost(setup, trial))
            fits = middle;
        else
            low = middle + 1;
    }
    return fits;
}

const std::string kWeights = "weights-on-disk";
const std::string kGradients = "gradients-on-disk";
const std::string kBoundaries = "boundaries-on-disk";
const std::string kState = "disk-share";

// Where boundaries stay on the device, none pass through the host.
bool savesBoundaries(const Options& options)
{
    const auto home = options.find("boundary");
    return home == options.end() || home->second == "host";
}

// All that the policy takes and nobody has said is on disk; boundaries are apart from the rest.
void putAllOnDisk(PolicyTrial& trial)
{
    const auto said = trial.options.find(kState);
    const std::string most = said == trial.options.end() ? "1" : said->second;
    for (const std::string& share : {kWeights, kGradients, kBoundaries, kState})
        if (makePolicy(trial.policy, {{share, "0"}}).ok() &&
            (share != kBoundaries || savesBoundaries(trial.options)))
            trial.options.insert({share, share == kBoundaries ? "1" : most});
}

// In the order in which they come back to memory, but for what was said.
std::vector<Shares> inOrder(const Options& said, const Options& options, bool follow)
{
    const std::vector<Shares> all =
        follow && said.count(kState) == 0
            ? std::vector<Shares>{{kWeights}, {kState, kGradients}, {kBoundaries}}
            : std::vector<Shares>{{kWeights}, {kGradients}, {kBoundaries}, {kState}};
    std::vector<Shares> order;
    for (Shares shares : all) {
        std::erase_if(shares, [&](const std::string& share) {
            return said.count(share) > 0 || options.count(share) == 0;
        });
        if (!shares.empty())
            order.push_back(std::move(shares));
    }
    return order;
}

PolicyTrial fitted(const RunSetup& setup, PolicyTrial trial)
{
    const Options said = trial.options;
    putAllOnDisk(trial);
    if (!fitsHost(setup, trial))
        return trial;
    for (const Shares& shares : inOrder(said, trial.options, followGradients(setup, trial))) {
        const int parts = smallestShare(setup, trial, shares);
        setTo(trial.options, shares, parts);
        if (parts > 0)
            break;
    }
    return trial;
}

} // namespace

bool takesDisk(const RunSpec& spec)
{
    return !spec.diskPaths.empty() && makePolicy(spec.policy, {{"disk-share", "0"}}).ok();
}

PolicyTrial fittedToHost(const RunSetup& setup, const PolicyTrial& asked)
{
    return fitsHost(setup, asked) ? asked : fitted(setup, asked);
}

std::vector<PolicyTrial> lateTrials(const RunSetup& setup, const Options& said)
{
    const RunSpec& spec = setup.spec;
    const bool isOpen = spec.policy == kDiskPolicy && said.count("late") == 0;
    if (!isOpen || !setup.forecast.known)
        return {};
    const bool follow = updatesFollowGradients(setup.policy, setup.step, false);
    // Late gradients may have to go to the disk where the others need not; with one norm for all, a
    // late share saves reads.
    const std::vector<const char*> shares = follow ? std::vector{"0", "0.1", "0.25", "0.5"}
                                                   : std::vector{"0.25", "0", "0.1", "0.5", "1"};
    std::vector<PolicyTrial> trials;
    for (const char* late : shares) {
        trials.push_back({spec.policy, spec.policyOptions, setup.step.recompute});
        trials.back().options["late"] = late;
    }
    return trials;
}

std::vector<PolicyTrial> diskTrials(const RunSetup& setup)
{
    const std::array<Options, 4> shapes = {{
        {{"weights-on-device", "1"}, {"boundary", "device"}},
        {},
        {{"turns", "1"}},
        {{"turns", "1"}, {"tile", smallTile(setup.shape)}},
    }};
    std::vector<PolicyTrial> trials;
    for (const Options& shape : shapes) {
        Options options = setup.spec.policyOptions; // what was said holds
        options.insert(shape.begin(), shape.end());
        trials.push_back(fitted(setup, {std::string(kDiskPolicy), std::move(options), true}));
    }
    return trials;
}

} // namespace mr
