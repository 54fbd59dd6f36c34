#include "core/plan/memory_plan.h"

#include "core/plan/memory_plan_internal.h"
#include "core/plan/placement.h"
#include "core/plan/traversal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace mr {

namespace {

constexpr std::array<std::string_view, 43> kUseNames = {"weights", "high plane", "low plane",
    "first moments", "second moments", "accumulators", "second accumulator", "gradients",
    "boundaries", "activations", "workspace", "head", "head product", "batches", "constants",
    "scalars", "staging", "attention cache", "state slots", "upload landing", "urgent state",
    "urgent gradients", "urgent sums", "urgent scratch", "column energies", "column lists",
    "packed gradients", "upload slots", "window sums", "window scalars", "weight slots",
    "disk slots", "state on disk", "weights on disk", "gradients on disk", "boundaries on disk",
    "frozen weights", "packed landing", "averages of squares", "update scratch", "input codes",
    "moved copies", "shared"};

// The largest stage that a tile of frozen weights comes to.
std::size_t largestFrozenStage(const DiskCuts& disk, const ModelShape& shape, std::size_t each)
{
    std::size_t largest = 0;
    for (const FrozenTile& tile : disk.frozen)
        largest = std::max(largest,
            frozenStageBytes(tile, shape.groups[static_cast<std::size_t>(tile.group.value)], each));
    return largest;
}

void addDisk(ItemList& list, MemoryPlan& cuts, const ModelShape& shape, Precision precision)
{
    if (!cuts.usesDisk())
        return;
    constexpr std::array<MemoryUse, kDiskRegions> kUses = {
        MemoryUse::DiskState, MemoryUse::DiskWeights, MemoryUse::DiskGradients};
    const auto pages = [&](DiskRegion region, std::int64_t count) {
        return diskPages(diskRegionBytes(cuts.diskParts, region, count));
    };
    std::vector<std::array<std::size_t, kDiskRegions>> bytes(cuts.diskEnds.size());
    std::array<std::size_t, kDiskRegions> stage{}; // bytes in the largest tile, by region
    for (const DiskRange& tile : cuts.disk.tiles) {
        cuts.diskSlotBytes = std::max(cuts.diskSlotBytes, diskSlotBytes(cuts.diskParts, tile));
        for (std::size_t r = 0; r < kDiskRegions; ++r) {
            const auto region = static_cast<DiskRegion>(r);
            const std::size_t size = tile.has(region) ? pages(region, tile.count) : 0;
            bytes[static_cast<std::size_t>(tile.group.value)][r] += size;
            stage[r] = std::max(stage[r], size);
        }
    }
    for (std::size_t g = 0; g < bytes.size(); ++g)
        for (std::size_t r = 0; r < kDiskRegions; ++r)
            list.add(Tier::Disk, kUses[r], GroupId{static_cast<std::int32_t>(g)}, bytes[g][r]);
    if (cuts.usesScratch())
        list.add(Tier::Disk, MemoryUse::DiskState, kOfTheRun, kDiskAlign);
    cuts.weightStageBytes =
        std::max(stage[1], largestFrozenStage(cuts.disk, shape, computeBytes(precision)));
    cuts.gradientStageBytes = stage[2];
    cuts.boundaryStageBytes = cuts.boundaries.onDisk > 0 ? diskPages(shape.keptBytes()) : 0;
    list.add(Tier::Disk, MemoryUse::DiskBoundaries, kOfTheRun,
        cuts.boundaryStageBytes * static_cast<std::size_t>(cuts.boundaries.onDisk));
    list.add(Tier::PinnedHost, MemoryUse::DiskSlots, kOfTheRun,
        cuts.diskStage(cuts.diskStages()) + kDiskAlign);
}

void addWeightSlots(ItemList& list, MemoryPlan& cuts, const ModelShape& shape,
    const std::vector<GroupPlacement>& placements, Precision precision, int buffers)
{
    std::int64_t largest = 0;
    int groups = 0;
    for (std::size_t g = 0; g < placements.size(); ++g) {
        const bool isFrozen = placements[g].fetchesFrozen();
        if (placements[g].weights == Tier::Device && !isFrozen)
            continue;
        const GroupShape& group = shape.groups[g];
        const std::int64_t elements = placements[g].tileRows > 0 ? cuts.vocabulary.largest()
                                      : isFrozen                 ? group.frozenElements
                                                                 : group.elements;
        largest = std::max(largest, elements);
        ++groups;
    }
    cuts.weightSlots = std::min(groups, buffers);
    list.add(Tier::Device, MemoryUse::WeightSlots, kOfTheRun,
        computeBytes(precision) * static_cast<std::size_t>(cuts.weightSlots) *
            static_cast<std::size_t>(largest));
}

void addFrozen(ItemList& list, const ModelShape& shape,
    const std::vector<GroupPlacement>& placements, Precision precision)
{
    std::size_t landing = 0;
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        const GroupShape& group = shape.groups[g];
        const GroupId id{static_cast<std::int32_t>(g)};
        const std::size_t each = computeBytes(precision);
        const std::int64_t here =
            firstFrozenOnDisk(placements[g].frozenOnDisk, group.frozenElements);
        list.add(
            placements[g].frozen, MemoryUse::FrozenWeights, id, group.frozenBytes(0, here, each));
        list.add(Tier::Disk, MemoryUse::FrozenWeights, id,
            group.frozenBytes(here, group.frozenElements - here, each));
        if (placements[g].frozen != Tier::Device)
            landing = std::max(landing, group.packedBytes);
    }
    list.add(Tier::Device, MemoryUse::PackedLanding, kOfTheRun, landing);
}

