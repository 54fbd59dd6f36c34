// Checks gradients: finished, summed into the norm, sent and used.

#include "core/plan/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace mr {

namespace {

class GradientCheck
{
public:
    explicit GradientCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_groups(check.shape.groups.size())
        , m_places(static_cast<std::size_t>(std::max(0, placesOf(check.plan.gradients))), -1)
    {
    }

    Status run()
    {
        MR_TRY(checkNorms());
        for (TaskIndex i = 0; i < m_check.plan.tasks.size(); ++i) {
            if (i > 0 && i == m_check.plan.secondPass)
                MR_TRY(beginSecondPass());
            MR_TRY(visit(i));
        }
        if (m_check.plan.normByGroup && m_check.isTraining() && (!m_join || !m_scalars))
            return m_check.broken(PlanRule::NormFirst, "the norm of the step is not sent");
        return {};
    }

private:
    struct Group {
        int backwards = 0;
        std::optional<TaskIndex> backward; // the last that adds to the gradient
        std::optional<TaskIndex> finish;
        std::vector<TaskIndex> sends;
        std::vector<TaskIndex> normParts;
        std::vector<TaskIndex> packs;
        std::vector<TaskIndex> uploads;
        std::vector<TaskIndex> hostUpdates;
        MaybeTask prepare;               // of an update behind backward
        std::vector<TaskIndex> onDevice; // updates
        MaybeTask join;                  // norm of the group alone
        MaybeTask scalars;               // norm of the group alone
    };

    // Windows and updates of the carry must fit the norm that updates obey: one, or one by group.
    Status checkNorms() const
    {
        const StepPlan& plan = m_check.plan;
        if (plan.probes != (m_check.isTraining() && isForwardOnly(m_check.policy.optimizer)))
            return m_check.broken(
                PlanRule::GradientFinished, "its optimizer has another kind of step");
        if (plan.normByGroup && m_check.isByColumns())
            return m_check.broken(PlanRule::NormFirst, "a window has one norm, not one by group");
        const bool updates = m_check.isTraining() || plan.microBatches == 0;
        if (updates && !m_check.in.pending.empty() && m_check.in.normByGroup != plan.normByGroup)
            return m_check.broken(
                PlanRule::NormFirst, "updates of the carry would read scalars of another kind");
        return {};
    }

    // Gradients are made once more, and the norm of the first ones is known.
    Status beginSecondPass()
    {
        if (m_check.policy.clipMode != ClipMode::TwoPass || !m_check.plan.normByGroup || !m_join)
            return m_check.broken(PlanRule::NormFirst,
                "backward begins again before the norm of all groups is known");
        for (Group& group : m_groups) {
            group.backwards = 0;
            group.finish.reset();
        }
        return {};
    }

    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        switch (task.kind) {
        case TaskKind::Forward:
            noteLosses(index);
            return {};
        case TaskKind::Backward:
            MR_TRY(checkSumSlot(index));
            if (m_check.plan.gradients.finishedSlots == 0)
                enter(task.group);
            noteBackward(index);
            noteLosses(index);
            return {};
        case TaskKind::FinishGradient: // checkWindowSums checks the sum of a window
            return task.part == Part::All ? finish(index) : Status();
        case TaskKind::NormPart:
            if (task.part != Part::All)
                return {};
            groupOf(task).normParts.push_back(index);
            return needFinished(index);
        case TaskKind::PackComplement:
            groupOf(task).packs.push_back(index);
            return needFinished(index);
        case TaskKind::SendGradient:
            if (task.version != m_check.plan.step)
                return {}; // checkWindowSums checks the window before
            MR_TRY(needFinished(index));
            return send(index);
        case TaskKind::JoinNorm:
            if (task.group.value >= 0)
                return joinOfGroup(index);
            return task.part == Part::All ? join(index) : Status();
        case TaskKind::SendScalars:
            return task.group.value >= 0 ? sendScalarsOfGroup(index) : sendScalars(index);
        case TaskKind::PrepareUpdate:
            return prepare(index);
        case TaskKind::UpdateOnDevice:
            return updateOnDevice(index);
        case TaskKind::UpdateOnHost:
            return updateOnHost(index);
        case TaskKind::FetchWeights:
            return upload(index);
        default:
            return {};
        }
    }

