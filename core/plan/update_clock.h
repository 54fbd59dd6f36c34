// Clocks: how late an update may be.
//
// Threads  Pure.

#pragma once

#include "core/plan/policy.h"

#include <memory>

namespace mr {

// The same rule for every group and step.
std::unique_ptr<const UpdateClock> makeUniformClock(UpdateRule rule);

} // namespace mr
