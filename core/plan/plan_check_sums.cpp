// Checks windows that are summed on the device: a gradient is added once the step's norm is known,
// and the sum is rounded, sent and added to the norm once a window.

#include "core/plan/columns.h"
#include "core/plan/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace mr {
namespace {

// A window with a sum that leaves the device in this plan: the window before, in the first step of
// this one, or this one.
struct SumUnderCheck {
    bool exists = false;
    StepIndex version = 0;
    std::int64_t window = 0;
    std::vector<MaybeTask> rounded; // by group, and so the next two
    std::vector<MaybeTask> sent;
    std::vector<MaybeTask> normed;
};

class SumCheck
{
public:
    explicit SumCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_layout(windowLayout(check.shape, check.policy, 0.0))
        , m_packed(check.shape.groups.size())
        , m_added(check.shape.groups.size())
    {
        const GroupAnswers& answers = check.plan.answers.front();
        m_adds = m_layout.sumsOnDevice(answers.windowSteps);
        const bool closes = check.in.stepsIntoWindow + 1 >= answers.windowSteps;
        if (const auto& job = check.in.hostJob; job && !job->sent)
            begin(m_old, job->version, job->window);
        if (m_adds && closes && !answers.besideNext)
            begin(m_new, check.plan.step, check.in.window);
    }

    Status run()
    {
        for (TaskIndex i = 0; i < m_check.plan.tasks.size(); ++i)
            MR_TRY(visit(i));
        for (std::size_t g = 0; g < m_added.size(); ++g) {
            const bool has = m_layout.groups[g].packed > 0;
            const auto isWhole = [&](const SumUnderCheck& sum) {
                return !sum.exists ||
                       (sum.sent[g].has_value() == has && sum.normed[g].has_value() == has);
            };
            if (m_added[g].has_value() != (has && m_adds) || !isWhole(m_old) || !isWhole(m_new))
                return m_check.broken(
                    PlanRule::UpdatedOnce, fmt::format("group {} is not summed or sent once", g));
        }
        return {};
    }

private:
    void begin(SumUnderCheck& sum, StepIndex version, std::int64_t window) const
    {
        sum.exists = true;
        sum.version = version;
        sum.window = window;
        for (auto* tasks : {&sum.rounded, &sum.sent, &sum.normed})
            tasks->resize(m_check.shape.groups.size());
    }

    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (task.kind == TaskKind::JoinNorm)
            return joinNorm(index);
        if (task.part != Part::Complement)
            return {};
        switch (task.kind) {
        case TaskKind::PackComplement:
            return pack(index);
        case TaskKind::AccumulateOnDevice:
            return add(index);
        case TaskKind::FinishGradient:
            return round(index);
        case TaskKind::SendGradient:
            return send(index);
        case TaskKind::NormPart:
            return normPart(index);
        case TaskKind::UpdateOnHost:
            return update(index);
        default:
            return {};
        }
    }

    static std::size_t groupOf(const Task& task)
    {
        return static_cast<std::size_t>(task.group.value);
    }
    SumUnderCheck* sumOf(const Task& task)
    {
        for (SumUnderCheck* sum : {&m_old, &m_new})
            if (sum->exists && sum->version == task.version)
                return sum;
        return nullptr;
    }

    // A sum is rounded into the bytes of packed gradients.
    Status pack(TaskIndex index)
    {
        const std::size_t g = groupOf(m_check.at(index));
        if (m_old.exists && m_layout.groups[g].packed > 0 &&
            !m_check.isBefore(m_old.sent[g], index))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                "the sum of the window before may still be sent from there");
        m_packed[g] = index;
        return {};
    }

    Status add(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const std::size_t g = groupOf(task);
        if (!m_adds || m_added[g] || m_layout.groups[g].packed == 0)
            return m_check.broken(PlanRule::UpdatedOnce, index, "there is no such gradient to sum");
        if (task.version != m_check.plan.step || task.micro.value != m_check.in.stepsIntoWindow)
            return m_check.broken(PlanRule::UpdatedOnce, index, "it is not the sum it belongs to");
        // Packed after the sum of the window before was rounded and sent, so that one may go.
        if (!m_check.isBefore(m_packed[g], index))
            return m_check.broken(PlanRule::GradientFinished, index, "it may not be packed yet");
        if (!m_check.isBefore(m_norm, index))
            return m_check.broken(
                PlanRule::NormFirst, index, "whether the step is finite may not be known");
        m_added[g] = index;
        return {};
    }

    Status round(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const std::size_t g = groupOf(task);
        SumUnderCheck* sum = sumOf(task);
        if (!sum || sum->rounded[g])
            return m_check.broken(PlanRule::UpdatedOnce, index, "no window ends there");
        if (sum == &m_new && !m_check.isBefore(m_added[g], index))
            return m_check.broken(
                PlanRule::GradientFinished, index, "the sum of the window is not complete");
        sum->rounded[g] = index;
        return {};
    }

    Status send(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const std::size_t g = groupOf(task);
        SumUnderCheck* sum = sumOf(task);
        if (!sum)
            return {}; // a gradient of one step: checkWindows
        if (sum->sent[g] || !m_check.isBefore(sum->rounded[g], index))
            return m_check.broken(PlanRule::GradientFinished, index, "it may not be rounded yet");
        if (task.slot != sum->window % m_layout.banks)
            return m_check.broken(PlanRule::HostBytes, index, "it is of another bank");
        sum->sent[g] = index;
        return {};
    }

    Status normPart(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const std::size_t g = groupOf(task);
        SumUnderCheck* sum = sumOf(task);
        if (!sum || sum->normed[g] || task.lane != Lane::Host ||
            task.slot != sum->window % m_layout.banks || !m_check.isBefore(sum->sent[g], index))
            return m_check.broken(
                PlanRule::GradientFinished, index, "the sum may not have come to the host");
        sum->normed[g] = index;
        return {};
    }

    Status joinNorm(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (task.part == Part::All)
            m_norm = index;
        const SumUnderCheck* sum = task.lane == Lane::Host ? sumOf(task) : nullptr;
        for (std::size_t g = 0; sum && g < m_added.size(); ++g)
            if (m_layout.groups[g].packed > 0 && !m_check.isBefore(sum->normed[g], index))
                return m_check.broken(PlanRule::NormFirst, index,
                    fmt::format("group {} may be missing in the window", g));
        return {};
    }

    Status update(TaskIndex index)
    {
        const SumUnderCheck* sum = sumOf(m_check.at(index));
        if (!sum || m_check.isBefore(sum->sent[groupOf(m_check.at(index))], index))
            return {};
        return m_check.broken(
            PlanRule::GradientFinished, index, "the sum may not have come to the host");
    }

    const PlanUnderCheck& m_check;
    const WindowLayout m_layout;
    std::vector<MaybeTask> m_packed; // by group
    std::vector<MaybeTask> m_added;
    MaybeTask m_norm; // JoinNorm of the step
    SumUnderCheck m_old;
    SumUnderCheck m_new;
    bool m_adds = false;
};

} // namespace

Status checkWindowSums(const PlanUnderCheck& check)
{
    return check.isByColumns() && check.isTraining() ? SumCheck(check).run() : Status();
}

} // namespace mr
