#include "core/plan/plan_builder.h"

#include "core/plan/memory_plan.h"
#include "core/plan/placement.h"
#include "core/plan/traversal.h"

#include <algorithm>
#include <string>
#include <utility>

namespace mr {

namespace {

using Pass = WorkItem::Pass;

Status notBuilt(const std::string& what)
{
    return Status::error(
        ErrorKind::InvalidArgument, "plan: " + what + " is not built in this version");
}

Status checkSpec(const StepSpec& spec)
{
    if (spec.microBatches < 1) {
        return Status::error(ErrorKind::InvalidArgument,
            "plan: a step has at least one micro-batch, not " + std::to_string(spec.microBatches));
    }
    return {};
}

bool isSameLayout(const StepSpec& a, const StepSpec& b)
{
    return a.microBatches == b.microBatches && a.recompute == b.recompute &&
           a.precision == b.precision && (a.clipNorm > 0.0) == (b.clipNorm > 0.0);
}

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
        "plan: the pending update of group " + std::to_string(update.group.value) + " at element " +
            std::to_string(update.firstElement) + " lies outside the model");
}

void copyCarry(const Carry& from, StepIndex step, Carry& to)
{
    to = from; // vectors keep their memory
    to.step = step;
}

} // namespace

PlanBuilder::PlanBuilder(const ModelShape& shape, const Budget& budget, const Feedback& chosen,
    const OffloadPolicy& policy)
    : m_shape(shape)
    , m_budget(budget)
    , m_chosen(chosen)
    , m_policy(policy)
    , m_placements(policy.placement->place(shape, budget, chosen))
    , m_disk{diskCuts(shape, m_placements, policy, chosen), {}}
    , m_byColumns(windowLayout(shape, policy, 0.0).isActive())
    , m_streams(std::any_of(m_placements.begin(), m_placements.end(),
          [](const GroupPlacement& home) { return home.weights != Tier::Device; }))
{
}

Status PlanBuilder::checkAnswers() const
{
    if (m_shape.layers() < 2) {
        return Status::error(
            ErrorKind::InvalidArgument, "plan: a model has an embedding and a head, not " +
                                            std::to_string(m_shape.layers()) + " groups");
    }
    for (const GroupShape& group : m_shape.groups) {
        if (group.elements < 1) {
            return Status::error(
                ErrorKind::InvalidArgument, "plan: group '" + group.name + "' has no elements");
        }
    }
    if (m_placements.size() != m_shape.groups.size()) {
        return Status::error(
            ErrorKind::Internal, "plan: the placement has " + std::to_string(m_placements.size()) +
                                     " groups, the model " + std::to_string(m_shape.groups.size()));
    }
    MR_TRY(checkHomes());
    MR_TRY(checkClipping());
    for (const GroupPlacement& placement : m_placements) {
        const bool stays = placement.state == Tier::Device && placement.deviceShare >= 1.0;
        if (!stays && placement.state != Tier::PinnedHost)
            return notBuilt("a home of optimizer state that is neither the device, which then "
                            "updates it all, nor the host");
        if (m_byColumns && (placement.state != Tier::PinnedHost || placement.deviceShare > 0.0))
            return notBuilt("a window whose state is not the host's");
        if (m_byColumns && std::max(placement.weightsOnDisk, placement.gradientsOnDisk) > 0.0)
            return notBuilt("a window whose weights or gradients are on disk");
    }
    return {};
}

Status PlanBuilder::checkHomes() const
{
    for (const GroupPlacement& placement : m_placements) {
        const bool isEnd =
            &placement == &m_placements.front() || &placement == &m_placements.back();
        if (placement.weights == Tier::Disk || placement.boundary == Tier::Disk)
            return notBuilt("a home of weights or boundaries on disk that is not a share of them");
        if (placement.boundary == Tier::Device && placement.boundariesOnDisk > 0.0)
            return notBuilt("a share on disk of boundaries that stay on the device");
        if (placement.boundary != m_placements.front().boundary)
            return notBuilt("a home of boundaries that is not the same for all layers");
        if (placement.weights == Tier::Device)
            continue;
        if (isEnd || m_byColumns)
            return notBuilt("weights of embedding or head, or of a policy with windows, whose home "
                            "is the host");
        if (placement.state != Tier::PinnedHost)
            return notBuilt("state on the device of weights whose home is the host");
    }
    return {};
}

Status PlanBuilder::readAnswers(StepIndex step, StepPlan& plan)
{
    MR_TRY(checkAnswers());
    plan.answers.clear();
    m_groups.clear();
    m_reselects = false;
    for (std::size_t g = 0; g < m_placements.size(); ++g) {
        const GroupId group{static_cast<std::int32_t>(g)};
        const GroupPlacement& placement = m_placements[g];
        const GradientSplit split = m_policy.router->split(group, step, m_chosen);
        const UpdateRule rule = m_policy.clock->rule(group, step, m_chosen);
        if (m_byColumns && rule.lateShare > 0.0)
            return notBuilt("a late share beside a window");
        plan.answers.push_back({placement.weights, placement.state, placement.boundary,
            placement.deviceShare, placement.diskShare, placement.weightsOnDisk,
            placement.gradientsOnDisk, placement.boundariesOnDisk, placement.activationsOnHost,
            split.urgentShare, rule.lateShare, rule.windowSteps, rule.maxStaleSteps,
            rule.besideNext, m_byColumns, split.urgentVectors});
        m_reselects = m_reselects || split.reselect;
        GroupState& state = m_groups.emplace_back();
        const std::int64_t elements = m_shape.groups[g].elements;
        state.cuts = hostCuts(placement, rule.lateShare, elements);
        state.sentFirst = firstSentElement(placement, elements);
        state.stateVisits = placement.state != Tier::Device;
    }
    return {};
}

