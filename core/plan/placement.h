// Placements: where the state of each group lives and who updates it.
//
// Threads  Pure.

#pragma once

#include "core/plan/policy.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mr {

// The same homes and the same share for every group, whatever was measured.
std::unique_ptr<const Placement> makeUniformPlacement(GroupPlacement placement);

// State on the host, weights on the device, and a share of every group updated on the device with
// state that visits it. The shares of groups differ by their cuts, so that together they are as
// near to `share` as one cut allows (Bresenham's line over the groups).
std::unique_ptr<const Placement> makeSharePlacement(double share);

// The same with the share that balancedDeviceShare() gives for the measured rates.
std::unique_ptr<const Placement> makeBalancedPlacement();

// State on the host, and the weights of blocks too, but for a share of the blocks whose weights
// stay on the device, and one of those (at most as many) whose state does as well. Blocks that stay
// are spread evenly, so that what streams has time to come. Embedding and head keep their weights,
// and with all blocks their state.
struct StreamedHomes {
    double weightsOnDevice = 0.0;
    double stateOnDevice = 0.0;
    Tier boundary = Tier::PinnedHost;
};
std::unique_ptr<const Placement> makeStreamedPlacement(const StreamedHomes& homes);

// Is the host the home of activations between layers? (One home for all layers.)
bool savesBoundaries(const std::vector<GroupPlacement>& placements) noexcept;

// The share with which host and device are done with their updates at the same time, from rates:
// the host updates at its rate while the link carries 10 bytes in and 12 out for every element that
// visits and 2 in for one that does not. 0.25 if a rate is not known.
// Source: the model of Deep Optimizer States (Maurya et al., Middleware 2024), with both
// directions of the link and a continuous share; derived in the README.
double balancedDeviceShare(const Feedback& rates) noexcept;

// The first element the host updates: `deviceShare` of the group, cut down to kCutElements; the
// device updates those before it. A share of 1 is the whole group.
std::int64_t firstHostElement(double deviceShare, std::int64_t elements) noexcept;

} // namespace mr