    Group& groupOf(const Task& task)
    {
        return m_groups[static_cast<std::size_t>(task.group.value)];
    }

    // The block that had the slot before.
    const Group* occupantBefore(GroupId group, int slots) const
    {
        if (group.value == 0 && m_check.plan.gradients.endsShare)
            return &m_groups.back();
        int above = group.value + slots;
        if (slots == 0 || group.value == 0)
            return nullptr;
        while (above < m_check.shape.layers() - 1 && m_check.elements(GroupId{above}) == 0)
            above += slots; // frozen: it has no gradient
        if (above >= m_check.shape.layers() - 1)
            return nullptr;
        return &m_groups[static_cast<std::size_t>(above)];
    }

    // Number of places that blocks use in turn for gradients that are sent.
    static int placesOf(const GradientHomes& homes)
    {
        return homes.finishedSlots > 0 ? homes.finishedSlots : homes.sumSlots;
    }

    // Null where the group has bytes of its own, and in windows, which send packed gradients.
    std::int32_t* placeOf(GroupId group)
    {
        const bool shares = group.value > 0 && group.value < m_check.shape.layers() - 1;
        if (!shares || m_places.empty() || m_check.isByColumns())
            return nullptr;
        return &m_places[static_cast<std::size_t>(group.value - 1) % m_places.size()];
    }

    void enter(GroupId group)
    {
        if (std::int32_t* place = placeOf(group))
            *place = group.value;
    }

    bool isOver(const Group& group, TaskIndex index, bool sent) const
    {
        if (!group.finish || !m_check.isBefore(*group.finish, index))
            return false;
        const auto before = [&](TaskIndex other) { return m_check.isBefore(other, index); };
        return std::all_of(group.normParts.begin(), group.normParts.end(), before) &&
               std::all_of(group.packs.begin(), group.packs.end(), before) &&
               (!group.prepare || isUpdated(group, index)) &&
               (!sent || std::all_of(group.sends.begin(), group.sends.end(), before));
    }

    // Is every element of a group that is updated behind its backward updated?
    bool isUpdated(const Group& group, TaskIndex index) const
    {
        const GroupId id = m_check.at(*group.prepare).group;
        return m_check.isCovered(
            group.onDevice, {id, m_check.plan.step, 0, m_check.elements(id)}, index);
    }

    // The whole gradient is finished, and no update of the group has begun.
    Status prepare(TaskIndex index)
    {
        Group& group = groupOf(m_check.at(index));
        MR_TRY(needFinished(index));
        if (!m_check.isBehindBackward(m_check.at(index).group) || group.prepare ||
            !group.onDevice.empty())
            return m_check.broken(
                PlanRule::GradientFinished, index, "the group's update is not to be prepared now");
        if (!m_check.isBefore(joinFor(m_check.at(index)), index))
            return m_check.broken(PlanRule::NormFirst, index, "the norm may not be known");
        group.prepare = index;
        return {};
    }

    // The first backward of a block overwrites the slot of its sum.
    Status checkSumSlot(TaskIndex index) const
    {
        const GradientHomes& homes = m_check.plan.gradients;
        const Task& task = m_check.at(index);
        const Group* before = occupantBefore(task.group, homes.sumSlots);
        if (!before || m_groups[static_cast<std::size_t>(task.group.value)].backwards > 0 ||
            isOver(*before, index, homes.finishedSlots == 0 && !m_check.isByColumns()))
            return {};
        return m_check.broken(PlanRule::SlotAfterLastReader, index,
            "another block's gradient may still be needed in the slot of its sum");
    }

    void noteBackward(TaskIndex index)
    {
        // By tiles the last one ends the head's backward with a micro-batch.
        if (m_check.isOnTile(m_check.at(index)) && m_check.at(index).firstElement > 0)
            return;
        for (std::size_t g = 0; g < m_groups.size(); ++g) {
            if (m_check.concerns(m_check.at(index), GroupId{static_cast<std::int32_t>(g)})) {
                ++m_groups[g].backwards;
                m_groups[g].backward = index;
            }
        }
    }