Status PlanBuilder::prepare(const StepSpec& spec, bool training, Layout& layout) const
{
    MR_TRY(checkSpec(spec));
    MR_TRY(checkAnswers());
    if (layout.valid && isSameLayout(layout.spec, spec))
        return {};
    layout.valid = false;
    MemoryPlan memory;
    if (training) {
        layout.order = m_policy.traversal->order(m_shape.layers(), spec.microBatches);
        layout.inFlight =
            microBatchesInFlight(*m_policy.traversal, m_shape.layers(), spec.microBatches);
    } else {
        layout.order =
            makeTraversal(WorkOrder::ByMicroBatch)->order(m_shape.layers(), spec.microBatches);
        std::erase_if(
            layout.order, [](const WorkItem& item) { return item.pass == Pass::Backward; });
    }
    if (!training && !m_streams) {
        memory = planInferenceMemory(spec, m_shape);
    } else { // what streams needs the slots of the run
        Result<MemoryPlan> planned = planMemory(spec, m_shape, m_budget, m_chosen, m_policy);
        MR_TRY(planned.status());
        memory = std::move(planned).value();
    }
    layout.gradients = memory.gradients;
    layout.weightSlots = memory.weightSlots;
    layout.savesBoundaries = memory.savesBoundaries;
    layout.boundaries = std::move(memory.boundaries);
    layout.activations = memory.activations;
    layout.stateTileElements = memory.stateTileElements;
    layout.window = std::move(memory.window);
    for (const Tier tier : {Tier::Device, Tier::PinnedHost, Tier::Disk})
        layout.peakBytes[static_cast<std::size_t>(tier)] = memory.bytes(tier);
    layout.spec = spec;
    layout.valid = true;
    return {};
}

// The cuts of steps whose updates follow their gradients, made once: they are those of all steps of
// a run or of none.
void PlanBuilder::chooseCuts(DiskSends sends)
{
    m_follows = sends.gradients;
    const bool isMade = m_sends == sends && m_disk[1].tiles.size() == m_disk[0].tiles.size();
    if (!m_follows || isMade)
        return;
    m_sends = sends;
    m_disk[1] = diskCuts(m_shape, m_placements, m_policy, m_chosen, sends);
}

Status PlanBuilder::begin(StepIndex step, const Carry& in, DiskSends sends, StepPlan& plan)
{
    m_in = in;
    chooseCuts(sends);
    for (const PendingUpdate& update : m_in.pending)
        MR_TRY(checkPending(update, m_shape));
    plan.step = step;
    plan.tasks.clear();
    plan.waits.clear();
    plan.microBatches = 0;
    plan.inFlight = 1;
    plan.batchBuffers = batchBuffers(1);
    plan.stateSlots = 0;
    plan.weightSlots = 0;
    plan.diskSlots = disk().slots;
    plan.weightStages = disk().weightStages;
    plan.gradientStages = disk().gradientStages;
    plan.boundaryStages = 0;
    plan.activations = {};
    plan.diskTileElements = disk().tileElements;
    plan.savesBoundaries = false;
    plan.stateCodec = m_policy.stateCodec;
    plan.staleness = 0;
    plan.normByGroup = sends.gradients;
    plan.sendsWeights = sends.weights;
    plan.gradients = {};
    plan.window = {};
    plan.peakBytes = {};
    plan.predicted = {};
    m_clocks.reset(m_in.unfinished);
    m_candidates.clear();
    m_fetches.clear();
    m_scalars.reset();
    m_stateTiles.clear();
    m_hostTiles.clear();
    m_lateTiles.clear();
    m_dueTiles.clear();
    m_stages.assign(static_cast<std::size_t>(disk().stages()), {});
    m_tileWrites.assign(disk().tiles.size(), std::nullopt);
    m_tileSpills.assign(disk().tiles.size(), std::nullopt);
    m_tilesRead = m_weightsRead = m_spilled = m_boundariesMoved = 0;
    m_heldUploads.clear();
    m_weightSlots.clear();
    m_boundarySlots.clear();
    m_savedBoundaries.clear();
    m_activationSets.clear();
    m_savedActivations.clear();
    m_hostReader.reset();
    m_tileUpdates.assign(m_training.window.tiles.size(), std::nullopt);
    m_scatters.fill(std::nullopt);
    m_uploads = 0;
    return readAnswers(step, plan);
}

