// TurnSchedule: the group of weights that a step trains, where groups take turns.
//
// A turn trains one group for some steps, with moments and a count of updates that begin at zero. A
// round visits every group once, in an order drawn for that round.
//
// Source   Luo, Yu, Li, "BAdam: A Memory Efficient Full Parameter Optimization Method for Large
//          Language Models", arXiv 2404.02827.
// Threads  Values, pure.
// Units    Steps count from 1, turns and rounds from 0.

#pragma once

#include "core/base/ids.h"

#include <cstdint>
#include <vector>

namespace mr {

struct TurnSchedule {
    std::vector<GroupId> groups; // ascending; empty: all that is trained is trained in every step
    std::int64_t steps = 0;      // of a turn
    std::uint64_t seed = 1;

    bool isActive() const noexcept { return !groups.empty(); }
    std::int64_t turnOf(std::int64_t step) const noexcept { return (step - 1) / steps; }
    // Precondition: isActive().
    GroupId groupOf(std::int64_t turn) const;
};

// Steps of a turn where nobody says: two rounds, and long enough for moments to settle.
std::int64_t defaultTurnSteps(std::int64_t steps, std::int64_t groups) noexcept;

} // namespace mr
