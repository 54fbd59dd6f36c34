// What is tried when the policy of a run, or a part of it, is the program's to choose.
//
// Threads  Pure.

#pragma once

#include "core/choose/policy_choice.h"

#include <cstdint>
#include <vector>

namespace mr {

// From the simplest to the most involved. What the user said holds in all of them; without rates
// only what memory decides is tried.
std::vector<PolicyTrial> trialsOf(const RunSetup& setup, bool ratesKnown);

// For policies that take `tile`: an eighth of the largest block, at most the usual tile. The fewer
// bytes are on their way at once, the less room they need. Elements.
std::int64_t smallTile(const ModelShape& shape) noexcept;

} // namespace mr
