// Clocks: how late an update may be.
//
// Threads  Pure.

#pragma once

#include "core/plan/policy.h"

#include <memory>

namespace mr {

// Gives one rule for every group and step.
std::unique_ptr<const UpdateClock> makeUniformClock(UpdateRule rule);

// Schedule of a policy with windows. Steps 1 to `warmup` are windows of one step, closed at once;
// then windows of `interval` steps follow. After the warm-up, and from then on after every `select`
// steps (rounded up to whole windows), columns change owner; 0: never. The window before leaves the
// host no work: it is closed in its own last step.
struct WindowRule {
    int interval = 4;
    std::int64_t warmup = 0;
    std::int64_t select = 0;
    bool overlap = true; // the host works beside the next window

    bool selectsAfter(StepIndex step) const noexcept;
};

std::unique_ptr<const UpdateClock> makeWindowClock(const WindowRule& rule);

} // namespace mr
