// Routers: which part of a gradient may not wait for the host.
//
// Threads  Pure.

#pragma once

#include "core/plan/policy.h"

#include <memory>

namespace mr {

// The same answer for every group and step.
std::unique_ptr<const GradientRouter> makeUniformRouter(GradientSplit split);

} // namespace mr
