#include "core/plan/window_emitter.h"

#include <algorithm>

namespace mr {

Status WindowEmitter::begin(bool reselects)
{
    m_reselects = reselects;
    m_scalars.reset();
    m_hostReader.reset();
    m_accumulated.assign(m_writer.groups().size(), std::nullopt);
    m_tileUpdates.assign(window().tiles.size(), std::nullopt);
    m_uploads = 0;
    StepPlan& plan = m_writer.plan();
    if (reselects && (!closesWindow() || answers().besideNext))
        return Status::error(ErrorKind::Internal,
            "plan: columns change owner only at the end of a window that leaves the host no work");
    if (!window().tiles.empty())
        plan.staleness = in().stepsIntoWindow + (in().hostJob ? answers().windowSteps : 0);
    plan.window = {bankOf(in().window), in().stepsIntoWindow};
    return {};
}

bool WindowEmitter::closesWindow() const
{
    return in().stepsIntoWindow + 1 >= answers().windowSteps;
}

int WindowEmitter::bankOf(std::int64_t number) const
{
    return static_cast<int>(number % window().banks);
}

// The host has until the backward of the window's last step: two thirds of a step are gone then. A
// sum from the device takes another third, at the beginning, to come.
std::int32_t WindowEmitter::tilesUntil() const
{
    const auto all = static_cast<std::int64_t>(window().tiles.size());
    if (closesWindow())
        return static_cast<std::int32_t>(all);
    const std::int64_t coming = sumsOnDevice() ? 1 : 0;
    const std::int64_t thirds = 3 * std::int64_t{answers().windowSteps} - 2 - coming;
    const std::int64_t gone = 3 * std::int64_t{in().stepsIntoWindow + 1} - coming;
    const std::int64_t until = (all * gone + thirds - 1) / thirds;
    return static_cast<std::int32_t>(std::min(all, until));
}

void WindowEmitter::start(Carry& out)
{
    const bool isFirst = in().stepsIntoWindow == 0;
    if (in().landed)
        accumulateOnHost(in().step, bankOf(in().window - (isFirst ? 1 : 0)),
            isFirst ? answers().windowSteps - 1 : in().stepsIntoWindow - 1);
    if (!out.hostJob)
        return;
    HostJob& job = *out.hostJob;
    const int bank = bankOf(job.window);
    if (!job.sent)
        sendSum(job.version, bank);
    job.sent = true;
    if (!job.normJoined)
        joinNorm(job.version, bank);
    job.normJoined = true;
    for (const std::int32_t end = tilesUntil(); job.tilesDone < end; ++job.tilesDone)
        updateTile(static_cast<std::size_t>(job.tilesDone), job.version, bank);
}

// In the order in which the gradients come: groups descend.
void WindowEmitter::accumulateOnHost(StepIndex version, int bank, int before)
{
    for (std::size_t g = window().groups.size(); g-- > 0;) {
        if (window().groups[g].packed == 0)
            continue;
        const GroupId id{static_cast<std::int32_t>(g)};
        Task task = make(TaskKind::AccumulateOnHost, Lane::Host, id, version);
        task.slot = static_cast<std::uint8_t>(bank);
        task.micro = MicroBatch{before};
        m_writer.waitFor(m_scalars);
        m_writer.waitFor(m_writer.groups()[g].gradient);
        m_accumulated[g] = m_hostReader = m_writer.emit(task);
    }
}

bool WindowEmitter::sumsOnDevice() const
{
    return window().sumsOnDevice(answers().windowSteps);
}

// After the norm: a step that is not finite is left out.
void WindowEmitter::accumulateOnDevice()
{
    for (std::size_t g = 0; g < window().groups.size(); ++g) {
        if (window().groups[g].packed == 0)
            continue;
        Task task = make(TaskKind::AccumulateOnDevice, Lane::Compute,
            GroupId{static_cast<std::int32_t>(g)}, step());
        task.micro = MicroBatch{in().stepsIntoWindow};
        m_writer.emit(task);
    }
}

// Rounded over the last packed gradient, sent, and looked at for the norm of the window.
void WindowEmitter::sendSum(StepIndex version, int bank)
{
    for (std::size_t g = window().groups.size(); g-- > 0;) {
        if (window().groups[g].packed == 0)
            continue;
        const GroupId id{static_cast<std::int32_t>(g)};
        m_writer.waitFor(m_writer.emit(make(TaskKind::FinishGradient, Lane::Compute, id, version)));
        Task send = make(TaskKind::SendGradient, Lane::CopyOut, id, version);
        send.slot = static_cast<std::uint8_t>(bank);
        m_writer.groups()[g].gradient = m_writer.emit(send);
        Task norm = make(TaskKind::NormPart, Lane::Host, id, version);
        norm.slot = send.slot;
        m_writer.waitFor(m_writer.groups()[g].gradient);
        m_writer.emit(norm);
    }
}

void WindowEmitter::joinNorm(StepIndex version, int bank)
{
    Task task = make(TaskKind::JoinNorm, Lane::Host, GroupId{}, version);
    task.slot = static_cast<std::uint8_t>(bank);
    m_writer.waitFor(m_scalars);
    m_hostReader = m_writer.emit(task);
}

void WindowEmitter::updateTile(std::size_t index, StepIndex version, int bank)
{
    const ComplementTile& tile = window().tiles[index];
    Task task = make(TaskKind::UpdateOnHost, Lane::Host, tile.group, version);
    task.firstElement = tile.firstElement;
    task.elementCount = tile.elementCount;
    task.slot = static_cast<std::uint8_t>(bank);
    const std::optional<Wait> read = m_disk.read(task);
    m_writer.waitFor(read);
    m_writer.waitFor(m_scalars);
    if (window().direct)
        m_writer.waitFor(m_writer.group(tile.group).gradient);
    const Wait updated = m_writer.emit(task);
    m_tileUpdates[index] = updated;
    if (read)
        m_disk.write(task, updated);
}

void WindowEmitter::uploadTile(std::size_t index, StepIndex version, int bank)
{
    const ComplementTile& tile = window().tiles[index];
    const std::size_t slot = m_uploads++ % kUploadSlots;
    Task task = make(TaskKind::UploadComplement, Lane::CopyIn, tile.group, version);
    task.firstElement = tile.firstElement;
    task.elementCount = tile.elementCount;
    task.slot = static_cast<std::uint8_t>(bank * kUploadSlots + static_cast<int>(slot));
    m_writer.waitFor(m_tileUpdates[index]);
    m_writer.emit(task);

    task.kind = TaskKind::ScatterComplement;
    task.lane = Lane::Compute;
    m_writer.emit(task);
}

Task WindowEmitter::make(TaskKind kind, Lane lane, GroupId group, StepIndex version) const
{
    Task task = m_writer.make(kind, lane, group, version);
    task.part = Part::Complement;
    task.ownership = in().ownership;
    return task;
}

void WindowEmitter::packGradient(GroupId group)
{
    const auto g = static_cast<std::size_t>(group.value);
    m_writer.emit(m_writer.make(TaskKind::FinishGradient, Lane::Compute, group));
    // The place is free once its last content is sent: another block's gradient, or the group's own
    // sum of the window before.
    m_writer.waitFor(window().sharesPacked(g) ? m_gradients.sendOfOccupant(group, kPackedSlots)
                                              : m_writer.groups()[g].gradient);
    const Wait packed = m_writer.emit(make(TaskKind::PackComplement, Lane::Compute, group, step()));
    if (window().groups[g].packed > 0 && !sumsOnDevice()) {
        Task send = make(TaskKind::SendGradient, Lane::CopyOut, group, step());
        send.slot = static_cast<std::uint8_t>(bankOf(in().window));
        m_writer.waitFor(packed);
        m_writer.waitFor(m_accumulated[g]);
        m_writer.groups()[g].gradient = m_writer.emit(send);
    }
    m_writer.emit(m_writer.make(TaskKind::NormPart, Lane::Compute, group));
    if (!in().hostJob || !closesWindow())
        return;
    for (std::size_t t = 0; t < window().tiles.size(); ++t)
        if (window().tiles[t].group == group)
            uploadTile(t, in().hostJob->version, bankOf(in().hostJob->window));
}

void WindowEmitter::updateUrgent()
{
    for (std::size_t g = 0; g < window().groups.size(); ++g) {
        if (window().groups[g].columns == 0)
            continue;
        Task task = make(
            TaskKind::UpdateOnDevice, Lane::Compute, GroupId{static_cast<std::int32_t>(g)}, step());
        task.part = Part::Urgent;
        task.micro = MicroBatch{in().stepsIntoWindow};
        m_writer.emit(task);
    }
}

void WindowEmitter::end(Carry& out)
{
    const bool closes = closesWindow();
    const bool inStep = closes && !answers().besideNext;
    const bool hasNorm = closes && window().hasNorm && answers().windowSteps > 1;
    m_writer.emit(m_writer.make(TaskKind::JoinNorm, Lane::Compute, GroupId{}));
    if (!hasNorm)
        sendScalars(Part::All);
    updateUrgent();
    if (sumsOnDevice())
        accumulateOnDevice();
    if (hasNorm) {
        Task join = make(TaskKind::JoinNorm, Lane::Compute, GroupId{}, step());
        join.part = Part::Urgent;
        m_writer.emit(join);
        sendScalars(Part::Urgent);
    }
    if (inStep)
        finishInStep();
    if (m_reselects)
        selectColumns(out);
    leave(out);
}

void WindowEmitter::sendScalars(Part part)
{
    Task task = m_writer.make(TaskKind::SendScalars, Lane::CopyOut, GroupId{});
    task.part = part;
    m_writer.waitForCompute();
    m_writer.waitFor(m_hostReader); // it reads the scalars of the step before
    m_scalars = m_writer.emit(task);
}

void WindowEmitter::finishInStep()
{
    const int bank = bankOf(in().window);
    if (sumsOnDevice())
        sendSum(step(), bank);
    else if (!window().direct)
        accumulateOnHost(step(), bank, in().stepsIntoWindow);
    joinNorm(step(), bank);
    for (std::size_t tile = 0; tile < window().tiles.size(); ++tile) {
        updateTile(tile, step(), bank);
        uploadTile(tile, step(), bank);
    }
}

// Energies are sent; the columns are chosen and moved once the step is over, when no lane runs.
void WindowEmitter::selectColumns(Carry& out)
{
    Task task = make(TaskKind::SelectColumns, Lane::CopyOut, GroupId{}, step());
    task.part = Part::Urgent;
    for (auto left = static_cast<TaskIndex>(m_writer.plan().tasks.size()); left-- > 0;) {
        if (m_writer.plan().tasks[left].kind !=
            TaskKind::UpdateOnDevice) // it knows the step's energies
            continue;
        m_writer.waitFor(Wait::onTask(left));
        break;
    }
    ++out.ownership.value;
    m_writer.emit(task);
}

void WindowEmitter::leave(Carry& out) const
{
    const bool closes = closesWindow();
    if (closes)
        out.hostJob.reset(); // that of the window before is in the weights
    out.landed = !window().direct && !(closes && !answers().besideNext);
    out.window = in().window + (closes ? 1 : 0);
    out.stepsIntoWindow = closes ? 0 : in().stepsIntoWindow + 1;
    if (!closes || !answers().besideNext)
        return;
    HostJob& job = out.hostJob.emplace();
    job.window = in().window;
    job.version = step();
    job.sent = !sumsOnDevice();
    const PlanTerms& terms = m_writer.terms();
    job.dueStep =
        step() + 1 + terms.policy.clock->rule(GroupId{0}, step() + 1, terms.chosen).windowSteps;
}

} // namespace mr
