// Parts of planMemory, for memory_plan.cpp and the files that hold some of them.

#pragma once

#include "core/plan/memory_plan.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

namespace mr {

inline constexpr GroupId kOfTheRun{-1};

inline std::size_t computeBytes(Precision precision)
{
    return precision == Precision::BF16 ? 2 : 4;
}

// Bytes of an element of a group's sums: of F32, or of the compute type, to which backward rounds a
// gradient that one micro-batch and one product make. Depends on the model and the step alone,
// because it may decide bits (LinearBackwardWeightArgs).
inline std::size_t sumBytes(
    const ModelShape& shape, const StepSpec& spec, Optimizer optimizer, std::size_t group)
{
    if (isLight(optimizer))
        return sizeof(float); // it reads the sum
    const bool isTied = shape.tiedHead && group == 0;
    const bool isHead = !shape.tiedHead && group + 1 == shape.groups.size();
    const bool isAdded = spec.microBatches > 1 || isTied || (isHead && shape.headProducts > 1);
    return isAdded ? sizeof(float) : computeBytes(spec.precision);
}

// InvalidArgument if what is asked for is not built.
Status checkInput(const StepSpec& spec, const ModelShape& shape, StateCodec codec);
Status checkRows(const StepSpec& spec, const VocabularyTiles& vocabulary);
Status checkCodes(
    const StepSpec& spec, const ModelShape& shape, const std::vector<GroupPlacement>& placements);
Status checkBackward(
    const StepSpec& spec, const ModelShape& shape, const OffloadPolicy& policy, int inFlight);

class ItemList
{
public:
    void add(Tier tier, MemoryUse use, GroupId group, std::size_t bytes)
    {
        if (bytes > 0)
            m_items.push_back({tier, use, group, bytes});
    }

    std::vector<MemoryItem> take()
    {
        std::sort(m_items.begin(), m_items.end(), [](const MemoryItem& a, const MemoryItem& b) {
            return std::tie(a.tier, a.use, a.group) < std::tie(b.tier, b.use, b.group);
        });
        return std::move(m_items);
    }

private:
    std::vector<MemoryItem> m_items;
};

// The largest block, and the largest parts of a block's gradient on each side.
struct BlockParts {
    std::int64_t elements = 0;
    std::int64_t onHost = 0;   // sent there
    std::int64_t onDevice = 0; // read there by updates
};

BlockParts largestParts(const ModelShape& shape, const std::vector<std::int64_t>& sentFirst);
bool isBlock(std::size_t group, std::size_t groups);

struct GradientInput {
    bool contiguous = false;
    bool rounds = false; // sums are F32, finished gradients BF16
    Precision precision{};
    int blocks = 0;
    bool byColumns = false;
    int buffers = 2;
    bool behindBackward = false;
};

GradientHomes gradientHomes(const BlockParts& parts, const GradientInput& input);
// Gives the sums of embedding and head the same bytes, if they are alike: for updates behind
// backward, where the head's is used up before the embedding's begins.
void shareEnds(const ModelShape& shape, GradientHomes& homes);
// Elements of a group's own sum.
std::int64_t sumElements(const ModelShape& shape, const GradientHomes& homes, std::size_t group);

// Is the backward work of every block one run of items, so that its sum is complete before the next
// block's begins?
bool isContiguous(const Traversal& traversal, int layers, int microBatches);

struct GroupInput {
    GroupId id;
    std::int64_t elements = 0;
    std::int64_t sumElements = 0; // of a sum of its own
    std::int64_t sentFirst = 0;
    DiskEnds ends;
    Tier weights{};
    Tier state{};
    bool behindBackward = false;
    bool isBlock = false;
    bool byColumns = false;
    DiskParts disk;
    std::size_t sumBytes = 0;
    bool sumIsFinished = false;
};

struct SlotInput {
    std::int64_t largestVisit = 0;  // elements of the largest group's state that visits
    std::int64_t largestStream = 0; // and of the largest group with weights that stream
    std::int64_t largestUpload = 0; // and of the largest part that comes to the device
    Precision precision{};
    std::int64_t tileElements = 0;
    bool byColumns = false;
};

// Adds what a group holds of weights, state and gradients.
void addGroup(
    ItemList& list, const GroupInput& group, const GradientHomes& homes, Precision precision);
// Adds slots that groups use in turn.
void addSlots(ItemList& list, MemoryPlan& cuts, const BlockParts& parts, const SlotInput& input);
// Adds what a light optimizer keeps, and what an update of any group works in.
void addLight(ItemList& list, const ModelShape& shape, Optimizer optimizer);
// Two copies of a layer's weights, moved both ways; a tied head reads those of the embedding again.
void addMovedCopies(ItemList& list, const ModelShape& shape, Precision precision);

// Adds the bytes that windows need, for the run and for every group.
void addWindow(ItemList& list, const WindowLayout& window, Precision precision);

} // namespace mr
