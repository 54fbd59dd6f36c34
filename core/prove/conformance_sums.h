// Sums in the order of core/device/light_update.h, with a tree of their own, and the inputs and
// shapes of the ops that make them.

#pragma once

#include "core/prove/conformance_counts.h"
#include "core/prove/conformance_shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace mr::conformance {

inline constexpr float kLightClip = 0.7F;

// Level by level; a node without a neighbour goes up.
inline float treeInOrder(std::vector<float> level)
{
    while (level.size() > 1) {
        std::vector<float> above;
        for (std::size_t i = 0; i < level.size(); i += 2)
            above.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
        level = above;
    }
    return level.empty() ? 0.0F : level[0];
}

// addTo(lane, i) gives the lane with element i. Nodes of `perNode` elements.
template <typename AddTo>
float sumInOrder(std::int64_t count, std::int64_t perNode, AddTo addTo)
{
    std::vector<float> nodes;
    for (std::int64_t first = 0; first < count; first += perNode) {
        std::array<float, 8> l{};
        for (std::int64_t i = first; i < std::min(count, first + perNode); ++i) {
            float& lane = l[static_cast<std::size_t>((i - first) % 8)];
            lane = addTo(lane, i);
        }
        nodes.push_back(((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7])));
    }
    return treeInOrder(nodes);
}

inline float plainSum(const Values& values)
{
    return sumInOrder(
        static_cast<std::int64_t>(values.size()), 256, [&](float sum, std::int64_t i) {
            return sum + asFloat(values[static_cast<std::size_t>(i)]);
        });
}

inline Input scalarsWith(CaseRun& run, bool finite)
{
    StepScalars scalars;
    scalars.clipFactor = kLightClip;
    scalars.finite = finite ? 1 : 0;
    return run.given(DType::U8, {sizeof scalars}, bytesOf(scalars));
}

// |random| + least, which may divide where least is above 0.
inline Input positive(CaseRun& run, std::int64_t count, double spread, double least)
{
    Values values = run.random(DType::F32, {count}, spread).values;
    for (double& value : values)
        value = static_cast<double>(asFloat(std::abs(value) + least));
    return run.given(DType::F32, {count}, values);
}

// Several nodes, warps, parts; nodes and rounds of a block that are full. The last have several
// rounds of a block, or of the joined parts.
inline constexpr RowShape kSumShapes[] = {{1, 1}, {1, 17}, {1, 1000}, {3, 7}, {64, 256}, {65, 257},
    {130, 520}, {1025, 33}, {2050, 9}, {1100, 44}, {8, 12}, {80, 5}, {512, 3}, {2048, 3}, {3, 1280},
    {3, 2048}, {3, 3001}, {5, 5000}, {0, 24}};
inline constexpr RowShape kLongRows[] = {
    {2, 8192}, {2, 10'240}, {2, 16'384}, {2, 140'000}, {1, 70'001}};
inline constexpr RowShape kLongColumns[] = {{17'000, 3}, {40'000, 4}};

} // namespace mr::conformance
