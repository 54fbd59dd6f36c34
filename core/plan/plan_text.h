// A plan as text, one line per task, which plan tests compare.
//
//   12 Backward Compute g2 m0 [0,4096) v6 <- 10 c1
//
// index, kind, lane, then where they have a meaning group, micro-batch, range and part, then the
// version, then its waits (c: on a task of the carry).
//
// Threads  Pure.

#pragma once

#include "core/plan/plan.h"

#include <string>
#include <string_view>

namespace mr {

std::string_view name(TaskKind kind) noexcept; // "FetchBatch", ...
std::string_view name(Lane lane) noexcept;     // "Compute", ...
std::string_view name(Tier tier) noexcept;     // "device", "pinned host", "disk"

std::string toText(const StepPlan& plan);
std::string toText(const StepPlan& plan, TaskIndex index); // one line, without its end

} // namespace mr
