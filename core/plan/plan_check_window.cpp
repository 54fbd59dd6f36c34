// Checks gradients split by columns and summed over windows: packed, sent, summed, updated by the
// host a slice at a time, uploaded and scattered. Columns change owner only between windows.

#include "core/plan/columns.h"
#include "core/plan/place_check.h"
#include "core/plan/plan_check.h"
#include "core/plan/window_job_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace mr {
namespace {

class WindowCheck
{
public:
    explicit WindowCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_places(check, Place::UploadStaging)
        , m_layout(windowLayout(check.shape, check.policy, 0.0))
        , m_groups(check.shape.groups.size())
    {
        const GroupAnswers& answers = check.plan.answers.front();
        m_closes = check.in.stepsIntoWindow + 1 >= answers.windowSteps;
        m_beside = answers.besideNext;
        m_sumsOnDevice = m_layout.sumsOnDevice(answers.windowSteps);
        for (JobUnderCheck* job : {&m_old, &m_new})
            job->begin(m_layout.tiles.size());
        if (const auto& job = check.in.hostJob)
            m_old = {true, job->version, job->window, job->normJoined, job->tilesDone, {},
                std::move(m_old.updates), std::move(m_old.uploads), std::move(m_old.scatters)};
        m_new.exists = m_closes && !m_beside;
        m_new.version = check.plan.step;
        m_new.window = check.in.window;
    }

    Status run()
    {
        for (TaskIndex i = 0; i < m_check.plan.tasks.size(); ++i)
            MR_TRY(visit(i));
        for (std::size_t g = 0; g < m_groups.size(); ++g)
            MR_TRY(groupIsWhole(g));
        MR_TRY(m_old.isWhole(m_check, m_closes));
        MR_TRY(m_new.isWhole(m_check, true));
        return carryFollows();
    }

private:
    struct Group {
        MaybeTask finish;
        MaybeTask pack;
        MaybeTask send;
        MaybeTask landed;  // sums the gradient sent before
        MaybeTask summed;  // sums the gradient this step sent
        MaybeTask updated; // the urgent columns
    };

    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        switch (task.kind) {
        case TaskKind::FinishGradient:
            if (task.part == Part::All)
                groupOf(task).finish = index;
            return {};
        case TaskKind::PackComplement:
            return pack(index);
        case TaskKind::SendGradient:
            return send(index);
        case TaskKind::AccumulateOnHost:
            return accumulate(index);
        case TaskKind::JoinNorm:
            return task.lane == Lane::Host ? joinNorm(index) : joinUrgent(index);
        case TaskKind::SendScalars:
            return sendScalars(index);
        case TaskKind::UpdateOnDevice:
            return updateUrgent(index);
        case TaskKind::UpdateOnHost:
            return updateTile(index);
        case TaskKind::UploadComplement:
            return uploadTile(index);
        case TaskKind::ScatterComplement:
            return scatterTile(index);
        case TaskKind::SelectColumns:
            return select(index);
        default:
            return {};
        }
    }

    Group& groupOf(const Task& task)
    {
        return m_groups[static_cast<std::size_t>(task.group.value)];
    }
    int bankOf(std::int64_t window) const { return static_cast<int>(window % m_layout.banks); }
    JobUnderCheck* jobOf(const Task& task)
    {
        for (JobUnderCheck* job : {&m_old, &m_new})
            if (job->exists && job->version == task.version)
                return job;
        return nullptr;
    }