// Nothing that streams is kept from one step to the next.
void PlanBuilder::openSlots(const Layout& layout, StepPlan& plan)
{
    plan.weightSlots = layout.weightSlots;
    plan.savesBoundaries = layout.savesBoundaries;
    m_weightSlots.resize(static_cast<std::size_t>(layout.weightSlots));
    const auto inFlight = static_cast<std::size_t>(plan.inFlight);
    if (plan.step != m_in.step && layout.activations.sets > 1) { // an evaluation keeps none
        plan.activations = layout.activations;
        m_activationSets.resize(static_cast<std::size_t>(layout.activations.sets));
        m_savedActivations.resize(static_cast<std::size_t>(m_shape.layers()) * inFlight);
    }
    if (!layout.savesBoundaries)
        return;
    m_boundarySlots.resize(2 * inFlight);
    m_savedBoundaries.resize(static_cast<std::size_t>(m_shape.layers()) * inFlight);
    if (plan.step == m_in.step)
        return; // an evaluation saves none
    plan.boundaryStages = layout.boundaries.stages;
    m_stages.resize(m_stages.size() + static_cast<std::size_t>(plan.boundaryStages));
}

void PlanBuilder::apply(const Layout& layout, const Feedback& last, StepPlan& plan)
{
    plan.peakBytes = layout.peakBytes;
    const StepForecast forecast =
        m_forecaster.forecast(plan, {m_shape, last, layout.spec.precision, layout.spec.recompute});
    plan.predicted = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(forecast.stepSeconds));
}

Status PlanBuilder::buildPlanInto(
    const StepSpec& spec, const Carry& in, const Feedback& last, BuiltStep& out)
{
    if (spec.step != in.step + 1) {
        return Status::error(ErrorKind::Internal, "plan: step " + std::to_string(spec.step) +
                                                      " does not follow a carry of step " +
                                                      std::to_string(in.step));
    }
    MR_TRY(prepare(spec, true, m_training));
    StepPlan& plan = out.plan;
    MR_TRY(begin(spec.step, in, sendsOf(m_policy, spec, m_byColumns), plan));
    plan.microBatches = spec.microBatches;
    plan.inFlight = m_training.inFlight;
    plan.batchBuffers = batchBuffers(m_training.inFlight);
    plan.gradients = m_training.gradients;
    plan.stateSlots = m_training.stateTileElements > 0 ? kStateSlots : 0;
    openSlots(m_training, plan);
    copyCarry(m_in, spec.step, out.out);
    out.out.unfinished.clear(); // this step waits for all of them
    MR_TRY(keepNorm(spec, out));

    emitFirstFetches(plan); // before late uploads, so that the first forward waits for its own only
    if (m_byColumns)
        return finishWindowPlan(last, out);
    emitPending(plan, out.out, false);
    MR_TRY(emitWork(plan, m_training.order, true));
    if (plan.normByGroup)
        emitEagerEnd(plan);
    else
        emitUpdates(plan);
    leavePending(out.out);
    ++out.out.window; // of one step
    apply(m_training, last, plan);
    return {};
}

Status PlanBuilder::finishWindowPlan(const Feedback& last, BuiltStep& out)
{
    StepPlan& plan = out.plan;
    const GroupAnswers& answers = plan.answers.front();
    if (m_reselects && (!closesWindow(plan) || answers.besideNext))
        return Status::error(ErrorKind::Internal,
            "plan: columns change owner only at the end of a window that leaves the host no work");
    if (!m_training.window.tiles.empty())
        plan.staleness = m_in.stepsIntoWindow + (m_in.hostJob ? answers.windowSteps : 0);
    plan.window = {bankOf(m_in.window), m_in.stepsIntoWindow};
    emitWindowStart(plan, out.out);
    MR_TRY(emitWork(plan, m_training.order, true));
    emitWindowEnd(plan, out.out);
    apply(m_training, last, plan);
    return {};
}

Status PlanBuilder::buildFlushInto(const Carry& in, BuiltStep& out)
{
    MR_TRY(begin(in.step, in, {in.normByGroup, in.normByGroup && m_sends.weights}, out.plan));
    copyCarry(m_in, m_in.step, out.out);
    for (std::size_t i = 0; i < out.out.unfinished.size(); ++i)
        out.out.unfinished[i].origin = Wait::onCarried(static_cast<TaskIndex>(i));
    emitPending(out.plan, out.out, true);
    return {};
}

Status PlanBuilder::buildEvaluationInto(
    const StepSpec& spec, const Carry& in, const Feedback& last, StepPlan& out)
{
    for (const PendingUpdate& update : in.pending) {
        if (update.isExact()) {
            return Status::error(
                ErrorKind::Internal, "plan: an evaluation at step " + std::to_string(in.step) +
                                         " needs a flush first, an update of group " +
                                         std::to_string(update.group.value) + " is pending");
        }
    }
    MR_TRY(prepare(spec, false, m_evaluation));
    MR_TRY(begin(in.step, in, {}, out));
    out.microBatches = spec.microBatches;
    openSlots(m_evaluation, out);
    emitFirstFetches(out);
    MR_TRY(emitWork(out, m_evaluation.order, false));
    emitScalars(out, false);
    apply(m_evaluation, last, out);
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
