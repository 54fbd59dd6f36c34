#include "core/plan/columns.h"

#include "core/plan/placement.h"

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

struct TileCut {
    std::int64_t elements = 0;  // limit of a tile; its least number of rows may exceed it
    std::int64_t diskFirst = 0; // whole rows from here on have their state on disk
};

// The first row of a weight behind the cut at which a group of 32 elements may begin.
std::int64_t firstRowOnDisk(const WeightCut& slot, std::int64_t diskFirst, std::int64_t whole)
{
    const std::int64_t before = std::max<std::int64_t>(0, diskFirst - slot.first);
    return std::min(slot.rows, roundUp((before + slot.cols - 1) / slot.cols, whole));
}

void addTiles(const TileCut& at, StateCodec codec, GroupId group, WindowLayout& layout)
{
    GroupCut& cut = layout.groups[static_cast<std::size_t>(group.value)];
    for (std::size_t s = 0; s < cut.weights.size(); ++s) {
        const WeightCut& slot = cut.weights[s];
        if (slot.packedCount() == 0)
            continue;
        const std::int64_t whole = rowsOfWholeGroups(codec, slot.cols);
        assert(codec == StateCodec::Plain || slot.first % kScaledElements == 0);
        const std::int64_t rows = std::max(whole, at.elements / slot.cols / whole * whole);
        const std::int64_t onDisk = firstRowOnDisk(slot, at.diskFirst, whole);
        for (std::int64_t row = 0; row < slot.rows;) {
            const std::int64_t end = row < onDisk ? onDisk : slot.rows;
            const std::int64_t count = std::min(rows, end - row);
            layout.tiles.push_back({group, static_cast<std::int32_t>(s),
                slot.first + row * slot.cols, count * slot.cols,
                slot.packedFirst + row * slot.complement(), count * slot.complement()});
            layout.uploadElements =
                std::max(layout.uploadElements, layout.tiles.back().packedCount);
            if (row >= onDisk)
                cut.diskFirst = std::min(cut.diskFirst, layout.tiles.back().firstElement);
            row += count;
        }
    }
}

// Where any state is on disk all tiles are as large as those there, because a slice of the host's
// update counts tiles.
void cutTiles(const ModelShape& shape, const OffloadPolicy& policy, WindowLayout& layout)
{
    std::vector<GroupPlacement> homes = policy.placement->place(shape, {}, {});
    homes.resize(shape.groups.size());
    const bool anyOnDisk = std::any_of(homes.begin(), homes.end(),
        [](const GroupPlacement& home) { return home.diskShare > 0.0; });
    TileCut at;
    at.elements = anyOnDisk ? diskTileElements(policy.tileElements) : policy.tileElements;
    for (std::size_t g = layout.groups.size(); g-- > 0;) {
        at.diskFirst = firstOfLastShare(homes[g].diskShare, 0, shape.groups[g].elements);
        addTiles(at, policy.stateCodec, GroupId{static_cast<std::int32_t>(g)}, layout);
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
    cut.diskFirst = shape.elements;
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
    cutTiles(shape, policy, layout);
    return layout;
}

DiskCuts diskCuts(const WindowLayout& layout, const ModelShape& shape)
{
    DiskCuts cuts;
    for (const ComplementTile& tile : layout.tiles)
        if (tile.firstElement >=
            layout.groups[static_cast<std::size_t>(tile.group.value)].diskFirst)
            cuts.tiles.push_back({tile.group, tile.firstElement, 0});
    std::sort(cuts.tiles.begin(), cuts.tiles.end(), [](const DiskRange& a, const DiskRange& b) {
        return a.group == b.group ? a.first < b.first : a.group < b.group;
    });
    for (std::size_t i = 0; i < cuts.tiles.size(); ++i) {
        DiskRange& tile = cuts.tiles[i];
        const bool isLast = i + 1 == cuts.tiles.size() || cuts.tiles[i + 1].group != tile.group;
        const auto group = static_cast<std::size_t>(tile.group.value);
        const std::int64_t end = isLast ? shape.groups[group].elements : cuts.tiles[i + 1].first;
        tile.count = end - tile.first;
        cuts.tileElements = std::max(cuts.tileElements, tile.count);
    }
    cuts.slots = static_cast<int>(std::min<std::size_t>(kDiskSlots, cuts.tiles.size()));
    return cuts;
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
