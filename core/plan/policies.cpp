#include "core/plan/policies.h"

#include "core/plan/placement.h"
#include "core/plan/router.h"
#include "core/plan/traversal.h"
#include "core/plan/update_clock.h"

#include <millrace/run_spec.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace mr {

namespace {

// One row of ARCHITECTURE section 4: a policy is its four answers.
struct PolicyRow {
    std::string_view name;
    WorkOrder order;
    GroupPlacement placement;
    GradientSplit split;
    UpdateRule rule;
    unsigned takes; // options, by Takes
};

constexpr GroupPlacement kAllOnDevice = {Tier::Device, Tier::Device, Tier::Device, 1.0};
constexpr GroupPlacement kStateOnHost = {Tier::Device, Tier::PinnedHost, Tier::Device, 0.0};

// Which numbers of a row an option may change.
enum Takes : unsigned { kOrder = 1, kTile = 2, kLate = 4, kDeviceShare = 8 };

constexpr std::array<PolicyRow, 3> kRows = {{
    {"resident", WorkOrder::ByMicroBatch, kAllOnDevice, {}, {}, kOrder},
    {"zero-offload", WorkOrder::ByMicroBatch, kStateOnHost, {}, {}, kOrder | kTile | kLate},
    {"deep-optimizer-states", WorkOrder::ByMicroBatch, kStateOnHost, {}, {},
        kOrder | kTile | kLate | kDeviceShare},
}};

struct OptionOwner {
    std::string_view option;
    std::string_view policies;
};

// Options of policies that are known and not built.
constexpr std::array<OptionOwner, 8> kOtherOptions = {{
    {"urgent", "zenflow"},
    {"interval", "zenflow"},
    {"warmup", "zenflow"},
    {"select", "zenflow"},
    {"disk-share", "ssd-vertical"},
    {"state", "policies that keep compact state"},
    {"verify", "ssd-vertical"},
    {"accumulate-on", "policies that accumulate on the host"},
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

std::string namesOf(unsigned takes)
{
    std::string names = "order, clip-mode";
    if ((takes & kTile) != 0)
        names += ", tile";
    if ((takes & kLate) != 0)
        names += ", late";
    if ((takes & kDeviceShare) != 0)
        names += ", device-share";
    return names;
}

Status refuseOption(const PolicyRow& row, const std::string& option)
{
    std::string why = "is not known";
    for (const OptionOwner& owner : kOtherOptions) {
        if (owner.option == option)
            why = "belongs to " + std::string(owner.policies) + ", not built in this version";
    }
    if (option == "late" || option == "device-share" || option == "tile")
        why = "is not of this policy";
    return Status::error(ErrorKind::InvalidArgument, "policy option '" + option + "' " + why +
                                                         "; '" + std::string(row.name) +
                                                         "' takes " + namesOf(row.takes));
}

Result<double> parseShare(const std::string& option, const std::string& value)
{
    double share = -1.0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), share);
    if (error == std::errc() && end == value.data() + value.size() && share >= 0.0 && share <= 1.0)
        return share;
    return Status::error(ErrorKind::InvalidArgument,
        "policy option " + option + "=" + value + ": want a share from 0 to 1" +
            (option == "device-share" ? ", or auto" : ""));
}

// Bytes of one upload in BF16.
Status parseTile(const std::string& value, std::int64_t& elements)
{
    Result<std::uint64_t> bytes = parseBytes(value);
    MR_TRY(bytes.status());
    constexpr std::uint64_t kLeast = 2 * kCutElements;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 34;
    if (bytes.value() < kLeast || bytes.value() > kMost)
        return Status::error(ErrorKind::InvalidArgument,
            "policy option tile=" + value + ": want 2KiB to 16GiB, for instance 64MiB");
    elements = static_cast<std::int64_t>(bytes.value() / kLeast) * kCutElements;
    return {};
}

Status checkClipMode(const std::string& value)
{
    if (value == "exact")
        return {};
    const bool known = value == "previous-norm" || value == "per-group";
    return Status::error(ErrorKind::InvalidArgument,
        "policy option clip-mode=" + value + " is " +
            (known ? "not built in this version" : "not known") + "; use clip-mode=exact");
}

constexpr double kBalanced = -1.0; // the share follows from measured rates

// The numbers of one policy, after its options.
struct Numbers {
    WorkOrder order{};
    UpdateRule rule;
    double deviceShare = kBalanced;
    std::int64_t tileElements = kTileElements;
};

Status applyOption(
    const PolicyRow& row, const std::string& option, const std::string& value, Numbers& numbers)
{
    if (option == "order") {
        Result<WorkOrder> parsed = parseWorkOrder(value);
        MR_TRY(parsed.status());
        numbers.order = parsed.value();
        return {};
    }
    if (option == "tile" && (row.takes & kTile) != 0)
        return parseTile(value, numbers.tileElements);
    if (option == "clip-mode")
        return checkClipMode(value);
    const bool late = option == "late" && (row.takes & kLate) != 0;
    const bool share = option == "device-share" && (row.takes & kDeviceShare) != 0;
    if (!late && !share)
        return refuseOption(row, option);
    if (share && value == "auto") {
        numbers.deviceShare = kBalanced;
        return {};
    }
    Result<double> parsed = parseShare(option, value);
    MR_TRY(parsed.status());
    if (late)
        numbers.rule.lateShare = parsed.value();
    else
        numbers.deviceShare = parsed.value();
    return {};
}

std::unique_ptr<const Placement> placementOf(const PolicyRow& row, const Numbers& numbers)
{
    if ((row.takes & kDeviceShare) == 0)
        return makeUniformPlacement(row.placement);
    return numbers.deviceShare == kBalanced ? makeBalancedPlacement()
                                            : makeSharePlacement(numbers.deviceShare);
}

} // namespace

Result<OffloadPolicy> makePolicy(
    std::string_view name, const std::map<std::string, std::string>& options)
{
    const auto row = std::find_if(
        kRows.begin(), kRows.end(), [&](const PolicyRow& r) { return r.name == name; });
    if (row == kRows.end())
        return refusePolicy(name);
    Numbers numbers;
    numbers.order = row->order;
    numbers.rule = row->rule;
    for (const auto& [option, value] : options)
        MR_TRY(applyOption(*row, option, value, numbers));
    OffloadPolicy policy;
    policy.name = row->name;
    policy.traversal = makeTraversal(numbers.order);
    policy.placement = placementOf(*row, numbers);
    policy.router = makeUniformRouter(row->split);
    policy.clock = makeUniformClock(numbers.rule);
    policy.tileElements = numbers.tileElements;
    return policy;
}

const std::vector<PolicyInfo>& policyTable()
{
    static const std::vector<PolicyInfo> table = {
        {"resident", true, true},
        {"zero-offload", true, true},
        {"zero-offload-dpu", false, false},
        {"deep-optimizer-states", true, true},
        {"zenflow", false, false},
        {"streamed", false, true},
        {"ssd-vertical", false, true},
    };
    return table;
}

} // namespace mr
