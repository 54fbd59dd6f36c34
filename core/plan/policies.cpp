#include "core/plan/policies.h"

#include "core/plan/placement.h"
#include "core/plan/router.h"
#include "core/plan/update_clock.h"

#include <algorithm>
#include <array>

namespace mr {

namespace {

// One row of core/architecture.md section 4: a policy is its four answers.
struct PolicyRow {
    PolicyId id;
    std::string_view name;
    std::string_view plainName;
    bool exact;
    WorkOrder order;
    GroupPlacement placement;
    double urgentShare;
    WindowRule window; // for policies that work in windows
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
    {PolicyId::Resident, "resident", "all on the card", true, WorkOrder::ByMicroBatch, kAllOnDevice,
        0.0, {}, 0.0, kAll},
    {PolicyId::ZeroOffload, "zero-offload", "state in RAM", true, WorkOrder::ByMicroBatch,
        kStateOnHost, 0.0, {}, 0.0, kTile | kLate},
    {PolicyId::ZeroOffloadDpu, "zero-offload-dpu", "state in RAM, late by one step", false,
        WorkOrder::ByMicroBatch, kStateOnHost, 0.0, kDelayedUpdate, 0.0, kTile | kWarmup | kDisk},
    {PolicyId::DeepOptimizerStates, "deep-optimizer-states", "state shared", true,
        WorkOrder::ByMicroBatch, kStateShared, 0.0, {}, 0.0, kTile | kLate | kDeviceShare},
    {PolicyId::ZenFlow, "zenflow", "hot columns first", false, WorkOrder::ByMicroBatch,
        kStateOnHost, 0.1, kZenFlow, 0.0, kTile | kWarmup | kColumns | kDisk},
    {PolicyId::Streamed, "streamed", "weights in RAM", true, WorkOrder::ByLayer, kAllOnHost, 0.0,
        {}, 1.0, kTile | kLate | kDeviceShare | kHomes},
    {PolicyId::SsdVertical, "ssd-vertical", "on the SSD", true, WorkOrder::ByLayer, kAllOnDisk, 0.0,
        {}, 0.25, kTile | kLate | kDeviceShare | kHomes | kDisk | kAllDisk},
}};

static_assert([] {
    for (std::size_t i = 0; i < kRows.size(); ++i)
        if (kRows[i].id != static_cast<PolicyId>(i))
            return false;
    return true;
}());

PolicyInfo infoOf(const PolicyRow& row)
{
    PolicyInfo info;
    info.id = row.id;
    info.name = row.name;
    info.plainName = row.plainName;
    info.exact = row.exact;
    info.isAllOnDevice = row.placement.state == Tier::Device;
    info.streams = row.placement.weights != Tier::Device;
    info.usesDisk = row.placement.diskShare > 0.0;
    info.isBalanced = row.placement.deviceShare == kBalanced;
    info.hasWindows = (row.takes & kWarmup) != 0;
    info.takes = row.takes;
    return info;
}

Status refusePolicy(std::string_view policy)
{
    std::string names;
    for (const PolicyInfo& info : policyTable())
        names += (names.empty() ? "" : ", ") + std::string(info.name);
    return Status::error(ErrorKind::InvalidArgument,
        "policy '" + std::string(policy) + "' is not known; use " + names);
}

StreamedHomes homesOf(const PolicyRow& row, const PolicyNumbers& numbers)
{
    StreamedHomes homes;
    homes.weightsOnDevice = numbers.weightsOnDevice.value_or(homes.weightsOnDevice);
    homes.stateOnDevice = numbers.stateOnDevice.value_or(homes.stateOnDevice);
    homes.boundary = numbers.boundary.value_or(homes.boundary);
    homes.deviceShare = numbers.deviceShare.value_or(row.placement.deviceShare);
    homes.diskShare = numbers.diskShare.value_or(row.placement.diskShare);
    homes.diskGroups = numbers.diskGroups.value_or(homes.diskGroups);
    homes.weightsOnDisk = numbers.weightsOnDisk.value_or(homes.weightsOnDisk);
    homes.gradientsOnDisk = numbers.gradientsOnDisk.value_or(homes.gradientsOnDisk);
    homes.boundariesOnDisk = numbers.boundariesOnDisk.value_or(homes.boundariesOnDisk);
    homes.activationsOnHost = numbers.activationsOnHost.value_or(homes.activationsOnHost);
    homes.vocabulary = numbers.vocabulary.value_or(homes.vocabulary);
    return homes;
}

std::unique_ptr<const Placement> placementOf(const PolicyRow& row, const PolicyNumbers& numbers)
{
    if ((row.takes & kHomes) != 0)
        return makeStreamedPlacement(homesOf(row, numbers));
    if ((row.takes & kDeviceShare) == 0) {
        GroupPlacement home = row.placement;
        home.diskShare = numbers.diskShare.value_or(home.diskShare);
        return makeUniformPlacement(home);
    }
    const double share = numbers.deviceShare.value_or(row.placement.deviceShare);
    return share == kBalanced ? makeBalancedPlacement() : makeSharePlacement(share);
}

double urgentShareOf(const PolicyRow& row, const PolicyNumbers& numbers)
{
    return numbers.urgent.value_or(row.urgentShare);
}

WindowRule windowOf(const PolicyRow& row, const PolicyNumbers& numbers)
{
    WindowRule window = row.window;
    window.warmup = numbers.warmup.value_or(window.warmup);
    window.select = numbers.select.value_or(window.select);
    window.overlap = numbers.overlap.value_or(window.overlap);
    // Until rates or gradients decide the interval, the default of the row stands in.
    if (numbers.interval && numbers.interval->from == WindowInterval::From::User)
        window.interval = static_cast<int>(numbers.interval->steps);
    const double urgent = urgentShareOf(row, numbers);
    if (urgent == 0.0 || urgent == 1.0)
        window.select = 0; // nothing to choose
    return window;
}

bool goesByMagnitude(const PolicyNumbers& numbers)
{
    return numbers.interval && numbers.interval->from == WindowInterval::From::Magnitude;
}

Status refuse(std::string why)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(why));
}

