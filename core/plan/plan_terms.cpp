#include "core/plan/plan_terms.h"

#include "core/plan/columns.h"
#include "core/plan/disk_cuts.h"
#include "core/plan/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace mr {

Status notBuilt(const std::string& what)
{
    return Status::error(
        ErrorKind::InvalidArgument, "plan: " + what + " is not built in this version");
}

PlanTerms::PlanTerms(const ModelShape& modelShape, const Budget& bytes, const Feedback& rates,
    const OffloadPolicy& offloadPolicy)
    : shape(modelShape)
    , budget(bytes)
    , chosen(rates)
    , policy(offloadPolicy)
    , placements(placeGroups(policy, shape, budget, chosen))
    , byColumns(windowLayout(shape, policy, 0.0).isActive())
    , streams(std::any_of(placements.begin(), placements.end(),
          [](const GroupPlacement& home) { return home.weights != Tier::Device; }))
    , usesSlots(streams || std::any_of(placements.begin(), placements.end(),
                               [](const GroupPlacement& home) { return home.fetchesFrozen(); }))
    , tiles(tilesOf(shape, placements.empty() ? 0 : placements.back().tileRows))
{
}

std::int64_t PlanTerms::frozenDiskFirst(GroupId group) const
{
    return firstFrozenOnDisk(
        placements[static_cast<std::size_t>(group.value)].frozenOnDisk, frozenElements(group));
}

Status PlanTerms::check() const
{
    MR_TRY(checkModel());
    MR_TRY(checkHomes());
    MR_TRY(checkClipping());
    if (byColumns && shape.hasFrozen())
        return notBuilt("a window beside frozen weights");
    for (const GroupPlacement& placement : placements) {
        const bool stays = placement.state == Tier::Device && placement.deviceShare >= 1.0;
        if (!stays && placement.state != Tier::PinnedHost)
            return notBuilt("a home of optimizer state that is neither the device, which then "
                            "updates it all, nor the host");
        if (byColumns && (placement.state != Tier::PinnedHost || placement.deviceShare > 0.0))
            return notBuilt("a window whose state is not the host's");
        if (byColumns && std::max(placement.weightsOnDisk, placement.gradientsOnDisk) > 0.0)
            return notBuilt("a window whose weights or gradients are on disk");
    }
    return {};
}

Status PlanTerms::checkModel() const
{
    if (shape.layers() < 2) {
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format(
                "plan: a model has an embedding and a head, not {} groups", shape.layers()));
    }
    for (const GroupShape& group : shape.groups) {
        if (group.elements < 1 && group.frozenElements < 1) {
            return Status::error(
                ErrorKind::InvalidArgument, "plan: group '" + group.name + "' has no elements");
        }
    }
    if (shape.firstTrained() == shape.layers())
        return Status::error(ErrorKind::InvalidArgument, "plan: no layer is trained");
    if (placements.size() != shape.groups.size()) {
        return Status::error(
            ErrorKind::Internal, fmt::format("plan: the placement has {} groups, the model {}",
                                     placements.size(), shape.groups.size()));
    }
    return {};
}

Status PlanTerms::checkHomes() const
{
    for (const GroupPlacement& placement : placements) {
        const bool isEnd = &placement == &placements.front() || &placement == &placements.back();
        if (placement.weights == Tier::Disk || placement.boundary == Tier::Disk)
            return notBuilt("a home of weights or boundaries on disk that is not a share of them");
        if (placement.boundary == Tier::Device && placement.boundariesOnDisk > 0.0)
            return notBuilt("a share on disk of boundaries that stay on the device");
        if (placement.boundary != placements.front().boundary)
            return notBuilt("a home of boundaries that is not the same for all layers");
        const bool isElsewhere =
            placement.weights != Tier::Device || placement.frozen != Tier::Device;
        if (isEnd && isElsewhere && placement.tileRows == 0)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("policy option vocabulary=host: embedding and head come by tiles where "
                            "they are two matrices of more than {} rows, both trained, in a run "
                            "that forms the head's sums in parts; leave it out",
                    kHeadPart));
        if (placement.weights == Tier::Device)
            continue;
        if (byColumns)
            return notBuilt("weights of a policy with windows, whose home is the host");
        if (placement.state != Tier::PinnedHost)
            return notBuilt("state on the device of weights whose home is the host");
    }
    return {};
}

Status PlanTerms::checkClipping() const
{
    const bool isOfAdamw =
        policy.clipMode == ClipMode::Exact || policy.clipMode == ClipMode::PerGroup;
    if (!isOfAdamw && !isLight(policy.optimizer))
        return Status::error(ErrorKind::InvalidArgument,
            "plan: clip-mode=own, previous-norm and two-pass need a light optimizer");
    if (policy.clipMode == ClipMode::PerGroup && byColumns)
        return Status::error(ErrorKind::InvalidArgument,
            "plan: clip-mode=per-group needs a policy without windows; the update of a window is "
            "clipped by the norm of all groups");
    return {};
}

bool updatesFollowGradients(
    const OffloadPolicy& policy, const StepSpec& spec, bool byColumns) noexcept
{
    return !byColumns && (spec.clipNorm <= 0.0 || policy.clipMode == ClipMode::PerGroup ||
                             isLight(policy.optimizer));
}

bool passesTwice(const OffloadPolicy& policy, const StepSpec& spec) noexcept
{
    return policy.clipMode == ClipMode::TwoPass && spec.clipNorm > 0.0;
}

} // namespace mr
