#include "core/engine/disk_choice.h"

#include <algorithm>
#include <array>
#include <string>
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

// The smallest share of `what` that fits, where all of it does. More on disk needs less memory.
int smallestShare(const RunSetup& setup, PolicyTrial trial, const std::string& what)
{
    int fits = kParts;
    for (int low = 0; low < fits;) {
        const int middle = (low + fits) / 2;
        trial.options[what] = shareText(middle);
        if (fitsHost(setup, trial))
            fits = middle;
        else
            low = middle + 1;
    }
    return fits;
}

// Of those that the policy takes, in the order in which they come back to memory.
std::vector<std::string> sharesOf(const std::string& policy)
{
    std::vector<std::string> shares;
    for (const char* share : {"weights-on-disk", "gradients-on-disk", "disk-share"})
        if (makePolicy(policy, {{share, "0"}}).ok())
            shares.emplace_back(share);
    return shares;
}

PolicyTrial fitted(const RunSetup& setup, PolicyTrial trial)
{
    const Options said = trial.options;
    const auto most = said.find("disk-share");
    const std::vector<std::string> shares = sharesOf(trial.policy);
    for (const std::string& share : shares)
        trial.options.insert({share, most == said.end() ? "1" : most->second});
    if (!fitsHost(setup, trial))
        return trial;
    for (const std::string& share : shares) {
        if (said.count(share) > 0)
            continue;
        const int parts = smallestShare(setup, trial, share);
        trial.options[share] = shareText(parts);
        if (parts > 0)
            break;
    }
    return trial;
}

} // namespace

bool takesDisk(const RunSpec& spec)
{
    return !spec.diskPath.empty() && makePolicy(spec.policy, {{"disk-share", "0"}}).ok();
}

PolicyTrial fittedToHost(const RunSetup& setup, const PolicyTrial& asked)
{
    return fitsHost(setup, asked) ? asked : fitted(setup, asked);
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
