#include "core/plan/policies.h"

#include "core/plan/policy_options.h"
#include "core/plan/router.h"

#include <algorithm>
#include <array>

namespace mr {

namespace {

// One row of core/architecture.md section 4: a policy is its four answers.
struct PolicyRow {
    std::string_view name;
    WorkOrder order;
    GroupPlacement placement;
    double urgentShare;
    WindowRule window; // of policies that work in windows
    double lateShare;
    unsigned takes; // options, by Takes
};

constexpr GroupPlacement kAllOnDevice = {Tier::Device, Tier::Device, Tier::Device, 1.0};
constexpr GroupPlacement kAllOnHost = {Tier::PinnedHost, Tier::PinnedHost, Tier::PinnedHost, 0.0};
constexpr GroupPlacement kAllOnDisk = {
    Tier::PinnedHost, Tier::PinnedHost, Tier::PinnedHost, 0.0, 1.0};
constexpr GroupPlacement kStateOnHost = {Tier::Device, Tier::PinnedHost, Tier::Device, 0.0};
constexpr GroupPlacement kStateShared = {Tier::Device, Tier::PinnedHost, Tier::Device, kBalanced};
// Warm-up: 40 synchronous steps before ZeRO-Offload's delayed update (its paper, section 4.3), 8
// before ZenFlow's first choice of columns. Columns are chosen again every 256 steps: the window
// before that is closed synchronously.
constexpr WindowRule kDelayedUpdate = {1, 40, 0, true};
constexpr WindowRule kZenFlow = {4, 8, 256, true};

constexpr std::array<PolicyRow, 7> kRows = {{
    {"resident", WorkOrder::ByMicroBatch, kAllOnDevice, 0.0, {}, 0.0, kOrder},
    {"zero-offload", WorkOrder::ByMicroBatch, kStateOnHost, 0.0, {}, 0.0, kOrder | kTile | kLate},
    {"zero-offload-dpu", WorkOrder::ByMicroBatch, kStateOnHost, 0.0, kDelayedUpdate, 0.0,
        kOrder | kTile | kWarmup | kDisk},
    {"deep-optimizer-states", WorkOrder::ByMicroBatch, kStateShared, 0.0, {}, 0.0,
        kOrder | kTile | kLate | kDeviceShare},
    {"zenflow", WorkOrder::ByMicroBatch, kStateOnHost, 0.1, kZenFlow, 0.0,
        kOrder | kTile | kWarmup | kColumns | kDisk},
    {"streamed", WorkOrder::ByLayer, kAllOnHost, 0.0, {}, 1.0,
        kOrder | kTile | kLate | kDeviceShare | kHomes},
    {"ssd-vertical", WorkOrder::ByLayer, kAllOnDisk, 0.0, {}, 0.25,
        kOrder | kTile | kLate | kDeviceShare | kHomes | kDisk | kAllDisk},
}};

std::string knownNames()
{
    std::string names;
    for (const PolicyInfo& info : policyTable())
        names += (names.empty() ? "" : ", ") + std::string(info.name);
    return names;
}

Status refusePolicy(std::string_view policy)
{
    return Status::error(ErrorKind::InvalidArgument,
        "policy '" + std::string(policy) + "' is not known; use " + knownNames());
}

std::unique_ptr<const Placement> placementOf(const PolicyRow& row, const PolicyNumbers& numbers)
{
    if ((row.takes & kHomes) != 0) {
        StreamedHomes homes = numbers.homes;
        homes.deviceShare = numbers.deviceShare;
        homes.diskShare = numbers.diskShare;
        return makeStreamedPlacement(homes);
    }
    if ((row.takes & kDeviceShare) == 0) {
        GroupPlacement home = row.placement;
        home.diskShare = numbers.diskShare;
        return makeUniformPlacement(home);
    }
    return numbers.deviceShare == kBalanced ? makeBalancedPlacement()
                                            : makeSharePlacement(numbers.deviceShare);
}

// What the magnitude rule compares must be there when it is asked.
Status checkMagnitude(
    const PolicyNumbers& numbers, const std::map<std::string, std::string>& options)
{
    if (!numbers.intervalByMagnitude)
        return {};
    const std::string option = "policy option interval=magnitude: ";
    if (options.count("energy") > 0 && numbers.columnEnergy == ColumnEnergy::Squares)
        return Status::error(ErrorKind::InvalidArgument,
            option + "compares means of |g|, and energy=l2 keeps sums of squares; leave energy "
                     "away or write energy=l1");
    if (numbers.window.warmup < 1)
        return Status::error(ErrorKind::InvalidArgument,
            option + "is chosen by the gradients of the warm-up; want warmup=1 or more");
    if (numbers.urgentShare <= 0.0 || numbers.urgentShare >= 1.0)
        return Status::error(ErrorKind::InvalidArgument,
            option + "compares urgent columns with the others; want urgent above 0 and below 1");
    return {};
}

} // namespace

Result<OffloadPolicy> makePolicy(
    std::string_view name, const std::map<std::string, std::string>& options)
{
    const auto row = std::find_if(
        kRows.begin(), kRows.end(), [&](const PolicyRow& r) { return r.name == name; });
    if (row == kRows.end())
        return refusePolicy(name);
    PolicyNumbers numbers;
    numbers.order = row->order;
    numbers.urgentShare = row->urgentShare;
    numbers.window = row->window;
    numbers.lateShare = row->lateShare;
    numbers.deviceShare = row->placement.deviceShare;
    numbers.diskShare = row->placement.diskShare;
    for (const auto& [option, value] : options)
        MR_TRY(applyOption({row->name, row->takes}, option, value, numbers));
    if (numbers.homes.stateOnDevice > numbers.homes.weightsOnDevice)
        return Status::error(ErrorKind::InvalidArgument,
            "policy option state-on-device: state stays only where weights stay; make "
            "weights-on-device as large");
    if (std::max(numbers.homes.weightsOnDisk, numbers.homes.gradientsOnDisk) > numbers.diskShare)
        return Status::error(ErrorKind::InvalidArgument,
            "policy options weights-on-disk and gradients-on-disk: both live on disk only where "
            "state does; make disk-share as large");
    if (numbers.homes.boundary == Tier::Device && numbers.homes.boundariesOnDisk > 0.0)
        return Status::error(ErrorKind::InvalidArgument,
            "policy option boundaries-on-disk: they come from the host; write boundary=host");
    MR_TRY(checkMagnitude(numbers, options));
    OffloadPolicy policy;
    policy.name = row->name;
    policy.traversal = makeTraversal(numbers.order);
    policy.placement = placementOf(*row, numbers);
    const bool windows = (row->takes & kWarmup) != 0;
    const bool columns = (row->takes & kColumns) != 0;
    if (numbers.urgentShare == 0.0 || numbers.urgentShare == 1.0)
        numbers.window.select = 0; // nothing to choose
    policy.router =
        columns ? makeColumnRouter(numbers.urgentShare, numbers.window) : makeUniformRouter({});
    policy.clock = windows ? makeWindowClock(numbers.window)
                           : makeUniformClock({numbers.lateShare, 1, 0, false});
    policy.tileElements = numbers.tileElements;
    policy.turns = numbers.turns;
    policy.hostClock = numbers.hostClock;
    policy.hostLearningRate = numbers.hostLearningRate;
    policy.columnEnergy =
        numbers.intervalByMagnitude ? ColumnEnergy::Absolutes : numbers.columnEnergy;
    policy.intervalByMagnitude = numbers.intervalByMagnitude;
    policy.windowSums = numbers.windowSums;
    policy.stateCodec = numbers.stateCodec;
    policy.clipMode = numbers.clipMode;
    return policy;
}

const std::vector<PolicyInfo>& policyTable()
{
    static const std::vector<PolicyInfo> table = {
        {"resident", true},
        {"zero-offload", true},
        {"zero-offload-dpu", false},
        {"deep-optimizer-states", true},
        {"zenflow", false},
        {"streamed", true},
        {"ssd-vertical", true},
    };
    return table;
}

} // namespace mr