// The host has a buffer for every micro-batch of the step: the engine fills them all before it
// enqueues, because it runs ahead of the copies.
void addBothSides(ItemList& list, const ModelShape& shape, int deviceBuffers, int microBatches)
{
    list.add(Tier::Device, MemoryUse::Batches, kOfTheRun,
        shape.batchBytes * static_cast<std::size_t>(deviceBuffers));
    list.add(Tier::PinnedHost, MemoryUse::Batches, kOfTheRun,
        shape.batchBytes * static_cast<std::size_t>(microBatches));
    for (const Tier tier : {Tier::Device, Tier::PinnedHost})
        list.add(tier, MemoryUse::Scalars, kOfTheRun, shape.scalarBytes);
    list.add(Tier::Device, MemoryUse::Workspace, kOfTheRun, shape.backwardScratchBytes);
    list.add(Tier::Device, MemoryUse::Constants, kOfTheRun, shape.constantBytes);
    list.add(Tier::PinnedHost, MemoryUse::Staging, kOfTheRun, kStagingBytes);
}

// The outputs of the embedding and of each block, and the gradient of the stream. Where their home
// is not the device, a layer reads one and writes the other; the last two stay until backward reads
// them. So it is where codes of them wait, of which the device has as many as it had of them.
void addBoundaries(
    ItemList& list, const ModelShape& shape, std::size_t inFlight, const MemoryPlan& cuts)
{
    const auto layers = static_cast<std::size_t>(shape.layers());
    const bool probes = isForwardOnly(cuts.optimizer);
    const bool inTurn = cuts.savesBoundaries || shape.codesInputs() || probes;
    const std::size_t onDevice =
        (inTurn ? std::min<std::size_t>(layers, 3) : layers) * (probes ? 2 : 1); // of both copies
    const std::size_t codes =
        cuts.savesBoundaries ? std::min<std::size_t>(layers - 2, 2) : layers - 2;
    list.add(
        Tier::Device, MemoryUse::Boundaries, kOfTheRun, shape.boundaryBytes * onDevice * inFlight);
    list.add(
        Tier::Device, MemoryUse::InputCodes, kOfTheRun, shape.keptBoundaryBytes * codes * inFlight);
    list.add(Tier::Device, MemoryUse::Shared, kOfTheRun,
        shape.sharedBytes * inFlight * (probes ? 2 : 1));
    list.add(Tier::PinnedHost, MemoryUse::Boundaries, kOfTheRun,
        shape.keptBytes() * static_cast<std::size_t>(cuts.boundaries.onHost));
}

