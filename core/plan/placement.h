// Placements: where the state of each group lives and who updates it.
//
// Threads  Pure.

#pragma once

#include "core/plan/policy.h"

#include <cstdint>
#include <memory>

namespace mr {

// The same homes and the same share for every group, whatever was measured.
std::unique_ptr<const Placement> makeUniformPlacement(GroupPlacement placement);

// The first element the host updates: `deviceShare` of the group, cut down to kCutElements; the
// device updates those before it. A share of 1 is the whole group.
std::int64_t firstHostElement(double deviceShare, std::int64_t elements) noexcept;

} // namespace mr
