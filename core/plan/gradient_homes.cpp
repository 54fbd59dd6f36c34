#include "core/plan/memory_plan_internal.h"

namespace mr {

bool isContiguous(const Traversal& traversal, int layers, int microBatches)
{
    int current = layers; // none
    std::vector<bool> left(static_cast<std::size_t>(layers), false);
    for (const WorkItem& item : traversal.order(layers, microBatches)) {
        if (item.pass != WorkItem::Pass::Backward || item.layer.value == current)
            continue;
        if (current < layers)
            left[static_cast<std::size_t>(current)] = true;
        current = item.layer.value;
        if (left[static_cast<std::size_t>(current)])
            return false;
    }
    return true;
}

bool isBlock(std::size_t group, std::size_t groups)
{
    return group > 0 && group + 1 < groups;
}

BlockParts largestParts(const ModelShape& shape, const std::vector<std::int64_t>& sentFirst)
{
    BlockParts parts;
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        if (!isBlock(g, shape.groups.size()))
            continue;
        const std::int64_t elements = shape.groups[g].elements;
        parts.elements = std::max(parts.elements, elements);
        parts.onHost = std::max(parts.onHost, elements - sentFirst[g]);
        parts.onDevice = std::max(parts.onDevice, sentFirst[g]);
    }
    return parts;
}

GradientHomes gradientHomes(const BlockParts& parts, const GradientInput& input)
{
    const auto [contiguous, rounds, precision, blocks, byColumns, buffers, behindBackward] = input;
    GradientHomes homes;
    if (blocks < 2)
        return homes;
    if (behindBackward) { // used up before the next one begins, on Compute, which runs in order
        homes.sumSlots = contiguous ? 1 : 0;
        return homes;
    }
    if (byColumns) { // packed at once, on Compute, which runs in order
        homes.sumSlots = contiguous ? 1 : 0;
        homes.finishedSlots = rounds ? 1 : 0;
        return homes;
    }
    // In BF16 the device also keeps its part of a gradient that the host gets another part of.
    const bool isSplit = parts.onHost > 0 && parts.onDevice > 0;
    const bool apart = rounds || (isSplit && precision == Precision::BF16);
    // Only Compute reads a sum apart from the finished gradient, in order. Otherwise the sum itself
    // is sent, and the device's update reads it after the norm.
    if (contiguous && apart)
        homes.sumSlots = 1;
    else if (contiguous && parts.onDevice == 0)
        homes.sumSlots = buffers;
    if (apart && parts.onHost > 0)
        homes.finishedSlots = buffers;
    return homes;
}

} // namespace mr