// Refuses options under which the magnitude rule would have nothing to compare.
Status checkMagnitude(const PolicyRow& row, const PolicyNumbers& numbers)
{
    if (!goesByMagnitude(numbers))
        return {};
    const std::string option = "policy option interval=magnitude: ";
    if (numbers.energy == ColumnEnergy::Squares)
        return refuse(option + "compares means of |g|, and energy=l2 keeps sums of squares; leave "
                               "energy away or write energy=l1");
    if (windowOf(row, numbers).warmup < 1)
        return refuse(option + "is chosen by the gradients of the warm-up; want warmup=1 or more");
    const double urgent = urgentShareOf(row, numbers);
    if (urgent <= 0.0 || urgent >= 1.0)
        return refuse(
            option + "compares urgent columns with the others; want urgent above 0 and below 1");
    return {};
}

// Refuses what an update behind backward leaves no room for.
Status checkLight(const PolicyRow& row, const PolicyNumbers& numbers)
{
    const std::string optimizer = "optimizer " + std::string(name(numbers.optimizer));
    const std::string policy = "policy " + std::string(row.name);
    if ((row.takes & kWarmup) != 0 || row.placement.deviceShare == kBalanced)
        return refuse(optimizer + " does not go with " + policy +
                      ": there is no update on the host to hide or to share; use resident, "
                      "zero-offload, streamed, ssd-vertical or auto");
    if (numbers.state)
        return refuse("policy option state is of AdamW's moments, which " + optimizer +
                      " does not keep; leave it out and choose its weights with weights");
    if (numbers.deviceShare || numbers.late.value_or(0.0) > 0.0)
        return refuse("policy options device-share and late: " + optimizer +
                      " updates all of a layer on the device behind its backward; leave them out");
    if (numbers.gradientsOnDisk.value_or(0.0) > 0.0)
        return refuse("policy option gradients-on-disk: with " + optimizer +
                      " no gradient leaves the device; leave it out");
    if (numbers.clipMode == ClipMode::Exact)
        return refuse("policy option clip-mode=exact: the norm of the whole gradient is known only "
                      "after " +
                      optimizer +
                      " has updated the last layer; use clip-mode=own, its own limit for each "
                      "weight, clip-mode=previous-norm, clip-mode=per-group, or "
                      "clip-mode=two-pass, which makes every backward twice");
    if (isForwardOnly(numbers.optimizer) &&
        (numbers.order || numbers.clipMode.value_or(ClipMode::Own) != ClipMode::Own))
        return refuse("policy options order and clip-mode: " + optimizer +
                      " makes no backward pass, and all micro-batches pass a layer before the next "
                      "one; leave them out");
    if (numbers.clipMode == ClipMode::TwoPass && numbers.order == WorkOrder::ByMicroBatch)
        return refuse(
            "policy options clip-mode=two-pass and order=by-microbatch: all micro-batches "
            "pass backward for the norm before the first one passes it again; leave "
            "order out");
    return {};
}

// Embedding and head come by tiles only where their update is on the device, from a gradient that
// is there, and needs no weight of another tile.
Status checkVocabulary(const StreamedHomes& homes, Optimizer optimizer)
{
    if (homes.vocabulary == Tier::Device)
        return {};
    const std::string option = "policy option vocabulary=host: ";
    if (!isLight(optimizer))
        return refuse(option + "embedding and head come by tiles where the device updates them "
                               "right behind their backward; use --optimizer factored, or leave "
                               "the option out");
    if (!updatesByTiles(optimizer))
        return refuse(option + "optimizer " + std::string(name(optimizer)) +
                      " measures all weights of a matrix before it changes one; use factored, or "
                      "leave the option out");
    if (homes.boundary == Tier::Device)
        return refuse(option + "rows of the embedding come to places that boundary=device does not "
                               "have; leave boundary out");
    return {};
}

