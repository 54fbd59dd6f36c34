#include "core/plan/step_layout.h"

#include "core/plan/traversal.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace mr {

namespace {

bool isSameLayout(const StepSpec& a, const StepSpec& b)
{
    return a.microBatches == b.microBatches && a.recompute == b.recompute &&
           a.precision == b.precision && (a.clipNorm > 0.0) == (b.clipNorm > 0.0);
}

Result<MemoryPlan> memoryOf(const PlanTerms& terms, const StepSpec& spec, bool training)
{
    if (!training && !terms.usesSlots)
        return planInferenceMemory(spec, terms.shape);
    // Weights that stream need the slots of the run.
    return planMemory(spec, terms.shape, terms.budget, terms.chosen, terms.policy);
}

} // namespace

Status StepLayout::layOut(const PlanTerms& terms, const StepSpec& asked, bool training)
{
    if (asked.microBatches < 1) {
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("plan: a step has at least one micro-batch, not {}", asked.microBatches));
    }
    MR_TRY(terms.check());
    if (valid && isSameLayout(spec, asked))
        return {};
    valid = false;
    const int layers = terms.layers();
    if (training) {
        const Traversal& traversal = *terms.policy.traversal;
        order = traversal.order(layers, asked.microBatches);
        inFlight = microBatchesInFlight(traversal, layers, asked.microBatches);
    } else {
        order = makeTraversal(WorkOrder::ByMicroBatch)->order(layers, asked.microBatches);
    }
    probes = training && isForwardOnly(terms.policy.optimizer);
    if (!training || probes)
        std::erase_if(
            order, [](const WorkItem& item) { return item.pass == WorkItem::Pass::Backward; });
    MR_ASSIGN(MemoryPlan memory, memoryOf(terms, asked, training));
    take(std::move(memory));
    passesTwice = training && mr::passesTwice(terms.policy, asked);
    spec = asked;
    valid = true;
    return {};
}

void StepLayout::take(MemoryPlan&& memory)
{
    gradients = memory.gradients;
    weightSlots = memory.weightSlots;
    savesBoundaries = memory.savesBoundaries;
    boundaries = std::move(memory.boundaries);
    activations = memory.activations;
    stateTileElements = memory.stateTileElements;
    stateSlots = memory.stateSlots;
    window = std::move(memory.window);
    for (const Tier tier : {Tier::Device, Tier::PinnedHost})
        peakBytes[static_cast<std::size_t>(tier)] = memory.bytes(tier);
    peakBytes[static_cast<std::size_t>(Tier::Disk)] = memory.scratchBytes();
}

} // namespace mr
