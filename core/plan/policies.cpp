#include "core/plan/policies.h"

#include "core/plan/placement.h"
#include "core/plan/router.h"
#include "core/plan/traversal.h"
#include "core/plan/update_clock.h"

#include <algorithm>
#include <array>

namespace mr {

namespace {

// One row of ARCHITECTURE section 4: a policy is its four answers.
struct PolicyRow {
    std::string_view name;
    WorkOrder order;
    GroupPlacement placement;
    GradientSplit split;
    UpdateRule rule;
};

constexpr GroupPlacement kAllOnDevice = {Tier::Device, Tier::Device, Tier::Device, 1.0};
constexpr GroupPlacement kStateOnHost = {Tier::Device, Tier::PinnedHost, Tier::Device, 0.0};

constexpr std::array<PolicyRow, 2> kRows = {{
    {"resident", WorkOrder::ByMicroBatch, kAllOnDevice, {}, {}},
    {"zero-offload", WorkOrder::ByMicroBatch, kStateOnHost, {}, {}},
}};

struct OptionOwner {
    std::string_view option;
    std::string_view policies;
};

// Options of policies that are known and not built.
constexpr std::array<OptionOwner, 11> kOtherOptions = {{
    {"urgent", "zenflow"},
    {"interval", "zenflow"},
    {"warmup", "zenflow"},
    {"select", "zenflow"},
    {"device-share", "deep-optimizer-states and streamed"},
    {"late", "streamed and ssd-vertical"},
    {"disk-share", "ssd-vertical"},
    {"state", "policies that keep compact state"},
    {"verify", "ssd-vertical"},
    {"accumulate-on", "policies that accumulate on the host"},
    {"tile", "policies that stream state"},
}};

std::string builtNames()
{
    std::string names;
    for (const PolicyInfo& info : policyTable()) {
        if (info.built)
            names += (names.empty() ? "" : ", ") + std::string(info.name);
    }
    return names;
}

Status refusePolicy(std::string_view policy)
{
    const auto& table = policyTable();
    const bool known = std::any_of(
        table.begin(), table.end(), [&](const PolicyInfo& info) { return info.name == policy; });
    return Status::error(ErrorKind::InvalidArgument,
        "policy '" + std::string(policy) + "' is " +
            (known ? "not built in this version" : "not known") + "; use " + builtNames());
}

Status refuseOption(std::string_view policy, const std::string& option)
{
    std::string why = "is not known";
    for (const OptionOwner& owner : kOtherOptions) {
        if (owner.option == option)
            why = "belongs to " + std::string(owner.policies) + ", not built in this version";
    }
    return Status::error(ErrorKind::InvalidArgument,
        "policy option '" + option + "' " + why + "; '" + std::string(policy) + "' takes order");
}

} // namespace

Result<OffloadPolicy> makePolicy(
    std::string_view name, const std::map<std::string, std::string>& options)
{
    const auto row = std::find_if(
        kRows.begin(), kRows.end(), [&](const PolicyRow& r) { return r.name == name; });
    if (row == kRows.end())
        return refusePolicy(name);
    WorkOrder order = row->order;
    for (const auto& [option, value] : options) {
        if (option != "order")
            return refuseOption(name, option);
        Result<WorkOrder> parsed = parseWorkOrder(value);
        MR_TRY(parsed.status());
        order = parsed.value();
    }
    OffloadPolicy policy;
    policy.name = row->name;
    policy.traversal = makeTraversal(order);
    policy.placement = makeUniformPlacement(row->placement);
    policy.router = makeUniformRouter(row->split);
    policy.clock = makeUniformClock(row->rule);
    return policy;
}

const std::vector<PolicyInfo>& policyTable()
{
    static const std::vector<PolicyInfo> table = {
        {"resident", true, true},
        {"zero-offload", true, true},
        {"zero-offload-dpu", false, false},
        {"deep-optimizer-states", false, true},
        {"zenflow", false, false},
        {"streamed", false, true},
        {"ssd-vertical", false, true},
    };
    return table;
}

} // namespace mr