// How often work on a block finds the work before it in its own place.
int samePlaces(const std::vector<WorkItem>& order, int layers, int inFlight, ActivationTurns turns)
{
    int same = 0;
    int last = -1;
    for (const WorkItem& item : order) {
        if (item.layer.value == 0 || item.layer.value == layers - 1)
            continue;
        const int set = turns.setOf(item.layer.value - 1, item.micro.value % inFlight);
        same += set == last ? 1 : 0;
        last = set;
    }
    return same;
}

void keepActivations(const std::vector<GroupPlacement>& placements,
    const std::vector<WorkItem>& order, int inFlight, MemoryPlan& cuts)
{
    for (const GroupPlacement& home : placements) {
        cuts.keptActivations.push_back(keptMicroBatches(home.activationsOnHost, inFlight));
        if (cuts.keptActivations.back() > 0)
            cuts.activations.sets = 2;
    }
    const int layers = static_cast<int>(placements.size());
    const auto same = [&](int stride) {
        return samePlaces(order, layers, inFlight, {cuts.activations.sets, stride});
    };
    cuts.activations.stride = same(0) < same(1) ? 0 : 1;
}

void addActivations(ItemList& list, const StepSpec& spec, const ModelShape& shape, int inFlight,
    const MemoryPlan& cuts)
{
    const auto layers = static_cast<std::size_t>(shape.layers());
    const auto flying = static_cast<std::size_t>(inFlight);
    const std::size_t blocks = layers - 2;
    const std::size_t sets =
        spec.recompute == Recompute::Block
            ? std::min<std::size_t>(blocks, 1) * static_cast<std::size_t>(cuts.activations.sets)
            : blocks * flying;
    // All blocks share the bytes of what is made again.
    const std::size_t shared =
        spec.recompute == Recompute::Cheap && blocks > 0 ? shape.remadeBytesPerBlock : 0;
    std::size_t onHost = 0;
    for (const std::int32_t copies : cuts.keptActivations)
        onHost += static_cast<std::size_t>(copies);
    list.add(
        Tier::PinnedHost, MemoryUse::Activations, kOfTheRun, shape.savedBytesPerBlock * onHost);
    list.add(Tier::Device, MemoryUse::Activations, kOfTheRun,
        (shape.savedBytesPerBlock - shared) * sets + shared);
    list.add(Tier::Device, MemoryUse::Head, kOfTheRun,
        cuts.vocabulary.any() ? shape.headRowsBytes * flying + shape.headTileBytes
                              : shape.headScratchBytes);
    list.add(Tier::Device, MemoryUse::HeadProduct, kOfTheRun, shape.headProductBytes);
    list.add(Tier::Device, MemoryUse::SecondAccumulator, GroupId{0},
        sizeof(float) * static_cast<std::size_t>(shape.secondAccumulatorElements));
}

