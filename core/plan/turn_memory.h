// Memory of a run that trains one group of weights at a time (ModelShape::inTurns).
//
// Each turn has a plan of its own, and all plans use the same bytes: every group keeps its home
// among the frozen weights, and one set of state, gradients and weights goes from turn to turn. So
// a run allocates once, and a turn begins without asking for memory.
//
// Threads  Pure.
// Units    Bytes.

#pragma once

#include "core/plan/memory_plan.h"

#include <vector>

namespace mr {

// Does the item belong to whichever group is trained?
bool goesWithTurn(const MemoryItem& item, GroupId trained) noexcept;

// Items for every turn: the most that one of `plans` holds of each. Those that go with the turn
// have the group `trained`. `groups`: the trained one of each plan.
std::vector<MemoryItem> heldByTurns(
    const std::vector<MemoryPlan>& plans, const std::vector<GroupId>& groups, GroupId trained);

} // namespace mr
