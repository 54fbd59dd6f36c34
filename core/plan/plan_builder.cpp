#include "core/plan/plan_builder.h"

#include "core/plan/placement.h"
#include "core/plan/traversal.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

namespace mr {

namespace {

// A carry may come from a checkpoint.
Status checkPending(const PendingUpdate& update, const ModelShape& shape)
{
    const bool known = update.group.value >= 0 && update.group.value < shape.layers();
    const std::int64_t elements =
        known ? shape.groups[static_cast<std::size_t>(update.group.value)].elements : 0;
    if (update.firstElement >= 0 && update.elementCount > 0 && update.firstElement <= elements &&
        update.elementCount <= elements - update.firstElement)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("plan: the pending update of group {} at element {} lies outside the model",
            update.group.value, update.firstElement));
}

// Items at the front that pass through one layer in one direction.
std::size_t sameVisit(std::span<const WorkItem> items)
{
    const auto end = std::find_if(items.begin(), items.end(), [&](const WorkItem& item) {
        return item.layer != items.front().layer || item.pass != items.front().pass;
    });
    return static_cast<std::size_t>(end - items.begin());
}

void copyCarry(const Carry& from, StepIndex step, Carry& to)
{
    to = from; // vectors keep their memory
    to.step = step;
}

} // namespace

PlanBuilder::PlanBuilder(const ModelShape& shape, const Budget& budget, const Feedback& chosen,
    const OffloadPolicy& policy)
    : m_terms(shape, budget, chosen, policy)
    , m_writer(m_terms)
    , m_disk(m_writer, m_slots)
    , m_gradients(m_writer, m_disk)
    , m_updates(m_writer, m_disk, m_gradients)
    , m_stream(m_writer, m_slots, m_disk, m_updates)
    , m_layers(m_writer, m_slots, m_disk, m_stream, m_gradients)
    , m_stepUpdates(m_writer, m_training, m_gradients, m_updates, m_stream, m_disk)
    , m_window(m_writer, m_training, m_disk, m_gradients)
{
}

Status PlanBuilder::readAnswers()
{
    MR_TRY(m_terms.check());
    StepPlan& plan = m_writer.plan();
    m_reselects = false;
    for (std::size_t g = 0; g < m_terms.placements.size(); ++g) {
        const GroupId group{static_cast<std::int32_t>(g)};
        const GroupPlacement& placement = m_terms.placements[g];
        const GradientSplit split = m_terms.policy.router->split(group, plan.step, m_terms.chosen);
        const UpdateRule rule = m_terms.policy.clock->rule(group, plan.step, m_terms.chosen);
        if (m_terms.byColumns && rule.lateShare > 0.0)
            return notBuilt("a late share beside a window");
        plan.answers.push_back(
            {placement.weights, placement.state, placement.boundary, placement.deviceShare,
                placement.diskShare, placement.weightsOnDisk, placement.gradientsOnDisk,
                placement.boundariesOnDisk, placement.activationsOnHost, split.urgentShare,
                rule.lateShare, rule.windowSteps, rule.maxStaleSteps, rule.besideNext,
                m_terms.byColumns, split.urgentVectors, placement.frozen, placement.packed,
                placement.frozenOnDisk, placement.behindBackward, placement.tileRows});
        m_reselects = m_reselects || split.reselect;
        GroupState& state = m_writer.groups().emplace_back();
        const std::int64_t elements = m_terms.elements(group);
        state.cuts = hostCuts(placement, rule.lateShare, elements);
        state.sentFirst = firstSentElement(placement, elements);
        state.stateVisits = placement.state != Tier::Device;
    }
    return {};
}

Status PlanBuilder::begin(StepIndex step, const Carry& in, DiskSends sends, StepPlan& plan)
{
    m_writer.begin(step, in, plan);
    m_disk.begin(sends);
    m_gradients.begin();
    m_updates.begin();
    m_stream.begin();
    m_stepUpdates.begin();
    for (const PendingUpdate& update : m_writer.in().pending)
        MR_TRY(checkPending(update, m_terms.shape));
    return readAnswers();
}

void PlanBuilder::forecast(const StepLayout& layout, const Feedback& last)
{
    StepPlan& plan = m_writer.plan();
    plan.peakBytes = layout.peakBytes;
    const StepForecast forecast = m_forecaster.forecast(
        plan, {m_terms.shape, last, layout.spec.precision, layout.spec.recompute});
    plan.predicted = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(forecast.stepSeconds));
}

// Keeps which norm the step's updates wait for. Pending updates read the scalars that their own
// step left.
Status PlanBuilder::keepNorm(StepIndex step, BuiltStep& out) const
{
    if (!m_writer.in().pending.empty() && m_writer.in().normByGroup != out.plan.normByGroup)
        return Status::error(
            ErrorKind::Internal, fmt::format("plan: step {} clips in another way than the step "
                                             "before, which left updates pending",
                                     step));
    out.out.normByGroup = out.plan.normByGroup;
    return {};
}

Status PlanBuilder::buildPlanInto(
    const StepSpec& spec, const Carry& in, const Feedback& last, BuiltStep& out)
{
    if (spec.step != in.step + 1) {
        return Status::error(ErrorKind::Internal,
            fmt::format("plan: step {} does not follow a carry of step {}", spec.step, in.step));
    }
    MR_TRY(m_training.layOut(m_terms, spec, true));
    StepPlan& plan = out.plan;
    MR_TRY(begin(spec.step, in, sendsOf(m_terms.policy, spec, m_terms.byColumns), plan));
    plan.microBatches = spec.microBatches;
    plan.inFlight = m_training.inFlight;
    plan.batchBuffers = batchBuffers(m_training.inFlight);
    plan.gradients = m_training.gradients;
    plan.stateSlots = m_training.stateSlots;
    plan.probes = m_training.probes;
    copyCarry(m_writer.in(), spec.step, out.out);
    out.out.unfinished.clear(); // this step waits for all of them
    MR_TRY(keepNorm(spec.step, out));
    m_layers.begin(m_training); // before late uploads, so that the first forward waits for its own
    MR_TRY(m_terms.byColumns ? emitWindowStep(out.out) : emitStep(out.out));
    m_layers.keepSlots(out.out);
    forecast(m_training, last);
    return {};
}

