// The host's update of one window, as far as the plan under check makes it.

#pragma once

#include "core/plan/plan_check.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr {

struct JobUnderCheck {
    bool exists = false;
    StepIndex version = 0;
    std::int64_t window = 0;
    bool normKnown = false;  // before the plan
    std::int32_t before = 0; // tiles done before the plan
    MaybeTask norm;
    std::vector<MaybeTask> updates; // by tile
    std::vector<MaybeTask> uploads;
    std::vector<MaybeTask> scatters;

    void begin(std::size_t tiles)
    {
        updates.resize(tiles);
        uploads.resize(tiles);
        scatters.resize(tiles);
    }

    // UpdatedOnce, unless its tiles are updated in order, and all of them, uploaded too, where it
    // `ends` with the plan; else as far as the carry says.
    Status isWhole(const PlanUnderCheck& check, bool ends) const;
};

} // namespace mr
