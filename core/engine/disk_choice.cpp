#include "core/engine/disk_choice.h"

#include <algorithm>
#include <array>

namespace mr {
namespace {

using Options = std::map<std::string, std::string>;

constexpr int kParts = 64; // a share is tried in these

std::string shareText(int parts)
{
    return std::to_string(static_cast<double>(parts) / kParts);
}

// Does it fit host memory? Nothing of an allocation is tried.
bool fitsHost(const RunSetup& setup, const Options& options)
{
    auto policy = makePolicy(kDiskPolicy, options);
    if (!policy.ok())
        return false;
    StepSpec step = setup.step;
    step.recompute = true;
    auto memory = planMemory(step, setup.shape, setup.budget, setup.rates, policy.value());
    return memory.ok() && memory.value().bytes(Tier::PinnedHost) <= setup.budget.hostBytes;
}

// The smallest share of `what` that fits, where all of it does. More on disk needs less memory.
int smallestShare(const RunSetup& setup, Options options, const std::string& what)
{
    int fits = kParts;
    for (int low = 0; low < fits;) {
        const int middle = (low + fits) / 2;
        options[what] = shareText(middle);
        if (fitsHost(setup, options))
            fits = middle;
        else
            low = middle + 1;
    }
    return fits;
}

// In the order in which they come back to memory.
constexpr std::array<const char*, 4> kShares = {
    "weights-on-disk", "gradients-on-disk", "boundaries-on-disk", "disk-share"};

// Where boundaries stay on the device, none pass through the host.
bool savesBoundaries(const Options& options)
{
    const auto home = options.find("boundary");
    return home == options.end() || home->second == "host";
}

Options fitted(const RunSetup& setup, Options options)
{
    const Options said = options;
    const auto most = said.find("disk-share"); // but of boundaries
    for (const char* share : {"weights-on-disk", "gradients-on-disk", "disk-share"})
        options.insert({share, most == said.end() ? "1" : most->second});
    if (savesBoundaries(options))
        options.insert({"boundaries-on-disk", "1"});
    if (!fitsHost(setup, options))
        return options;
    for (const char* share : kShares) {
        if (said.count(share) > 0 || options.count(share) == 0)
            continue;
        const int parts = smallestShare(setup, options, share);
        options[share] = shareText(parts);
        if (parts > 0)
            break;
    }
    return options;
}

} // namespace

PolicyTrial fittedToHost(const RunSetup& setup, const PolicyTrial& asked)
{
    if (fitsHost(setup, asked.options))
        return asked;
    return {asked.policy, fitted(setup, asked.options), asked.recompute};
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
        trials.push_back({std::string(kDiskPolicy), fitted(setup, std::move(options)), true});
    }
    return trials;
}

} // namespace mr