    Status pack(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Group& group = groupOf(task);
        if (group.pack || !m_check.isBefore(group.finish, index))
            return m_check.broken(PlanRule::GradientFinished, index, "it may not be rounded yet");
        const auto above = static_cast<std::size_t>(task.group.value + kPackedSlots);
        if (m_layout.sharesPacked(static_cast<std::size_t>(task.group.value)) &&
            m_layout.sharesPacked(above) && m_layout.groups[above].packed > 0 &&
            !m_check.isBefore(m_groups[above].send, index))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                "another block's gradient may still be sent from there");
        group.pack = index;
        return {};
    }

    // Does the task send the sum of a window, and no gradient of this step?
    bool isOfSum(const Task& task) const
    {
        const auto& job = m_check.in.hostJob;
        return m_sumsOnDevice || (job && !job->sent && task.version == job->version);
    }

    Status send(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Group& group = groupOf(task);
        if (isOfSum(task))
            return {}; // checkWindowSums
        if (group.send || task.part != Part::Complement || !m_check.isBefore(group.pack, index))
            return m_check.broken(PlanRule::GradientFinished, index, "it may not be packed yet");
        if (task.slot != bankOf(m_check.in.window) || task.version != m_check.plan.step)
            return m_check.broken(PlanRule::HostBytes, index, "it is of another bank");
        if (m_check.in.landed && !m_check.isBefore(group.landed, index))
            return m_check.broken(
                PlanRule::HostBytes, index, "what was sent before may not be summed yet");
        group.send = index;
        return {};
    }

    Status accumulate(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Group& group = groupOf(task);
        const bool old = task.version == m_check.in.step;
        MaybeTask& done = old ? group.landed : group.summed;
        if (done || (old ? !m_check.in.landed : !m_new.exists || m_layout.direct))
            return m_check.broken(PlanRule::UpdatedOnce, index, "there is no such gradient to sum");
        const bool isFirst = m_check.in.stepsIntoWindow == 0;
        const std::int64_t window = m_check.in.window - (old && isFirst ? 1 : 0);
        const int before = !old      ? m_check.in.stepsIntoWindow
                           : isFirst ? m_check.plan.answers.front().windowSteps - 1
                                     : m_check.in.stepsIntoWindow - 1;
        if (task.slot != bankOf(window) || task.micro.value != before)
            return m_check.broken(PlanRule::HostBytes, index, "it is not the sum it belongs to");
        if (!old && (!m_check.isBefore(group.send, index) || !m_check.isBefore(m_scalars, index)))
            return m_check.broken(
                PlanRule::GradientFinished, index, "gradient or norm may not have come");
        done = m_scalarReader = index;
        return {};
    }

    Status joinNorm(TaskIndex index)
    {
        JobUnderCheck* job = jobOf(m_check.at(index));
        if (!job || job->norm || job->normKnown || m_check.at(index).slot != bankOf(job->window))
            return m_check.broken(PlanRule::NormFirst, index, "there is no such window to close");
        const bool isNew = job == &m_new;
        for (std::size_t g = 0; g < m_groups.size(); ++g) {
            const bool waits =
                !m_layout.direct && m_layout.groups[g].packed > 0 && (isNew || m_check.in.landed);
            if (waits && !m_check.isBefore(isNew ? m_groups[g].summed : m_groups[g].landed, index))
                return m_check.broken(PlanRule::NormFirst, index,
                    fmt::format("group {} may be missing in the window", g));
        }
        if (isNew && !m_check.isBefore(m_scalars, index))
            return m_check.broken(PlanRule::NormFirst, index, "the step's norm may not have come");
        job->norm = m_scalarReader = index;
        return {};
    }

    // The norm of the window's urgent sums.
    Status joinUrgent(TaskIndex index)
    {
        if (m_check.at(index).part != Part::Urgent)
            return {};
        for (const Group& group : m_groups)
            if (group.pack && !m_check.isBefore(group.updated, index))
                return m_check.broken(PlanRule::NormFirst, index, "an urgent sum may be missing");
        m_urgentNorm = index;
        return {};
    }

    Status sendScalars(TaskIndex index)
    {
        if (m_scalarReader && !m_check.isBefore(m_scalarReader, index))
            return m_check.broken(PlanRule::HostBytes, index,
                "the host may still read the scalars of the step before");
        if (m_check.at(index).part == Part::Urgent && !m_check.isBefore(m_urgentNorm, index))
            return m_check.broken(
                PlanRule::NormFirst, index, "the norm of the window may not be known");
        m_scalars = index;
        return {};
    }

    Status updateUrgent(TaskIndex index)
    {
        Group& group = groupOf(m_check.at(index));
        if (m_check.at(index).part != Part::Urgent || group.updated)
            return m_check.broken(
                PlanRule::UpdatedOnce, index, "the device owns the urgent columns, once a step");
        if (!m_check.isBefore(group.pack, index))
            return m_check.broken(
                PlanRule::GradientFinished, index, "its gradient may not be gathered yet");
        group.updated = index;
        return {};
    }

    // Which tile of which job; nothing if there is none.
    std::optional<std::size_t> tileOf(const Task& task) const
    {
        const auto tile = findTile(m_layout, task.group, task.firstElement);
        if (!tile || m_layout.tiles[*tile].elementCount != task.elementCount ||
            task.part != Part::Complement)
            return {};
        return tile;
    }

    Status updateTile(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        JobUnderCheck* job = jobOf(task);
        const auto tile = tileOf(task);
        if (!job || !tile || job->updates[*tile] ||
            static_cast<std::int32_t>(*tile) < job->before || task.slot != bankOf(job->window))
            return m_check.broken(
                PlanRule::UpdatedOnce, index, "the host has no such tile to update");
        if (!job->normKnown && !m_check.isBefore(job->norm, index))
            return m_check.broken(PlanRule::NormFirst, index, "the window's norm is not known");
        job->updates[*tile] = index;
        return {};
    }

    Status uploadTile(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        JobUnderCheck* job = jobOf(task);
        const auto tile = tileOf(task);
        if (!job || !tile || job->uploads[*tile] || task.slot / kUploadSlots != bankOf(job->window))
            return m_check.broken(
                PlanRule::UploadFollows, index, "there is no such tile to upload");
        if (static_cast<std::int32_t>(*tile) >= job->before &&
            !m_check.isBefore(job->updates[*tile], index))
            return m_check.broken(
                PlanRule::UploadFollows, index, "it may copy weights the host has not updated");
        MR_TRY(m_places.use(index));
        bool& isStaged = m_isStaged[static_cast<std::size_t>(task.slot % kUploadSlots)];
        if (isStaged)
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                "what was staged there may not be in the weights yet");
        isStaged = true;
        job->uploads[*tile] = index;
        return {};
    }

    Status scatterTile(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        JobUnderCheck* job = jobOf(task);
        const auto tile = tileOf(task);
        if (!job || !tile || job->scatters[*tile] || !job->uploads[*tile] ||
            m_check.at(*job->uploads[*tile]).slot != task.slot)
            return m_check.broken(PlanRule::UploadFollows, index, "its tile may not have come");
        MR_TRY(m_places.use(index));
        job->scatters[*tile] = index;
        m_isStaged[static_cast<std::size_t>(task.slot % kUploadSlots)] = false;
        return {};
    }

    Status select(TaskIndex index)
    {
        if (!m_closes || m_beside || m_check.out.hostJob)
            return m_check.broken(PlanRule::OwnerStable, index, "the host has work of a window");
        for (const Group& group : m_groups)
            if (group.updated && !m_check.isBefore(group.updated, index))
                return m_check.broken(
                    PlanRule::OwnerStable, index, "an energy may not be known yet");
        return {};
    }

    Status groupIsWhole(std::size_t g)
    {
        const GroupCut& cut = m_layout.groups[g];
        const Group& group = m_groups[g];
        const bool sums = cut.packed > 0 && !m_layout.direct;
        const bool whole = group.pack && (group.updated || cut.columns == 0) &&
                           group.send.has_value() == (cut.packed > 0 && !m_sumsOnDevice) &&
                           group.landed.has_value() == (sums && m_check.in.landed) &&
                           group.summed.has_value() == (sums && m_new.exists);
        if (whole)
            return {};
        return m_check.broken(PlanRule::UpdatedOnce,
            fmt::format("group {} is not packed, sent, summed or updated", g));
    }

    Status carryFollows() const
    {
        const Carry& out = m_check.out;
        const int steps = m_check.plan.answers.front().windowSteps;
        const int stale = m_check.in.stepsIntoWindow + (m_old.exists ? steps : 0);
        if (!m_layout.tiles.empty() &&
            (m_check.plan.staleness != stale || stale > m_check.plan.answers.front().maxStaleSteps))
            return m_check.broken(
                PlanRule::NotStaler, fmt::format("the weights miss {} gradients", stale));
        if (out.landed != (!m_layout.direct && !m_new.exists))
            return m_check.broken(PlanRule::CarryFollows, "what has landed is lost or made up");
        const bool begins = m_closes && m_beside;
        const bool goesOn = m_old.exists && !m_closes;
        const auto& job = out.hostJob;
        const StepIndex version = begins ? m_check.plan.step : m_old.version;
        if (job.has_value() != (begins || goesOn) ||
            (job && (job->version != version || job->sent == (begins && m_sumsOnDevice) ||
                        (begins && (job->tilesDone != 0 || job->window != m_check.in.window)))))
            return m_check.broken(PlanRule::CarryFollows, "a host job is lost or made up");
        return {};
    }

    const PlanUnderCheck& m_check;
    PlaceCheck m_places;
    const WindowLayout m_layout;
    std::vector<Group> m_groups;
    JobUnderCheck m_old; // the update of the window before
    JobUnderCheck m_new; // that of this one, if it is made in the step
    bool m_closes = false;
    bool m_beside = false;
    bool m_sumsOnDevice = false;
    std::array<bool, kUploadSlots> m_isStaged{}; // and not yet in the weights
    MaybeTask m_scalars;
    MaybeTask m_scalarReader; // on the host, the last
    MaybeTask m_urgentNorm;
};

} // namespace

Status checkWindows(const PlanUnderCheck& check)
{
    if (!check.isByColumns())
        return {};
    if (check.isTraining())
        return WindowCheck(check).run();
    const auto& job = check.in.hostJob;
    const auto& left = check.out.hostJob;
    const bool same = check.in.landed == check.out.landed && job.has_value() == left.has_value() &&
                      (!job || job->sent == left->sent);
    return same ? Status()
                : check.broken(PlanRule::CarryFollows, "a window changes outside of a step");
}

} // namespace mr
