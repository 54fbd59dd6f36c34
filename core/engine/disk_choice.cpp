#include "core/engine/disk_choice.h"

#include <algorithm>
#include <array>
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

// Do updates follow their gradients? Then those of what is not late are never on disk.
bool followGradients(const RunSetup& setup, const Options& options)
{
    auto policy = makePolicy(kDiskPolicy, options);
    return policy.ok() && updatesFollowGradients(policy.value(), setup.step, false);
}

// Shares that are set together.
using Shares = std::vector<std::string>;

void setTo(Options& options, const Shares& shares, int parts)
{
    for (const std::string& share : shares)
        options[share] = shareText(parts);
}

// The smallest share of `what` that fits, where all of it does. More on disk needs less memory.
int smallestShare(const RunSetup& setup, Options options, const Shares& what)
{
    int fits = kParts;
    for (int low = 0; low < fits;) {
        const int middle = (low + fits) / 2;
        setTo(options, what, middle);
        if (fitsHost(setup, options))
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

Options fitted(const RunSetup& setup, Options options)
{
    const Options said = options;
    const auto most = said.find(kState); // but of boundaries
    for (const std::string& share : {kWeights, kGradients, kState})
        options.insert({share, most == said.end() ? "1" : most->second});
    if (savesBoundaries(options))
        options.insert({kBoundaries, "1"});
    if (!fitsHost(setup, options))
        return options;
    for (const Shares& shares : inOrder(said, options, followGradients(setup, options))) {
        const int parts = smallestShare(setup, options, shares);
        setTo(options, shares, parts);
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
        trials.push_back({std::string(kDiskPolicy), fitted(setup, std::move(options)), true});
    }
    return trials;
}

} // namespace mr
