#include "core/plan/columns.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace mr {
namespace {

std::int64_t roundUp(std::int64_t n, std::int64_t to)
{
    return (n + to - 1) / to * to;
}

std::int64_t urgentColumns(const WeightShape& slot, const GradientSplit& split)
{
    if (slot.isVector)
        return split.urgentVectors ? slot.cols : 0;
    // A share such as 0.3 of 10 columns is 3, though 0.3 * 10 may be a little less.
    const double columns = split.urgentShare * static_cast<double>(slot.cols);
    return std::min(slot.cols, static_cast<std::int64_t>(std::floor(columns + 1e-9)));
}

void addTiles(const GroupCut& cut, GroupId group, const OffloadPolicy& policy, WindowLayout& layout)
{
    for (std::size_t s = 0; s < cut.weights.size(); ++s) {
        const WeightCut& slot = cut.weights[s];
        if (slot.packedCount() == 0)
            continue;
        const std::int64_t whole = rowsOfWholeGroups(policy.stateCodec, slot.cols);
        assert(policy.stateCodec == StateCodec::Plain || slot.first % kScaledElements == 0);
        const std::int64_t rows = std::max(whole, policy.tileElements / slot.cols / whole * whole);
        for (std::int64_t row = 0; row < slot.rows; row += rows) {
            const std::int64_t count = std::min(rows, slot.rows - row);
            layout.tiles.push_back({group, static_cast<std::int32_t>(s),
                slot.first + row * slot.cols, count * slot.cols,
                slot.packedFirst + row * slot.complement(), count * slot.complement()});
            layout.uploadElements =
                std::max(layout.uploadElements, layout.tiles.back().packedCount);
        }
    }
}

} // namespace

GroupCut cutByColumns(const GroupShape& shape, const GradientSplit& split)
{
    GroupCut cut;
    for (const WeightShape& slot : shape.weights) {
        WeightCut& out = cut.weights.emplace_back();
        out.first = slot.first;
        out.rows = slot.rows;
        out.cols = slot.cols;
        out.urgent = urgentColumns(slot, split);
        out.packedFirst = cut.packed;
        out.denseFirst = roundUp(cut.dense, kDenseAlign);
        out.listFirst = cut.columns;
        cut.packed += out.packedCount();
        cut.dense = out.denseFirst + out.denseCount();
        cut.columns += out.cols;
        cut.widest = std::max(cut.widest, out.urgent);
    }
    cut.dense = roundUp(cut.dense, kDenseAlign);
    return cut;
}

WindowLayout windowLayout(const ModelShape& shape, const OffloadPolicy& policy, double clipNorm)
{
    WindowLayout layout;
    const GroupId first{0};
    const UpdateRule rule = policy.clock->rule(first, kWholeRun, {});
    const GradientSplit split = policy.router->split(first, kWholeRun, {});
    if (rule.windowSteps == 1 && rule.maxStaleSteps == 0 && split.urgentShare == 0.0 &&
        !split.urgentVectors)
        return layout;
    layout.columnEnergy = policy.columnEnergy;
    layout.hostClock = policy.hostClock;
    layout.steps = rule.windowSteps;
    layout.banks = rule.besideNext ? 2 : 1;
    layout.onDevice = policy.windowSums == Tier::Device && rule.windowSteps > 1;
    layout.direct = layout.onDevice || rule.windowSteps == 1;
    layout.hasNorm = clipNorm > 0.0 && rule.windowSteps > 1;
    for (const GroupShape& group : shape.groups)
        layout.groups.push_back(cutByColumns(group, split));
    for (std::size_t g = layout.groups.size(); g-- > 0;)
        addTiles(layout.groups[g], GroupId{static_cast<std::int32_t>(g)}, policy, layout);
    return layout;
}

std::optional<std::size_t> findTile(
    const WindowLayout& layout, GroupId group, std::int64_t firstElement) noexcept
{
    const auto& tiles = layout.tiles;
    const auto isBefore = [&](const ComplementTile& tile, std::int64_t first) {
        return tile.group == group ? tile.firstElement < first : tile.group.value > group.value;
    };
    const auto found = std::lower_bound(tiles.begin(), tiles.end(), firstElement, isBefore);
    if (found == tiles.end() || found->group != group || found->firstElement != firstElement)
        return {};
    return static_cast<std::size_t>(found - tiles.begin());
}

const ComplementTile& tileAt(const WindowLayout& layout, GroupId group, std::int64_t firstElement)
{
    const auto found = findTile(layout, group, firstElement);
    assert(found);
    return layout.tiles[*found];
}

std::size_t urgentGradientBytes(const GroupCut& cut, std::size_t computeBytes) noexcept
{
    constexpr std::size_t kListAndRow = 4 + 4;
    return std::max(computeBytes * static_cast<std::size_t>(cut.dense),
        kListAndRow * static_cast<std::size_t>(cut.widest));
}

std::int64_t complementCount(const GroupShape& shape, const GroupAnswers& answers,
    std::int64_t first, std::int64_t count) noexcept
{
    const GradientSplit split{answers.urgentShare, false, answers.urgentVectors};
    std::int64_t sum = 0;
    for (const WeightShape& slot : shape.weights) {
        const std::int64_t begin = std::max(first, slot.first);
        const std::int64_t end = std::min(first + count, slot.first + slot.rows * slot.cols);
        if (end > begin)
            sum += (end - begin) / slot.cols * (slot.cols - urgentColumns(slot, split));
    }
    return sum;
}

} // namespace mr
