// The tasks of policies that split gradients by columns and let the host work in windows.
//
// A step packs what the host owns of each gradient and sends it; the host adds it to the sum of
// the window at the beginning of the next step. Or the device adds it, once the step's norm is
// known, and the sum is sent at the beginning of the next window, beside its forward. Once a window
// is complete the host makes one update of it, either at the end of its last step or beside the
// next window, a slice in every step, and then the result is uploaded during the last backward of
// that window. So no task outlives its step: what spans steps is data in the Carry (why: README).

#include "core/plan/plan_builder.h"

#include <algorithm>
#include <optional>

namespace mr {

bool PlanBuilder::closesWindow(const StepPlan& plan) const
{
    return m_in.stepsIntoWindow + 1 >= plan.answers.front().windowSteps;
}

int PlanBuilder::bankOf(std::int64_t window) const
{
    return static_cast<int>(window % m_training.window.banks);
}

// The host has until the backward of the window's last step: two thirds of a step are gone then. A
// sum from the device takes another third, at the beginning, to come.
std::int32_t PlanBuilder::tilesUntil(const StepPlan& plan) const
{
    const auto all = static_cast<std::int64_t>(m_training.window.tiles.size());
    if (closesWindow(plan))
        return static_cast<std::int32_t>(all);
    const std::int64_t coming = sumsOnDevice(plan) ? 1 : 0;
    const std::int64_t thirds = 3 * std::int64_t{plan.answers.front().windowSteps} - 2 - coming;
    const std::int64_t gone = 3 * std::int64_t{m_in.stepsIntoWindow + 1} - coming;
    const std::int64_t until = (all * gone + thirds - 1) / thirds;
    return static_cast<std::int32_t>(std::min(all, until));
}

void PlanBuilder::emitWindowStart(StepPlan& plan, Carry& out)
{
    const bool isFirst = m_in.stepsIntoWindow == 0;
    if (m_in.landed)
        emitAccumulates(plan, m_in.step, bankOf(m_in.window - (isFirst ? 1 : 0)),
            isFirst ? plan.answers.front().windowSteps - 1 : m_in.stepsIntoWindow - 1);
    if (!out.hostJob)
        return;
    HostJob& job = *out.hostJob;
    const int bank = bankOf(job.window);
    if (!job.sent)
        emitSumOfWindow(plan, job.version, bank);
    job.sent = true;
    if (!job.normJoined)
        emitWindowNorm(plan, job.version, bank);
    job.normJoined = true;
    for (const std::int32_t end = tilesUntil(plan); job.tilesDone < end; ++job.tilesDone)
        emitTileUpdate(plan, static_cast<std::size_t>(job.tilesDone), job.version, bank);
}

// In the order in which the gradients come: groups descend.
void PlanBuilder::emitAccumulates(StepPlan& plan, StepIndex version, int bank, int before)
{
    for (std::size_t g = m_groups.size(); g-- > 0;) {
        if (m_training.window.groups[g].packed == 0)
            continue;
        const GroupId id{static_cast<std::int32_t>(g)};
        Task task = makePart(TaskKind::AccumulateOnHost, Lane::Host, id, version);
        task.slot = static_cast<std::uint8_t>(bank);
        task.micro = MicroBatch{before};
        waitFor(m_scalars);
        waitFor(m_groups[g].gradient);
        m_groups[g].accumulated = m_hostReader = emit(plan, task);
    }
}

bool PlanBuilder::sumsOnDevice(const StepPlan& plan) const
{
    return m_training.window.sumsOnDevice(plan.answers.front().windowSteps);
}

// After the norm: a step that is not finite is left out.
void PlanBuilder::emitDeviceSums(StepPlan& plan)
{
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
        if (m_training.window.groups[g].packed == 0)
            continue;
        Task task = makePart(TaskKind::AccumulateOnDevice, Lane::Compute,
            GroupId{static_cast<std::int32_t>(g)}, plan.step);
        task.micro = MicroBatch{m_in.stepsIntoWindow};
        emit(plan, task);
    }
}

