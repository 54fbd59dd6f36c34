// PlanTerms: the inputs that all plans of a run share; refuses those that no plan is built from.
//
// Threads    Immutable.
// Ownership  Shape and policy are lent and must outlive it.

#pragma once

#include "core/plan/policy.h"
#include "core/plan/vocabulary_tiles.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mr {

// InvalidArgument: `what`, which an answer or a spec asks for, is not built.
Status notBuilt(const std::string& what);

struct PlanTerms {
    // `chosen` are the rates the placement was or is chosen by.
    PlanTerms(const ModelShape& modelShape, const Budget& bytes, const Feedback& rates,
        const OffloadPolicy& offloadPolicy);

    // InvalidArgument if an answer asks for something that is not built.
    Status check() const;

    int layers() const noexcept { return shape.layers(); }
    std::int64_t elements(GroupId group) const
    {
        return shape.groups[static_cast<std::size_t>(group.value)].elements;
    }
    // Is the home of its weights the host?
    bool streamsGroup(GroupId group) const
    {
        return placements[static_cast<std::size_t>(group.value)].weights != Tier::Device;
    }

    std::int64_t frozenElements(GroupId group) const
    {
        return shape.groups[static_cast<std::size_t>(group.value)].frozenElements;
    }
    // Does the device update it behind its own backward?
    bool isBehindBackward(GroupId group) const
    {
        return placements[static_cast<std::size_t>(group.value)].behindBackward;
    }
    // Does its state visit the device with bytes that come there? Random16 has none, and its
    // weights only go home.
    bool fetchesState(GroupId group) const
    {
        return hasLowPlane(policy.stateCodec) || !isBehindBackward(group);
    }
    // The group's frozen weights are on disk from this element on.
    std::int64_t frozenDiskFirst(GroupId group) const;
    // Do its weights, of embedding or head, come by tiles?
    bool isTiled(GroupId group) const
    {
        return placements[static_cast<std::size_t>(group.value)].tileRows > 0;
    }
    // Do its frozen weights come to a slot?
    bool fetchesFrozen(GroupId group) const
    {
        return placements[static_cast<std::size_t>(group.value)].fetchesFrozen();
    }

    const ModelShape& shape;
    const Budget budget;
    const Feedback chosen;
    const OffloadPolicy& policy;
    const std::vector<GroupPlacement> placements;
    const bool byColumns;
    const bool streams;   // weights of some group
    const bool usesSlots; // they, or frozen weights
    const VocabularyTiles tiles;

private:
    Status checkModel() const;
    Status checkHomes() const;
    Status checkClipping() const;
};

} // namespace mr
