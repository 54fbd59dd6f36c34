#include "core/plan/place_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace mr {

namespace {

// How a task that comes too early is named.
struct EarlyTask {
    Place place;
    TaskKind kind;
    PlanRule rule;
    const char* why;
    bool namesOther = false; // `why` is what that task may still read or copy
};

constexpr std::array kEarlyTasks{
    EarlyTask{
        Place::Batch, TaskKind::FetchBatch, PlanRule::SlotAfterLastReader, "the buffer", true},
    EarlyTask{
        Place::Batch, TaskKind::Forward, PlanRule::BatchIsThere, "its batch may not have come"},
    EarlyTask{
        Place::Batch, TaskKind::Backward, PlanRule::BatchIsThere, "its batch may not have come"},
    EarlyTask{Place::Weights, TaskKind::FetchWeights, PlanRule::SlotAfterLastReader,
        "these weights", true},
    EarlyTask{Place::Weights, TaskKind::FetchFrozen, PlanRule::SlotAfterLastReader, "these weights",
        true},
    EarlyTask{Place::Weights, TaskKind::Forward, PlanRule::WeightsAtVersion,
        "its weights may not have come"},
    EarlyTask{Place::Weights, TaskKind::Backward, PlanRule::WeightsAtVersion,
        "its weights may not have come"},
    EarlyTask{Place::Weights, TaskKind::SendWeights, PlanRule::WeightsAtVersion,
        "its weights may not be on the device"},
    EarlyTask{Place::Weights, TaskKind::PrepareUpdate, PlanRule::WeightsAtVersion,
        "its weights may not be on the device"},
    EarlyTask{Place::Weights, TaskKind::UpdateOnDevice, PlanRule::WeightsAtVersion,
        "its weights may not be on the device"},
    EarlyTask{Place::Weights, TaskKind::StoreState, PlanRule::WeightsAtVersion,
        "its weights may not be on the device"},
    EarlyTask{Place::State, TaskKind::FetchState, PlanRule::SlotAfterLastReader,
        "what was in the slot may not be home yet"},
    EarlyTask{Place::State, TaskKind::UpdateOnDevice, PlanRule::StateAtHand,
        "its state may not have come"},
    EarlyTask{
        Place::State, TaskKind::StoreState, PlanRule::StateAtHand, "it may not be updated yet"},
    EarlyTask{Place::Boundary, TaskKind::SaveBoundary, PlanRule::BoundaryAtHand,
        "it may not be written yet"},
    EarlyTask{Place::BoundaryHome, TaskKind::SaveBoundary, PlanRule::HostBytes,
        "what is there may still be copied to the device"},
    EarlyTask{Place::BoundaryHome, TaskKind::WriteBoundary, PlanRule::HostBytes,
        "what is there may still be read from disk"},
    EarlyTask{Place::BoundaryHome, TaskKind::LoadBoundary, PlanRule::BoundaryAtHand,
        "it may not be saved yet"},
    EarlyTask{Place::BoundaryHome, TaskKind::ReadBoundary, PlanRule::BoundaryAtHand,
        "it may not be on disk yet"},
    EarlyTask{Place::Activations, TaskKind::SaveActivations, PlanRule::ActivationsAtHand,
        "they may not be made yet"},
    EarlyTask{Place::HostActivations, TaskKind::SaveActivations, PlanRule::HostBytes,
        "what is there may still be copied to the device"},
    EarlyTask{Place::HostActivations, TaskKind::LoadActivations, PlanRule::ActivationsAtHand,
        "they may not be on the host yet"},
    EarlyTask{Place::UploadStaging, TaskKind::UploadComplement, PlanRule::SlotAfterLastReader,
        "what was staged there may not be in the weights yet"},
    EarlyTask{Place::UploadStaging, TaskKind::ScatterComplement, PlanRule::UploadFollows,
        "its tile may not have come"},
};

// Several kinds read boundaries and activations, or write them.
EarlyTask earlyTask(const PlaceUse& use, TaskKind kind)
{
    const auto* row = std::find_if(kEarlyTasks.begin(), kEarlyTasks.end(),
        [&](const EarlyTask& each) { return each.place == use.place && each.kind == kind; });
    if (row != kEarlyTasks.end())
        return *row;
    const bool isBoundary = use.place == Place::Boundary;
    if (use.writes)
        return {use.place, kind, PlanRule::SlotAfterLastReader,
            isBoundary ? "what is there may still be read or copied"
                       : "the activations that are there may still be read or copied"};
    return {use.place, kind, isBoundary ? PlanRule::BoundaryAtHand : PlanRule::ActivationsAtHand,
        isBoundary ? "the output of the layer before may not be there"
                   : "they may not have come from the host"};
}

Status tooEarly(const PlanUnderCheck& check, TaskIndex index, const PlaceUse& use, TaskIndex before)
{
    const EarlyTask early = earlyTask(use, check.at(index).kind);
    if (!early.namesOther)
        return check.broken(early.rule, index, early.why);
    return check.broken(early.rule, index,
        fmt::format("task {}{}{}", before,
            isWork(check.at(before)) ? " may still read " : " may still copy ", early.why));
}

} // namespace

Status PlaceCheck::use(TaskIndex index)
{
    const Task& task = m_check.at(index);
    const TaskTraits& traits = traitsOf(task.kind);
    if (!m_places.hasAny(traits.reads | traits.writes))
        return {};
    const PlaceUses uses(m_check.plan, task);
    for (const bool writes : {false, true}) // a read that is too early is named first
        for (const PlaceUse& use : uses.all())
            if (use.writes == writes && m_places.has(use.place))
                MR_TRY(needOver(index, use));
    for (const PlaceUse& use : uses.all())
        if (m_places.has(use.place))
            m_book.note(use, task.lane, index);
    return {};
}

Status PlaceCheck::needOver(TaskIndex index, const PlaceUse& use) const
{
    MaybeTask early;
    m_book.visitBefore(use, m_check.at(index).lane, [&](TaskIndex before) {
        if (!early && !m_check.isBefore(before, index))
            early = before;
    });
    return early ? tooEarly(m_check, index, use, *early) : Status();
}

} // namespace mr