    Status finish(TaskIndex index)
    {
        Group& group = groupOf(m_check.at(index));
        const bool twice = m_check.shape.tiedHead && m_check.at(index).group.value == 0;
        const int all = m_check.plan.microBatches * (twice ? 2 : 1);
        if (group.finish || group.backwards != all || !m_check.isBefore(*group.backward, index))
            return m_check.broken(
                PlanRule::GradientFinished, index, "the sum of the micro-batches is not complete");
        const Group* before =
            occupantBefore(m_check.at(index).group, m_check.plan.gradients.finishedSlots);
        if (before && !isOver(*before, index, !m_check.isByColumns()))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                "another block's gradient may still be needed in the slot");
        group.finish = index;
        enter(m_check.at(index).group);
        return {};
    }

    Status needFinished(TaskIndex index)
    {
        const std::optional<TaskIndex> finished = groupOf(m_check.at(index)).finish;
        if (finished && m_check.isBefore(*finished, index))
            return {};
        return m_check.broken(PlanRule::GradientFinished, index, "it may not be rounded yet");
    }

    Status needNormParts(GroupId id, TaskIndex index) const
    {
        const Piece whole{id, m_check.plan.step, 0, m_check.elements(id)};
        if (m_check.isCovered(m_groups[static_cast<std::size_t>(id.value)].normParts, whole, index))
            return {};
        return m_check.broken(PlanRule::NormFirst, index,
            fmt::format("group {} may be missing in the norm", id.value));
    }

    Status join(TaskIndex index)
    {
        for (GroupId id{0}; id.value < m_check.shape.layers() && !m_check.plan.probes; ++id.value)
            MR_TRY(needNormParts(id, index));
        if (m_check.plan.probes && (!m_losses || !m_check.isBefore(*m_losses, index)))
            return m_check.broken(PlanRule::LossesFirst, index, "a micro-batch may be missing");
        m_join = index;
        return {};
    }

    Status needOwnNorms(TaskIndex index) const
    {
        if (m_check.plan.readsOwnNorm() && m_check.at(index).group.value < m_check.shape.layers())
            return {};
        return m_check.broken(PlanRule::NormFirst, index, "the step has no norm of this group");
    }

    Status joinOfGroup(TaskIndex index)
    {
        MR_TRY(needOwnNorms(index));
        MR_TRY(needNormParts(m_check.at(index).group, index));
        groupOf(m_check.at(index)).join = index;
        return {};
    }

    // The host's bytes: a late update of the step before may still read its scalars.
    Status sendScalarsOfGroup(TaskIndex index)
    {
        MR_TRY(needOwnNorms(index));
        const Task& task = m_check.at(index);
        Group& group = groupOf(task);
        for (const PendingUpdate& update : m_check.in.pending)
            if (update.group == task.group && update.isExact() &&
                !m_check.isCovered(group.hostUpdates, pieceOf(update), index))
                return m_check.broken(PlanRule::HostBytes, index,
                    "a pending update may still need the scalars of the step before");
        if (!m_check.isBefore(group.join, index))
            return m_check.broken(PlanRule::NormFirst, index, "the norm may not be known");
        group.scalars = index;
        return {};
    }

    // The norm that tells an update whether and how to use its gradient.
    const MaybeTask& joinFor(const Task& task)
    {
        return m_check.plan.readsOwnNorm() ? groupOf(task).join : m_join;
    }

    const MaybeTask& scalarsFor(const Task& task)
    {
        return m_check.plan.readsOwnNorm() ? groupOf(task).scalars : m_scalars;
    }

    // The host's gradient bytes: nothing may still need the old ones.
    Status send(TaskIndex index)
    {
        Group& group = groupOf(m_check.at(index));
        const Piece range = pieceOf(m_check.at(index));
        for (const PendingUpdate& update : m_check.in.pending) {
            if (update.isExact() && overlap(pieceOf(update), range) &&
                !m_check.isCovered(group.hostUpdates, pieceOf(update), index))
                return m_check.broken(PlanRule::HostBytes, index,
                    "a pending update may still need the gradient that was there");
        }
        if (const std::int32_t* place = placeOf(range.group); place && *place != range.group.value)
            return m_check.broken(PlanRule::GradientFinished, index,
                fmt::format("group {} has its place by then", *place));
        group.sends.push_back(index);
        return m_check.needCarriedOver({TaskKind::UpdateOnHost}, index, "read them");
    }

    // The head computes losses: in a step its backward does, in an evaluation its forward.
    void noteLosses(TaskIndex index)
    {
        if (m_check.at(index).group.value == m_check.shape.layers() - 1)
            m_losses = index;
    }

    Status sendScalars(TaskIndex index)
    {
        if (m_join && !m_check.isBefore(*m_join, index))
            return m_check.broken(PlanRule::NormFirst, index, "the norm may not be known");
        if (!m_losses || !m_check.isBefore(*m_losses, index))
            return m_check.broken(PlanRule::LossesFirst, index, "a micro-batch may be missing");
        m_scalars = index;
        return {};
    }

    bool isOfThisStep(TaskIndex index) const
    {
        return m_check.isTraining() && m_check.at(index).version == m_check.plan.step;
    }

    Status updateOnDevice(TaskIndex index)
    {
        if (!isOfThisStep(index))
            return {};
        if (!m_check.plan.probes)
            MR_TRY(needFinished(index));
        if (!m_check.isBefore(joinFor(m_check.at(index)), index))
            return m_check.broken(PlanRule::NormFirst, index, "the norm may not be known");
        if (m_check.plan.probes)
            return {};
        Group& group = groupOf(m_check.at(index));
        group.onDevice.push_back(index);
        if (m_check.isBehindBackward(m_check.at(index).group) &&
            !m_check.isBefore(group.prepare, index))
            return m_check.broken(
                PlanRule::GradientFinished, index, "its update may not be prepared");
        return {};
    }

    Status updateOnHost(TaskIndex index)
    {
        Group& group = groupOf(m_check.at(index));
        const Piece range = pieceOf(m_check.at(index));
        MR_TRY(m_check.needOver(group.uploads, index, "copy the old weights"));
        MR_TRY(m_check.needCarriedOver({TaskKind::FetchWeights}, index, "read them"));
        group.hostUpdates.push_back(index);
        if (!isOfThisStep(index))
            return {};
        if (!m_check.isCovered(group.sends, range, index))
            return m_check.broken(
                PlanRule::GradientFinished, index, "the gradient may not have come to the host");
        const MaybeTask& scalars = scalarsFor(m_check.at(index));
        if (!m_check.isBefore(scalars, index) ||
            !m_check.isBefore(joinFor(m_check.at(index)), *scalars))
            return m_check.broken(
                PlanRule::NormFirst, index, "the norm may not have come to the host");
        return {};
    }

    Status upload(TaskIndex index)
    {
        Group& group = groupOf(m_check.at(index));
        const Piece range = pieceOf(m_check.at(index));
        const bool streamed = m_check.streams(m_check.at(index).group); // checkStreams looks
        const bool follows =
            streamed ||
            std::any_of(group.hostUpdates.begin(), group.hostUpdates.end(), [&](TaskIndex other) {
                return pieceOf(m_check.at(other)).key() == range.key() &&
                       m_check.isBefore(other, index);
            });
        if (!follows)
            return m_check.broken(
                PlanRule::UploadFollows, index, "it may copy weights the host has not updated");
        group.uploads.push_back(index);
        return {};
    }

    const PlanUnderCheck& m_check;
    std::vector<Group> m_groups;
    std::vector<std::int32_t> m_places; // which block's gradient is there
    std::optional<TaskIndex> m_losses;  // for the last micro-batch; all run on Compute
    std::optional<TaskIndex> m_join;
    std::optional<TaskIndex> m_scalars;
};

} // namespace

Status checkUpdates(const PlanUnderCheck& check)
{
    return GradientCheck(check).run();
}

} // namespace mr