// Rounded over the last packed gradient, sent, and looked at for the norm of the window.
void PlanBuilder::emitSumOfWindow(StepPlan& plan, StepIndex version, int bank)
{
    for (std::size_t g = m_groups.size(); g-- > 0;) {
        if (m_training.window.groups[g].packed == 0)
            continue;
        const GroupId id{static_cast<std::int32_t>(g)};
        waitFor(emit(plan, makePart(TaskKind::FinishGradient, Lane::Compute, id, version)));
        Task send = makePart(TaskKind::SendGradient, Lane::CopyOut, id, version);
        send.slot = static_cast<std::uint8_t>(bank);
        m_groups[g].gradient = emit(plan, send);
        Task norm = makePart(TaskKind::NormPart, Lane::Host, id, version);
        norm.slot = send.slot;
        waitFor(m_groups[g].gradient);
        emit(plan, norm);
    }
}

void PlanBuilder::emitWindowNorm(StepPlan& plan, StepIndex version, int bank)
{
    Task task = makePart(TaskKind::JoinNorm, Lane::Host, GroupId{}, version);
    task.slot = static_cast<std::uint8_t>(bank);
    waitFor(m_scalars);
    m_hostReader = emit(plan, task);
}

void PlanBuilder::emitTileUpdate(StepPlan& plan, std::size_t index, StepIndex version, int bank)
{
    const ComplementTile& tile = m_training.window.tiles[index];
    Task task = makePart(TaskKind::UpdateOnHost, Lane::Host, tile.group, version);
    task.firstElement = tile.firstElement;
    task.elementCount = tile.elementCount;
    task.slot = static_cast<std::uint8_t>(bank);
    const std::optional<Wait> read = emitRead(plan, task);
    waitFor(read);
    waitFor(m_scalars);
    if (m_training.window.direct)
        waitFor(m_groups[static_cast<std::size_t>(tile.group.value)].gradient);
    const Wait updated = emit(plan, task);
    m_tileUpdates[index] = updated;
    if (read)
        emitWrite(plan, task, updated);
}

// A staging slot is free again when what was in it is in the weights.
void PlanBuilder::emitTileUpload(StepPlan& plan, std::size_t index, StepIndex version, int bank)
{
    const ComplementTile& tile = m_training.window.tiles[index];
    const std::size_t slot = m_uploads++ % kUploadSlots;
    Task task = makePart(TaskKind::UploadComplement, Lane::CopyIn, tile.group, version);
    task.firstElement = tile.firstElement;
    task.elementCount = tile.elementCount;
    task.slot = static_cast<std::uint8_t>(bank * kUploadSlots + static_cast<int>(slot));
    waitFor(m_tileUpdates[index]);
    waitFor(m_scatters[slot]);
    const Wait upload = emit(plan, task);

    task.kind = TaskKind::ScatterComplement;
    task.lane = Lane::Compute;
    waitFor(upload);
    m_scatters[slot] = emit(plan, task);
}

Task PlanBuilder::makePart(TaskKind kind, Lane lane, GroupId group, StepIndex version) const
{
    Task task = make(kind, lane, group, version);
    task.part = Part::Complement;
    task.ownership = m_in.ownership;
    return task;
}

void PlanBuilder::emitPackedGradient(StepPlan& plan, GroupId group)
{
    const auto g = static_cast<std::size_t>(group.value);
    const WindowLayout& window = m_training.window;
    emit(plan, make(TaskKind::FinishGradient, Lane::Compute, group, plan.step));
    // Of another block; or of its own, if the sum of the window before is on its way from there.
    waitFor(window.sharesPacked(g) ? sendOfOccupant(group, kPackedSlots) : m_groups[g].gradient);
    const Wait packed =
        emit(plan, makePart(TaskKind::PackComplement, Lane::Compute, group, plan.step));
    if (window.groups[g].packed > 0 && !sumsOnDevice(plan)) {
        Task send = makePart(TaskKind::SendGradient, Lane::CopyOut, group, plan.step);
        send.slot = static_cast<std::uint8_t>(bankOf(m_in.window));
        waitFor(packed);
        waitFor(m_groups[g].accumulated);
        m_groups[g].gradient = emit(plan, send);
    }
    emit(plan, make(TaskKind::NormPart, Lane::Compute, group, plan.step));
    if (!m_in.hostJob || !closesWindow(plan))
        return;
    for (std::size_t t = 0; t < window.tiles.size(); ++t)
        if (window.tiles[t].group == group)
            emitTileUpload(plan, t, m_in.hostJob->version, bankOf(m_in.hostJob->window));
}