// Finds where the host's parts begin. Returns the largest parts.
SlotInput cutGroups(
    const ModelShape& shape, const std::vector<GroupPlacement>& placements, MemoryPlan& cuts)
{
    SlotInput largest;
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        const GroupPlacement& home = placements[g];
        const std::int64_t elements = shape.groups[g].elements;
        const std::int64_t first = firstHostElement(home.deviceShare, elements);
        const HostCuts host = hostCuts(home, 0.0, elements);
        cuts.diskEnds.push_back(
            {cuts.window.isActive() ? cuts.window.groups[g].diskFirst : host.diskFirst,
                host.weightsFirst, host.gradientsFirst});
        cuts.hostFirst.push_back(first);
        cuts.sentFirst.push_back(firstSentElement(home, elements));
        const bool streams = home.weights != Tier::Device;
        cuts.statesOnDevice.push_back(home.state == Tier::Device);
        largest.largestUpload =
            std::max(largest.largestUpload, streams ? elements : elements - cuts.sentFirst.back());
        if (home.state == Tier::Device)
            continue;
        largest.largestVisit = std::max(largest.largestVisit, first);
        if (!streams)
            continue;
        if (home.tileRows > 0)
            continue; // its state comes with its weights
        if (home.behindBackward)
            largest.largestStream = std::max(largest.largestStream, elements);
        else
            cuts.visitsStream = cuts.visitsStream || first > 0;
    }
    return largest;
}

std::vector<double> boundaryShares(const std::vector<GroupPlacement>& placements)
{
    std::vector<double> shares;
    for (const GroupPlacement& placement : placements)
        shares.push_back(placement.boundariesOnDisk);
    return shares;
}

} // namespace

std::string_view name(MemoryUse use) noexcept
{
    return kUseNames[static_cast<std::size_t>(use)];
}

std::size_t MemoryPlan::bytes(Tier tier) const noexcept
{
    std::size_t sum = 0;
    for (const MemoryItem& item : items)
        sum += item.tier == tier ? item.bytes : 0;
    return sum;
}

std::size_t MemoryPlan::bytes(Tier tier, MemoryUse use) const noexcept
{
    std::size_t sum = 0;
    for (const MemoryItem& item : items)
        sum += item.tier == tier && item.use == use ? item.bytes : 0;
    return sum;
}

std::int32_t MemoryPlan::firstBoundary() const noexcept
{
    return static_cast<std::int32_t>(disk.tiles.size()) + disk.weightTiles + disk.gradientTiles;
}

std::size_t MemoryPlan::diskStage(int stage) const noexcept
{
    std::size_t begin = 0;
    int left = stage;
    const auto pass = [&](int places, std::size_t bytes) {
        const int passed = std::min(left, places);
        begin += static_cast<std::size_t>(passed) * bytes;
        left -= passed;
    };
    pass(disk.slots, diskSlotBytes);
    pass(disk.weightStages, weightStageBytes);
    pass(disk.gradientStages, gradientStageBytes);
    pass(boundaries.stages, boundaryStageBytes);
    return begin;
}