// Options that do not go together.
Status checkTogether(const PolicyRow& row, const PolicyNumbers& numbers)
{
    const StreamedHomes homes = homesOf(row, numbers);
    if (homes.stateOnDevice > homes.weightsOnDevice)
        return refuse("policy option state-on-device: state stays only where weights stay; make "
                      "weights-on-device as large");
    if (std::max(homes.weightsOnDisk, homes.gradientsOnDisk) > homes.diskShare)
        return refuse("policy options weights-on-disk and gradients-on-disk: both live on disk "
                      "only where state does; make disk-share as large");
    if (homes.boundary == Tier::Device && homes.boundariesOnDisk > 0.0)
        return refuse("policy option boundaries-on-disk: they come from the host; write "
                      "boundary=host");
    if (numbers.clipMode == ClipMode::PerGroup && (row.takes & kWarmup) != 0)
        return refuse("policy option clip-mode=per-group is not of '" + std::string(row.name) +
                      "': the update of a window is clipped by the norm of all groups; use "
                      "clip-mode=exact");
    MR_TRY(checkVocabulary(homes, numbers.optimizer));
    if (isLight(numbers.optimizer))
        return checkLight(row, numbers);
    if (numbers.clipMode && numbers.clipMode != ClipMode::Exact &&
        numbers.clipMode != ClipMode::PerGroup)
        return refuse("policy options clip-mode=own, previous-norm and two-pass are of light "
                      "optimizers, which "
                      "update a layer before the norm of the step is known; use clip-mode=exact or "
                      "per-group");
    return checkMagnitude(row, numbers);
}

// By layer, so that a gradient is complete before the next one begins; late parts have no place.
void takeOptimizer(const PolicyNumbers& numbers, OffloadPolicy& policy)
{
    policy.optimizer = numbers.optimizer;
    policy.stateCodec = numbers.lightState;
    policy.clipMode = numbers.clipMode.value_or(ClipMode::Own);
    policy.traversal = makeTraversal(numbers.order.value_or(WorkOrder::ByLayer));
    policy.clock = makeUniformClock({0.0, 1, 0, false});
}

} // namespace

const std::vector<PolicyInfo>& policyTable()
{
    static const std::vector<PolicyInfo> table = [] {
        std::vector<PolicyInfo> infos;
        for (const PolicyRow& row : kRows)
            infos.push_back(infoOf(row));
        return infos;
    }();
    return table;
}

const PolicyInfo& policyInfo(PolicyId id)
{
    return policyTable()[static_cast<std::size_t>(id)];
}

const PolicyInfo* findPolicy(std::string_view name)
{
    for (const PolicyInfo& info : policyTable())
        if (info.name == name)
            return &info;
    return nullptr;
}

Result<OffloadPolicy> makePolicy(PolicyId id, const PolicyNumbers& numbers)
{
    const PolicyRow& row = kRows.at(static_cast<std::size_t>(id));
    MR_TRY(checkTaken({row.name, row.takes}, numbers));
    MR_TRY(checkTogether(row, numbers));
    OffloadPolicy policy;
    policy.id = row.id;
    policy.name = row.name;
    policy.traversal = makeTraversal(numbers.order.value_or(row.order));
    policy.placement = placementOf(row, numbers);
    const WindowRule window = windowOf(row, numbers);
    policy.router = (row.takes & kColumns) != 0
                        ? makeColumnRouter(urgentShareOf(row, numbers), window)
                        : makeUniformRouter({});
    policy.clock = (row.takes & kWarmup) != 0
                       ? makeWindowClock(window)
                       : makeUniformClock({numbers.late.value_or(row.lateShare), 1, 0, false});
    policy.tileElements = numbers.tileElements.value_or(policy.tileElements);
    policy.buffers = numbers.buffers.value_or(policy.buffers);
    policy.hostClock = numbers.hostClock.value_or(policy.hostClock);
    policy.hostLearningRate = numbers.hostLearningRate.value_or(policy.hostLearningRate);
    policy.intervalByMagnitude = goesByMagnitude(numbers);
    policy.columnEnergy = policy.intervalByMagnitude ? ColumnEnergy::Absolutes
                                                     : numbers.energy.value_or(policy.columnEnergy);
    if (numbers.accumulateOn == WindowSums::Device)
        policy.windowSums = Tier::Device;
    policy.stateCodec = numbers.state.value_or(policy.stateCodec);
    policy.clipMode = numbers.clipMode.value_or(policy.clipMode);
    if (isLight(numbers.optimizer))
        takeOptimizer(numbers, policy);
    return policy;
}

Result<OffloadPolicy> makePolicy(
    std::string_view name, const std::map<std::string, std::string>& options, LightChoice light)
{
    const PolicyInfo* info = findPolicy(name);
    if (info == nullptr)
        return refusePolicy(name);
    MR_ASSIGN(PolicyNumbers numbers, readPolicyOptions(info->taker(), options));
    numbers.optimizer = light.optimizer;
    numbers.lightState = light.state;
    return makePolicy(info->id, numbers);
}

Result<PolicyNumbers> readOptionsOf(
    std::string_view policy, const std::map<std::string, std::string>& options)
{
    if (const PolicyInfo* info = findPolicy(policy))
        return readPolicyOptions(info->taker(), options);
    unsigned all = kAll;
    for (const PolicyInfo& info : policyTable())
        all |= info.takes;
    return readPolicyOptions({policy, all}, options);
}

} // namespace mr
