// Trials for a run with a policy, or a part of it, that the program chooses.
//
// Threads  Pure.

#pragma once

#include "core/choose/policy_choice.h"

#include <cstdint>
#include <vector>

namespace mr {

// Trials from the simplest to the most involved. Options that the user gave hold in all of them.
// Without rates, only options that memory decides vary.
std::vector<PolicyTrial> trialsOf(const RunSetup& setup, bool ratesKnown);

// Kinds beside recompute=block that are tried with weights elsewhere. Without rates only one that
// was asked for: the block kind leaves most room for weights.
std::vector<Recompute> keepingTrials(const RunSetup& setup, bool ratesKnown);

// For policies that take `tile`: an eighth of the largest block, at most the usual tile. The fewer
// bytes are on their way at once, the less room they need. Elements.
std::int64_t smallTile(const ModelShape& shape) noexcept;

} // namespace mr
