// Routers: which part of a gradient may not wait for the host.
//
// Threads  Pure.

#pragma once

#include "core/plan/policy.h"
#include "core/plan/update_clock.h"

#include <memory>

namespace mr {

// Gives one answer for every group and step.
std::unique_ptr<const GradientRouter> makeUniformRouter(GradientSplit split);

// `share` of the columns and all 1-D weights are urgent; the columns are chosen when `rule` says.
std::unique_ptr<const GradientRouter> makeColumnRouter(double share, const WindowRule& rule);

} // namespace mr
