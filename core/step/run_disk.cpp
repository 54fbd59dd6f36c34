#include "core/step/run_disk.h"

#include "core/step/scratch_files.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace mr {

static_assert(kDiskAlign == kDiskPageBytes, "what a plan counts in pages is what a store moves");

Result<DiskLayout> runDiskLayout(const MemoryPlan& plan, std::span<const double> shares)
{
    constexpr std::array<const char*, kDiskRegions> kNames = {" state ", " weights ", " gradient "};
    std::vector<DiskTileSpec> tiles;
    for (const DiskRegion region : {DiskRegion::State, DiskRegion::Weights, DiskRegion::Gradient}) {
        int inGroup = 0;
        for (std::size_t i = 0; i < plan.disk.tiles.size(); ++i) {
            const DiskRange& tile = plan.disk.tiles[i];
            const bool isFirst = i == 0 || plan.disk.tiles[i - 1].group != tile.group;
            inGroup = isFirst ? 0 : inGroup + 1;
            if (tile.has(region))
                tiles.push_back({fmt::format("layer {}{}{}", tile.group.value,
                                     kNames[static_cast<std::size_t>(region)], inGroup),
                    diskRegionBytes(plan.diskParts, region, tile.count)});
        }
    }
    const auto layers = static_cast<int>(plan.boundaries.places.size()) / plan.boundaries.inFlight;
    for (int layer = 0; layer < layers; ++layer)
        for (int slot = 0; slot < plan.boundaries.inFlight; ++slot)
            if (plan.boundaries.tileOf(layer, slot) >= 0)
                tiles.push_back(
                    {fmt::format("layer {} boundary {}", layer, slot), plan.boundaryStageBytes});
    return tiles.empty() ? Result<DiskLayout>(DiskLayout()) : layOutTiles(tiles, shares);
}

namespace {

// Behind all tiles of scratch files.
Status addFrozen(const RunDiskSpec& spec, const FrozenPieces& frozen, DiskLayout& layout,
    DiskStore::Files& files)
{
    const auto first = static_cast<int>(layout.fileBytes.size());
    for (const std::filesystem::path& path : spec.base.files) {
        MR_ASSIGN(DiskFile file, DiskFile::openToRead(path));
        layout.fileBytes.push_back(file.bytes());
        files.others.push_back(std::move(file));
    }
    for (const FrozenPiece& piece : frozen.all())
        layout.tiles.push_back(
            {piece.name, piece.lead + piece.bytes, first + piece.file, piece.offset, true});
    return {};
}

} // namespace

Result<std::unique_ptr<DiskStore>> openRunDisk(
    const MemoryPlan& plan, const RunDiskSpec& spec, const RunDiskNeeds& needs, FailureLatch& latch)
{
    if (spec.folders.empty() && plan.usesScratch())
        return Status::error(ErrorKind::InvalidArgument,
            "this plan keeps part of the run on disk and no scratch folder is named for it; give "
            "one on an SSD (--disk-path)");
    std::vector<double> shares = spec.shares;
    shares.resize(spec.folders.size(), 1.0);
    MR_ASSIGN(auto layout, runDiskLayout(plan, shares));
    std::vector<ScratchSpec> wanted;
    for (std::size_t i = 0; i < layout.fileBytes.size(); ++i)
        wanted.push_back(
            {spec.folders[i], spec.runId, static_cast<int>(i), layout.fileBytes[i], layout.hash()});
    DiskStore::Files files;
    MR_ASSIGN(files.scratch, openScratchFiles(wanted, spec.scratch));
    MR_TRY(addFrozen(spec, needs.frozen, layout, files));
    DiskOptions options = spec.store;
    options.memory = {needs.slots};
    return DiskStore::open(std::move(layout), std::move(files), latch, std::move(options));
}

} // namespace mr
