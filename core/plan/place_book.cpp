#include "core/plan/place_book.h"

#include "core/plan/columns.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace mr {

namespace {

const GroupAnswers& answersOf(const StepPlan& plan, const Task& task)
{
    return plan.answers[static_cast<std::size_t>(task.group.value)];
}

std::int32_t slotOf(const StepPlan& plan, const Task& task)
{
    return task.micro.value % plan.inFlight;
}

// Place of a layer's output on the device, by micro-batch in flight.
std::int32_t boundarySlot(const StepPlan& plan, const Task& task, std::int32_t layer)
{
    return 2 * slotOf(plan, task) + layer % 2;
}

std::int32_t homeOf(const StepPlan& plan, const Task& task)
{
    return slotOf(plan, task) * static_cast<std::int32_t>(plan.answers.size()) + task.group.value;
}

// Tasks that bring weights aside.
bool usesVisitSlots(const StepPlan& plan, const Task& task)
{
    switch (task.kind) {
    case TaskKind::FetchState:
    case TaskKind::StoreState:
    case TaskKind::PrepareUpdate:
    case TaskKind::UpdateOnDevice:
        return answersOf(plan, task).behindBackward;
    default:
        return false;
    }
}

bool isWork(TaskKind kind)
{
    return kind == TaskKind::Forward || kind == TaskKind::Backward;
}

} // namespace

PlaceUses::PlaceUses(const StepPlan& plan, const Task& task)
{
    const TaskTraits& traits = traitsOf(task.kind);
    const Places places = traits.reads | traits.writes;
    const auto use = [&](Place place, std::int32_t index) {
        add(place, index, traits.writes.has(place));
    };
    if (places.has(Place::Batch))
        use(Place::Batch, task.micro.value % plan.batchBuffers);
    if (isWork(task.kind)) {
        addWork(plan, task);
        return;
    }
    if (usesVisitSlots(plan, task) && places.hasAny(Place::State | Place::Weights))
        addVisit(plan, task);
    else if (places.has(Place::State) && task.part == Part::All &&
             answersOf(plan, task).state != Tier::Device)
        use(Place::State, task.slot);
    else if (places.has(Place::Weights) &&
             (task.kind == TaskKind::FetchFrozen || answersOf(plan, task).weights != Tier::Device))
        use(Place::Weights, task.slot);
    if (places.has(Place::Boundary))
        use(Place::Boundary, boundarySlot(plan, task, task.group.value));
    if (places.has(Place::BoundaryHome) && (isDisk(task.lane) || task.stage < 0))
        use(Place::BoundaryHome, homeOf(plan, task));
    if (places.has(Place::Activations))
        use(Place::Activations, plan.activationSet(task));
    if (places.has(Place::HostActivations))
        use(Place::HostActivations, homeOf(plan, task));
    if (places.has(Place::UploadStaging))
        use(Place::UploadStaging, task.slot % kUploadSlots);
}

// An update behind backward changes weights in the slot they streamed to, and its state in another.
// Its tiles lie apart in the slot of weights, so none waits for the copy of another: they use it
// up.
void PlaceUses::addVisit(const StepPlan& plan, const Task& task)
{
    const GroupAnswers& answers = answersOf(plan, task);
    const VisitSlots slots = VisitSlots::of(task, plan.stateSlots);
    const bool updates = task.kind == TaskKind::UpdateOnDevice;
    const bool hasState = answers.state != Tier::Device && task.kind != TaskKind::PrepareUpdate;
    if (hasState && hasLowPlane(plan.stateCodec))
        add(Place::State, slots.state, updates || task.kind == TaskKind::FetchState);
    const bool readsNone = answers.tileRows > 0 && task.kind == TaskKind::PrepareUpdate;
    if (answers.weights != Tier::Device && task.kind != TaskKind::FetchState && !readsNone)
        add(Place::Weights, slots.weights, false);
}

// A layer reads the output of the one before and, in forward, writes its own. Forward makes
// activations, and so does a backward that finds none.
void PlaceUses::addWork(const StepPlan& plan, const Task& task)
{
    const std::int32_t layer = task.group.value;
    const auto head = static_cast<std::int32_t>(plan.answers.size()) - 1;
    const bool forward = task.kind == TaskKind::Forward;
    const bool comesByRows = layer == 0 && answersOf(plan, task).tileRows > 0;
    if (answersOf(plan, task).takesSlot() && !comesByRows)
        add(Place::Weights, task.slot, false);
    if (plan.savesBoundaries && layer > 0)
        add(Place::Boundary, boundarySlot(plan, task, layer - 1), false);
    if (plan.savesBoundaries && forward && layer < head)
        add(Place::Boundary, boundarySlot(plan, task, layer), true);
    if (plan.activations.sets > 1 && layer > 0 && layer < head)
        add(Place::Activations, plan.activationSet(task), forward || !plan.keepsActivations(task));
}

void PlaceUses::add(Place place, std::int32_t index, bool writes)
{
    if (index >= 0) // else the task is about no such place, which the checker tells
        m_uses[m_count++] = {place, index, writes};
}

std::size_t PlaceBook::kindOf(Place place) noexcept
{
    return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(place)));
}

void PlaceBook::begin()
{
    for (std::vector<Entry>& entries : m_entries)
        std::fill(entries.begin(), entries.end(), Entry{});
}

void PlaceBook::note(const PlaceUse& use, Lane lane, TaskIndex task)
{
    std::vector<Entry>& entries = m_entries[kindOf(use.place)];
    const auto index = static_cast<std::size_t>(use.index);
    if (index >= entries.size())
        entries.resize(index + 1);
    Entry& entry = entries[index];
    if (use.writes)
        entry = {{}, {}, 1, 0};
    std::size_t i = use.writes ? 0 : entry.writers;
    while (i < entry.count && entry.lanes[i] != lane)
        ++i;
    assert(i < kMostTasks);
    entry.tasks[i] = task;
    entry.lanes[i] = lane;
    entry.count = std::max(entry.count, static_cast<std::uint8_t>(i + 1));
}

} // namespace mr