Status PlanBuilder::emitStep(Carry& out)
{
    m_stepUpdates.makePending(out, false);
    MR_TRY(emitLayers());
    if (m_training.passesTwice)
        MR_TRY(emitSecondPass());
    if (m_training.probes)
        updateByProbes();
    else if (m_writer.plan().normByGroup)
        m_stepUpdates.endAtOnce();
    else
        m_stepUpdates.update();
    m_stepUpdates.leavePending(out);
    ++out.window; // a window of one step
    return {};
}

Status PlanBuilder::emitWindowStep(Carry& out)
{
    MR_TRY(m_window.begin(m_reselects));
    m_window.start(out);
    MR_TRY(emitLayers());
    m_window.end(out);
    return {};
}

// The norm of the step is known by then, so that updates follow this backward.
Status PlanBuilder::emitSecondPass()
{
    m_gradients.joinNorm();
    m_layers.beginSecondPass();
    return emitLayers();
}

// Descending, because forward leaves the last layers on the device.
void PlanBuilder::updateByProbes()
{
    m_gradients.sendScalars();
    for (GroupId group{m_terms.layers() - 1}; group.value >= 0; --group.value)
        m_stepUpdates.updateAtOnce(group);
}

Status PlanBuilder::emitLayers()
{
    const bool isSecond = m_writer.plan().secondPass > 0;
    const std::span<const WorkItem> order =
        (m_writer.isTraining() ? m_training : m_evaluation).order;
    for (std::size_t i = 0; i < order.size();) {
        const WorkItem& item = order[i];
        const std::size_t count = m_layers.isByTiles(item) ? sameVisit(order.subspan(i)) : 1;
        const std::span<const WorkItem> visit = order.subspan(i, count);
        i += count;
        const bool isForward = item.pass == WorkItem::Pass::Forward;
        if (isForward ? isSecond : item.layer.value < m_terms.shape.firstTrained())
            continue;
        MR_TRY(count > 1 || m_layers.isByTiles(item) ? m_layers.emitTiles(visit)
                                                     : m_layers.emit(item));
        if (m_layers.hasFinished(visit.back()))
            emitFinishedGradient(GroupId{item.layer.value});
    }
    return {};
}

void PlanBuilder::emitFinishedGradient(GroupId group)
{
    if (m_terms.elements(group) == 0)
        return;
    if (m_terms.byColumns)
        return m_window.packGradient(group);
    m_gradients.finish(group);
    const bool isForNorm = m_training.passesTwice && !m_gradients.isJoined();
    if (m_writer.plan().normByGroup && !isForNorm)
        m_stepUpdates.updateAtOnce(group);
}

Status PlanBuilder::buildFlushInto(const Carry& in, BuiltStep& out)
{
    MR_TRY(
        begin(in.step, in, {in.normByGroup, in.normByGroup && m_disk.sends().weights}, out.plan));
    copyCarry(m_writer.in(), m_writer.in().step, out.out);
    for (std::size_t i = 0; i < out.out.unfinished.size(); ++i)
        out.out.unfinished[i].origin = Wait::onCarried(static_cast<TaskIndex>(i));
    m_stepUpdates.makePending(out.out, true);
    return {};
}

Status PlanBuilder::buildEvaluationInto(
    const StepSpec& spec, const Carry& in, const Feedback& last, StepPlan& out)
{
    for (const PendingUpdate& update : in.pending) {
        if (update.isExact()) {
            return Status::error(
                ErrorKind::Internal, fmt::format("plan: an evaluation at step {} needs a flush "
                                                 "first, an update of group {} is pending",
                                         in.step, update.group.value));
        }
    }
    MR_TRY(m_evaluation.layOut(m_terms, spec, false));
    MR_TRY(begin(in.step, in, {}, out));
    out.microBatches = spec.microBatches;
    m_layers.begin(m_evaluation);
    MR_TRY(emitLayers());
    m_gradients.sendScalars();
    forecast(m_evaluation, last);
    return {};
}

Result<BuiltStep> buildPlan(const StepSpec& spec, const Carry& in, const ModelShape& shape,
    const Budget& budget, const Feedback& last, const OffloadPolicy& policy)
{
    PlanBuilder builder(shape, budget, last, policy);
    BuiltStep built;
    MR_TRY(builder.buildPlanInto(spec, in, last, built));
    return built;
}

Result<BuiltStep> buildFlush(const Carry& in, const ModelShape& shape, const Budget& budget,
    const Feedback& last, const OffloadPolicy& policy)
{
    PlanBuilder builder(shape, budget, last, policy);
    BuiltStep built;
    MR_TRY(builder.buildFlushInto(in, built));
    return built;
}

Result<StepPlan> buildEvaluation(const StepSpec& spec, const Carry& in, const ModelShape& shape,
    const Budget& budget, const Feedback& last, const OffloadPolicy& policy)
{
    PlanBuilder builder(shape, budget, last, policy);
    StepPlan plan;
    MR_TRY(builder.buildEvaluationInto(spec, in, last, plan));
    return plan;
}

} // namespace mr