void PlanBuilder::emitUrgentUpdates(StepPlan& plan)
{
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
        if (m_training.window.groups[g].columns == 0)
            continue;
        Task task = makePart(TaskKind::UpdateOnDevice, Lane::Compute,
            GroupId{static_cast<std::int32_t>(g)}, plan.step);
        task.part = Part::Urgent;
        task.micro = MicroBatch{m_in.stepsIntoWindow};
        emit(plan, task);
    }
}

void PlanBuilder::emitWindowEnd(StepPlan& plan, Carry& out)
{
    const bool closes = closesWindow(plan);
    const bool inStep = closes && !plan.answers.front().besideNext;
    const bool hasNorm =
        closes && m_training.window.hasNorm && plan.answers.front().windowSteps > 1;
    emit(plan, make(TaskKind::JoinNorm, Lane::Compute, GroupId{}, plan.step));
    if (!hasNorm)
        emitScalarsAfter(plan, Part::All);
    emitUrgentUpdates(plan);
    if (sumsOnDevice(plan))
        emitDeviceSums(plan);
    if (hasNorm) {
        Task join = makePart(TaskKind::JoinNorm, Lane::Compute, GroupId{}, plan.step);
        join.part = Part::Urgent;
        emit(plan, join);
        emitScalarsAfter(plan, Part::Urgent);
    }
    if (inStep)
        emitWindowInStep(plan);
    if (m_reselects)
        emitSelection(plan, out);
    leaveWindow(plan, out);
}

void PlanBuilder::emitScalarsAfter(StepPlan& plan, Part part)
{
    Task task = make(TaskKind::SendScalars, Lane::CopyOut, GroupId{}, plan.step);
    task.part = part;
    waitFor(Wait::onTask(static_cast<TaskIndex>(plan.tasks.size() - 1)));
    waitFor(m_hostReader); // of the scalars of the step before
    m_scalars = emit(plan, task);
}

void PlanBuilder::emitWindowInStep(StepPlan& plan)
{
    const int bank = bankOf(m_in.window);
    if (sumsOnDevice(plan))
        emitSumOfWindow(plan, plan.step, bank);
    else if (!m_training.window.direct)
        emitAccumulates(plan, plan.step, bank, m_in.stepsIntoWindow);
    emitWindowNorm(plan, plan.step, bank);
    for (std::size_t tile = 0; tile < m_training.window.tiles.size(); ++tile) {
        emitTileUpdate(plan, tile, plan.step, bank);
        emitTileUpload(plan, tile, plan.step, bank);
    }
}

// Energies are sent; the columns are chosen and moved once the step is over, when no lane runs.
void PlanBuilder::emitSelection(StepPlan& plan, Carry& out)
{
    Task task = makePart(TaskKind::SelectColumns, Lane::CopyOut, GroupId{}, plan.step);
    task.part = Part::Urgent;
    for (auto left = static_cast<TaskIndex>(plan.tasks.size()); left-- > 0;) {
        if (plan.tasks[left].kind != TaskKind::UpdateOnDevice) // it knows the step's energies
            continue;
        waitFor(Wait::onTask(left));
        break;
    }
    ++out.ownership.value;
    emit(plan, task);
}

void PlanBuilder::leaveWindow(const StepPlan& plan, Carry& out)
{
    const GroupAnswers& answers = plan.answers.front();
    const bool closes = closesWindow(plan);
    if (closes)
        out.hostJob.reset(); // that of the window before is in the weights
    out.landed = !m_training.window.direct && !(closes && !answers.besideNext);
    out.window = m_in.window + (closes ? 1 : 0);
    out.stepsIntoWindow = closes ? 0 : m_in.stepsIntoWindow + 1;
    if (!closes || !answers.besideNext)
        return;
    HostJob& job = out.hostJob.emplace();
    job.window = m_in.window;
    job.version = plan.step;
    job.sent = !sumsOnDevice(plan);
    job.dueStep =
        plan.step + 1 + m_policy.clock->rule(GroupId{0}, plan.step + 1, m_chosen).windowSteps;
}

} // namespace mr
