#include "core/choose/turn_plan.h"

#include "core/choose/run_setup.h"
#include "core/choose/trained_part.h"
#include "core/model/frozen_model.h"
#include "core/plan/turn_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace mr {
namespace {

Status refuseTurns(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

// Every group has two turns at least, or the last ones would hardly be trained.
Status checkRounds(const RunSpec& spec, std::int64_t groups)
{
    const std::int64_t least = 2 * groups * spec.blockSteps;
    if (spec.steps == 0 || spec.steps >= least)
        return {};
    const std::int64_t shorter = spec.steps / (2 * groups);
    return refuseTurns(fmt::format(
        "train blocks: {} blocks with turns of {} steps make two rounds in {} steps, and this run "
        "has {}; give it more, {}or train fewer blocks (train-layers)",
        groups, spec.blockSteps, least, spec.steps,
        shorter > 0 ? fmt::format("shorten the turns (block-steps {}), ", shorter)
                    : std::string()));
}

// The lower a group, the more its turn keeps for backward. What a group itself holds among the
// frozen weights is counted in the turn of another one, so of each size two are taken.
std::vector<GroupId> largestTurns(const ParamTable& model, const std::vector<GroupId>& groups)
{
    std::map<std::int64_t, int> taken; // by elements
    std::vector<GroupId> largest;
    for (const GroupId group : groups)
        if (taken[model.groups[static_cast<std::size_t>(group.value)].elements]++ < 2)
            largest.push_back(group);
    return largest;
}

ModelShape shapeOf(const RunSetup& setup, GroupId group)
{
    return modelShape(setup.config, turnTable(modelOf(setup), group), setup.micro);
}

} // namespace

Status setUpTurns(RunSetup& setup)
{
    RunSpec& spec = setup.spec;
    if (!trainsInTurns(spec))
        return {};
    MR_ASSIGN(std::vector<GroupId> groups, groupsOfTurns(spec, setup.config));
    const auto count = static_cast<std::int64_t>(groups.size());
    if (count < 2)
        return refuseTurns(
            "train blocks: one block alone has nothing to take turns with; name more of "
            "them (train-layers), or leave train out");
    if (spec.blockSteps == 0)
        spec.blockSteps = defaultTurnSteps(spec.steps, count);
    MR_TRY(checkRounds(spec, count));
    TurnPlan& turns = setup.turns;
    turns.model = std::make_shared<const ParamTable>(wholeModel(setup.table));
    turns.largest = largestTurns(*turns.model, groups);
    for (const GroupId group : turns.largest)
        turns.shapes.push_back(shapeOf(setup, group));
    turns.usual = shapeOf(setup, groups[groups.size() / 2]);
    turns.trained = groups.front();
    turns.schedule = {std::move(groups), spec.blockSteps, spec.seed};
    return {};
}

Status takeTurn(RunSetup& setup, GroupId group)
{
    setup.turns.trained = group;
    setup.table = turnTable(modelOf(setup), group);
    setup.shape = modelShape(setup.config, setup.table, setup.micro);
    MR_ASSIGN(setup.memory, runMemory(setup, setup.step, setup.policy));
    return {};
}

Result<MemoryPlan> runMemory(
    const RunSetup& setup, const StepSpec& step, const OffloadPolicy& policy)
{
    const auto planOf = [&](const ModelShape& shape) {
        return planMemory(step, shape, setup.budget, setup.rates, policy);
    };
    if (!setup.turns.isActive())
        return planOf(setup.shape);
    MR_ASSIGN(MemoryPlan now, planOf(setup.shape));
    std::vector<MemoryPlan> plans;
    for (const ModelShape& shape : setup.turns.shapes) {
        MR_ASSIGN(MemoryPlan plan, planOf(shape));
        plans.push_back(std::move(plan));
    }
    now.items = heldByTurns(plans, setup.turns.largest, setup.turns.trained);
    return now;
}

const ParamTable& modelOf(const RunSetup& setup) noexcept
{
    return setup.turns.model ? *setup.turns.model : wholeModel(setup.table);
}

const ModelShape& forecastShape(const RunSetup& setup) noexcept
{
    return setup.turns.isActive() ? setup.turns.usual : setup.shape;
}

ParamTable readTable(const RunSetup& setup)
{
    return setup.turns.isActive() ? frozenTable(modelOf(setup)) : setup.table;
}

ParamTable everTrained(const RunSetup& setup)
{
    if (!setup.turns.isActive())
        return setup.table;
    Result<ParamTable> all = trainedLayers(modelOf(setup), setup.turns.schedule.groups);
    return all.ok() ? std::move(all).value() : setup.table; // the model has them all
}

std::uint64_t turnFileBytes(const RunSetup& setup)
{
    std::int64_t largest = 0;
    for (const ModelShape& shape : setup.turns.shapes)
        largest = std::max(largest, shape.elements());
    return sizeof(float) * static_cast<std::uint64_t>(largest);
}

} // namespace mr
