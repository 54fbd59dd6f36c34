// Placements: homes of each group's state, and the shares that host and device update.
//
// Threads  Pure.

#pragma once

#include "core/plan/policy.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mr {

// Gives every group equal homes and an equal share, at any measured rates.
std::unique_ptr<const Placement> makeUniformPlacement(GroupPlacement placement);

// State on the host, weights on the device, and a share of every group updated on the device with
// state that visits it. The shares of groups differ by their cuts, so that together they are as
// near to `share` as one cut allows (Bresenham's line over the groups).
std::unique_ptr<const Placement> makeSharePlacement(double share);

// Like makeSharePlacement(), with the share that balancedDeviceShare() gives for the measured
// rates.
std::unique_ptr<const Placement> makeBalancedPlacement();

// Stands for the device share that balances both sides.
inline constexpr double kBalanced = -1.0;

enum class DiskGroups : std::uint8_t { All, Vocabulary }; // Vocabulary: embedding and head

// State on the host, and the weights of blocks too. A share of the blocks keeps its weights on the
// device, and a share (at most as many) its state as well. Blocks that stay are spread evenly, so
// that the others have time to stream. Embedding and head keep their weights on the device, unless
// `vocabulary` says otherwise, and their state if all blocks do. Where state is on the host, the
// device updates a share of the elements, cut as in makeSharePlacement(), and of the rest a share
// has its state on disk.
struct StreamedHomes {
    double weightsOnDevice = 0.0;
    double stateOnDevice = 0.0;
    Tier boundary = Tier::PinnedHost;
    double deviceShare = 0.0; // or kBalanced
    double diskShare = 0.0;
    DiskGroups diskGroups = DiskGroups::All; // the disk share is taken from their state
    double weightsOnDisk = 0.0; // and gradients: at most as much as has its state there
    double gradientsOnDisk = 0.0;
    double boundariesOnDisk = 0.0;  // share of those that are saved, the ones idle longest
    double activationsOnHost = 0.0; // share of every block's, instead of making them again
    Tier vocabulary = Tier::Device; // home of the weights of embedding and head
};
std::unique_ptr<const Placement> makeStreamedPlacement(const StreamedHomes& homes);

// The policy's homes for the groups of a model. Weights that no step changes have the home and the
// share on disk that the policy gives to weights; what is trained beside them in a block, an
// adapter, stays on the device. Embedding and head, if they are trained, have the policy's homes.
std::vector<GroupPlacement> placeGroups(const OffloadPolicy& policy, const ModelShape& shape,
    const Budget& budget, const Feedback& rates);

// Is the host the home of activations between layers? (One home for all layers.)
bool savesBoundaries(const std::vector<GroupPlacement>& placements) noexcept;

// Bytes that the end of a step moves over the link for one element.
struct VisitBytes {
    double in = 0.0;     // it visits the device
    double out = 0.0;    // and goes home
    double upload = 0.0; // the host updated it
};
// Weights stay: low half and moments come, the high half goes home too, new weights come.
inline constexpr VisitBytes kStateVisits = {10.0, 12.0, 2.0};
// Weights stream: high half and gradient come as well; new weights come with the next use.
inline constexpr VisitBytes kStreamedVisits = {14.0, 12.0, 0.0};

// The share at which host and device end their updates at the same time. The host updates at its
// rate while the link carries the state that visits and the weights that the host updated. 0.25 if
// a rate is not known.
// Source: the model of Deep Optimizer States (Maurya et al., Middleware 2024), with both
// directions of the link and a continuous share; derived in the README.
double balancedDeviceShare(const Feedback& rates, const VisitBytes& bytes = kStateVisits) noexcept;

// The first element the host updates: `deviceShare` of the group, cut down to kCutElements; the
// device updates those before it. A share of 1 is the whole group.
std::int64_t firstHostElement(double deviceShare, std::int64_t elements) noexcept;

// The first of the last `share` of elements [first, end), cut up to kCutElements.
std::int64_t firstOfLastShare(double share, std::int64_t first, std::int64_t end) noexcept;

// The host gets gradients from this element on: the first it updates, or, where weights stream, the
// first of the group, because its places on the device are filled again before the norm is known.
std::int64_t firstSentElement(const GroupPlacement& placement, std::int64_t elements) noexcept;

} // namespace mr
