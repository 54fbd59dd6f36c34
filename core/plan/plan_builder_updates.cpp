// What a step updates, where and when: after the norm of all groups, or each group after its own
// gradient.

#include "core/plan/plan_builder.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace mr {

// What the host updates of a group in this step; late parts are left to the next one.
void PlanBuilder::listHostTiles(const StepPlan& plan, GroupId group)
{
    const HostCuts& cuts = m_groups[static_cast<std::size_t>(group.value)].cuts;
    PendingUpdate update;
    update.group = group;
    update.version = plan.step;
    update.dueStep = plan.step + 1;
    update.firstElement = cuts.hostFirst;
    update.elementCount = cuts.lateFirst - cuts.hostFirst;
    cutForHost(update);
}

// What of a group's state comes to the device for its update.
void PlanBuilder::listStateTiles(GroupId group)
{
    const GroupState& state = m_groups[static_cast<std::size_t>(group.value)];
    const std::int64_t each = m_training.stateTileElements;
    for (std::int64_t first = 0; state.stateVisits && first < state.cuts.hostFirst; first += each)
        m_stateTiles.push_back(
            {group, first, std::min(each, state.cuts.hostFirst - first), {}, {}});
}

void PlanBuilder::leavePending(Carry& out) const
{
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
        PendingUpdate update;
        update.group = GroupId{static_cast<std::int32_t>(g)};
        update.version = out.step;
        update.dueStep = out.step + 1;
        update.firstElement = m_groups[g].cuts.lateFirst;
        update.elementCount = m_shape.groups[g].elements - update.firstElement;
        if (update.elementCount > 0)
            out.pending.push_back(update);
    }
    std::sort(
        out.pending.begin(), out.pending.end(), [](const PendingUpdate& a, const PendingUpdate& b) {
            return std::tie(a.dueStep, a.group, a.firstElement) <
                   std::tie(b.dueStep, b.group, b.firstElement);
        });
}

void PlanBuilder::emitFirstStateFetches(StepPlan& plan, std::size_t firstTile)
{
    const std::size_t end = std::min(m_stateTiles.size(), firstTile + kStateSlots);
    for (std::size_t tile = firstTile; tile < end; ++tile)
        emitStateFetch(plan, tile);
}

// After the norm, ascending, so that uploads come in the order the next forward reads them.
void PlanBuilder::emitUpdates(StepPlan& plan)
{
    const int groups = m_shape.layers();
    for (GroupId group{0}; group.value < groups; ++group.value) {
        listHostTiles(plan, group);
        listStateTiles(group);
    }
    emitFirstStateFetches(plan, 0); // beside the last of backward: before the norm is known
    emitScalars(plan, true);
    for (GroupId group{0}; group.value < groups; ++group.value)
        emitStayingUpdate(plan, group);
    emitTiles(plan, 0, 0);
}

// Of state that stays on the device.
void PlanBuilder::emitStayingUpdate(StepPlan& plan, GroupId group)
{
    const GroupState& state = m_groups[static_cast<std::size_t>(group.value)];
    if (state.stateVisits || state.cuts.hostFirst == 0)
        return;
    PendingUpdate update;
    update.group = group;
    update.version = plan.step;
    update.elementCount = state.cuts.hostFirst;
    emitDeviceUpdate(plan, update);
}

// Host tiles and visiting tiles, from these on, take turns in proportion, so that both sides are
// done at the same time and the copy lane, which runs in order, serves both.
void PlanBuilder::emitTiles(StepPlan& plan, std::size_t firstHost, std::size_t firstVisit)
{
    const std::size_t onHost = m_hostTiles.size() - firstHost;
    const std::size_t visiting = m_stateTiles.size() - firstVisit;
    std::size_t host = 0;
    std::size_t visit = 0;
    while (host < onHost || visit < visiting) {
        if (visit == visiting ||
            (host < onHost && (2 * host + 1) * visiting <= (2 * visit + 1) * onHost)) {
            emitHostTile(plan, m_hostTiles[firstHost + host++]);
            continue;
        }
        emitStateUpdate(plan, firstVisit + visit);
        if (visit + kStateSlots < visiting)
            emitStateFetch(plan, firstVisit + visit + kStateSlots);
        ++visit;
    }
}

Status PlanBuilder::checkClipping() const
{
    if (m_policy.clipMode == ClipMode::PreviousNorm)
        return Status::error(ErrorKind::InvalidArgument,
            "plan: clip-mode=previous-norm is not built in this version");
    if (m_policy.clipMode == ClipMode::PerGroup && m_byColumns)
        return Status::error(ErrorKind::InvalidArgument,
            "plan: clip-mode=per-group needs a policy without windows; the update of a window is "
            "clipped by the norm of all groups");
    return {};
}

bool updatesFollowGradients(
    const OffloadPolicy& policy, const StepSpec& spec, bool byColumns) noexcept
{
    return !byColumns && (spec.clipNorm <= 0.0 || policy.clipMode == ClipMode::PerGroup);
}

// Which norm the step's updates wait for. Those that are pending read the scalars that their own
// step left.
Status PlanBuilder::keepNorm(const StepSpec& spec, BuiltStep& out) const
{
    if (!m_in.pending.empty() && m_in.normByGroup != out.plan.normByGroup)
        return Status::error(ErrorKind::Internal,
            "plan: step " + std::to_string(spec.step) +
                " clips in another way than the step before, which left updates pending");
    out.out.normByGroup = out.plan.normByGroup;
    return {};
}

void PlanBuilder::emitGroupScalars(StepPlan& plan, GroupId group)
{
    Task task = make(TaskKind::JoinNorm, Lane::Compute, group, plan.step);
    task.elementCount = 0;
    waitFor(emit(plan, task));
    task.kind = TaskKind::SendScalars;
    task.lane = Lane::CopyOut;
    m_scalars = emit(plan, task);
}

// Uploads would stand in the copy lane before what backward needs.
bool PlanBuilder::holdsUploads() const
{
    return m_streams || m_training.stateTileElements > 0;
}

// What is held after the last backward would hold a place of the disk's, and nothing stands behind
// it.
bool PlanBuilder::holdsUploads(GroupId group) const
{
    const HostCuts& cuts = m_groups[static_cast<std::size_t>(group.value)].cuts;
    return holdsUploads() && (group.value > 0 || cuts.weightsFirst == cuts.end);
}

// State that visits beside weights that stream comes at the end, as it does with exact clipping:
// it would stand in the copy lane before the weights of the next layer.
void PlanBuilder::emitEagerUpdates(StepPlan& plan, GroupId group)
{
    emitGroupScalars(plan, group);
    m_holdsUploads = holdsUploads(group);
    const std::size_t firstHost = m_hostTiles.size();
    const std::size_t firstVisit = m_stateTiles.size();
    listHostTiles(plan, group);
    if (!m_streams)
        listStateTiles(group);
    emitFirstStateFetches(plan, firstVisit);
    emitStayingUpdate(plan, group);
    emitTiles(plan, firstHost, firstVisit);
    m_holdsUploads = false;
}

// What no group's own gradient could begin, and the norm of the step for the record.
void PlanBuilder::emitEagerEnd(StepPlan& plan)
{
    const std::size_t firstVisit = m_stateTiles.size();
    for (GroupId group{0}; m_streams && group.value < m_shape.layers(); ++group.value)
        listStateTiles(group);
    emitFirstStateFetches(plan, firstVisit);
    emitScalars(plan, true);
    emitTiles(plan, m_hostTiles.size(), firstVisit);
    for (const LateTile& tile : m_heldUploads)
        emitHeldUpload(plan, tile);
}

} // namespace mr