Result<MemoryPlan> planMemory(const StepSpec& spec, const ModelShape& shape, const Budget& budget,
    const Feedback& last, const OffloadPolicy& policy)
{
    MR_TRY(checkInput(spec, shape, policy.stateCodec));
    const std::vector<GroupPlacement> placements = placeGroups(policy, shape, budget, last);
    MR_TRY(checkCodes(spec, shape, placements));
    const int inFlight = microBatchesInFlight(*policy.traversal, shape.layers(), spec.microBatches);
    MR_TRY(checkBackward(spec, shape, policy, inFlight));
    MemoryPlan cuts;
    cuts.stateCodec = policy.stateCodec;
    cuts.optimizer = policy.optimizer;
    cuts.gradientBytes = isLight(policy.optimizer) ? sizeof(float) : computeBytes(spec.precision);
    cuts.window = windowLayout(shape, policy, spec.clipNorm);
    const bool byColumns = cuts.window.isActive();
    cuts.disk = diskCuts(shape, placements, policy, last, sendsOf(policy, spec, byColumns));
    cuts.diskParts = {policy.stateCodec, spec.precision == Precision::BF16};
    SlotInput largest = cutGroups(shape, placements, cuts);
    largest.precision = spec.precision;
    largest.tileElements = policy.tileElements;
    largest.byColumns = byColumns;
    const BlockParts parts = largestParts(shape, cuts.sentFirst);
    const bool probes = isForwardOnly(policy.optimizer);
    if (probes)
        cuts.gradientBytes = 0; // there is none
    for (std::size_t g = 0; g < shape.groups.size(); ++g)
        cuts.sumBytes.push_back(probes ? 0 : sumBytes(shape, spec, policy.optimizer, g));
    cuts.gradients = gradientHomes(
        parts, {isContiguous(*policy.traversal, shape.layers(), spec.microBatches),
                   cuts.sumBytes[1] > cuts.gradientBytes, spec.precision, shape.layers() - 2,
                   byColumns, policy.buffers, isLight(policy.optimizer)});
    cuts.vocabulary = tilesOf(shape, placements.back().tileRows);
    MR_TRY(checkRows(spec, cuts.vocabulary));
    if (probes)
        cuts.gradients = {};
    else if (isLight(policy.optimizer) &&
             isContiguous(*policy.traversal, shape.layers(), spec.microBatches))
        shareEnds(shape, cuts.gradients);
    ItemList list;
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        addGroup(list,
            {GroupId{static_cast<std::int32_t>(g)}, shape.groups[g].elements,
                sumElements(shape, cuts.gradients, g), cuts.sentFirst[g], cuts.diskEnds[g],
                placements[g].weights, placements[g].state, placements[g].behindBackward,
                isBlock(g, shape.groups.size()), byColumns, cuts.diskParts, cuts.sumBytes[g],
                cuts.sumIsFinished(g)},
            cuts.gradients, spec.precision);
    }
    addSlots(list, cuts, parts, largest);
    addLight(list, shape, policy.optimizer);
    if (probes)
        addMovedCopies(list, shape, spec.precision);
    if (byColumns)
        addWindow(list, cuts.window, spec.precision);
    cuts.savesBoundaries = savesBoundaries(placements) && !probes;
    if (cuts.savesBoundaries)
        cuts.boundaries = boundaryHomes(*policy.traversal, spec.microBatches,
            boundaryShares(placements), passesTwice(policy, spec));
    addDisk(list, cuts, shape, spec.precision);
    addFrozen(list, shape, placements, spec.precision);
    addWeightSlots(list, cuts, shape, placements, spec.precision, policy.buffers);
    addBothSides(list, shape, batchBuffers(inFlight), spec.microBatches);
    addBoundaries(list, shape, static_cast<std::size_t>(inFlight), cuts);
    if (spec.recompute == Recompute::Block)
        keepActivations(
            placements, policy.traversal->order(shape.layers(), spec.microBatches), inFlight, cuts);
    addActivations(list, spec, shape, inFlight, cuts);
    cuts.items = list.take();
    return cuts;
}

MemoryPlan planInferenceMemory(const StepSpec& spec, const ModelShape& shape)
{
    ItemList list;
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        list.add(Tier::Device, MemoryUse::Weights, GroupId{static_cast<std::int32_t>(g)},
            computeBytes(spec.precision) * static_cast<std::size_t>(shape.groups[g].elements));
    }
    addFrozen(list, shape, std::vector<GroupPlacement>(shape.groups.size()), spec.precision);
    addBothSides(list, shape, batchBuffers(1), spec.microBatches);
    // A layer reads one and writes the other.
    list.add(Tier::Device, MemoryUse::Boundaries, kOfTheRun, 2 * shape.boundaryBytes);
    list.add(Tier::Device, MemoryUse::Shared, kOfTheRun, shape.sharedBytes);
    list.add(Tier::Device, MemoryUse::Activations, kOfTheRun,
        shape.layers() > 2 ? shape.savedBytesPerBlock : 0);
    list.add(Tier::Device, MemoryUse::Head, kOfTheRun, shape.headInferenceBytes);
    MemoryPlan plan;
    plan.hostFirst.assign(shape.groups.size(), 0);
    plan.sentFirst = plan.hostFirst;
    plan.diskEnds.resize(shape.groups.size());
    plan.items = list.take();
    return plan;
}

} // namespace mr
