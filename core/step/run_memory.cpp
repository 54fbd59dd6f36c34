#include "core/step/run_memory.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace mr {
namespace {

Status missing(MemoryUse use)
{
    return Status::error(
        ErrorKind::Internal, "run memory: the plan has no " + std::string(name(use)));
}

constexpr std::array<std::array<DType, kStateParts>, 2> kTypes = {{
    {DType::U16, DType::I16, DType::F32, DType::F32, DType::F32, DType::F32},
    {DType::U16, DType::I8, DType::I8, DType::U8, DType::F32, DType::F32},
}};

} // namespace

DType typeOf(StateCodec codec, StatePart part) noexcept
{
    return kTypes[static_cast<std::size_t>(codec)][static_cast<std::size_t>(part)];
}

CompactRange compactRange(
    const std::array<std::byte*, kStateParts>& at, std::int64_t count) noexcept
{
    const auto part = [&](StatePart p) { return at[static_cast<std::size_t>(p)]; };
    return {reinterpret_cast<std::uint16_t*>(part(StatePart::High)),
        reinterpret_cast<std::int8_t*>(part(StatePart::Low)),
        reinterpret_cast<std::int8_t*>(part(StatePart::FirstMoment)),
        reinterpret_cast<std::uint8_t*>(part(StatePart::SecondMoment)),
        reinterpret_cast<float*>(part(StatePart::FirstScale)),
        reinterpret_cast<float*>(part(StatePart::SecondScale)), static_cast<std::size_t>(count)};
}

CompactRange compactRange(const GroupMemory& group, std::int64_t first, std::int64_t count) noexcept
{
    std::array<std::byte*, kStateParts> at = group.state;
    for (const StatePart part : kPartsOfTile)
        at[static_cast<std::size_t>(part)] += planeOf(StateCodec::Compact, part).bytes(first);
    return compactRange(at, count);
}

// NOLINTNEXTLINE(readability-function-size): seven facts of a run, no two of which belong together
Result<std::unique_ptr<RunMemory>> RunMemory::create(const TierStore& tiers,
    const ModelConfig& config, const ParamTable& table, const MicroShape& shape,
    std::int64_t microsInFlight, std::int64_t batchBuffers, bool recompute)
{
    auto memory = std::unique_ptr<RunMemory>(new RunMemory);
    memory->m_shape = shape;
    memory->m_codec = tiers.plan().stateCodec;
    memory->m_hidden = config.hidden;
    memory->m_layers = config.layers;
    memory->m_slots = microsInFlight;
    memory->m_recompute = recompute;
    MR_TRY(memory->bindGroups(tiers, config, table));
    MR_TRY(memory->bindWork(tiers, config, table));
    MR_TRY(memory->bindBatches(tiers, config, batchBuffers));
    if (tiers.plan().window.isActive()) {
        auto window = WindowMemory::create(tiers, shape.compute);
        MR_TRY(window.status());
        memory->window = std::move(window).value();
    }
    return memory;
}

Status RunMemory::bindGroups(
    const TierStore& tiers, const ModelConfig& config, const ParamTable& table)
{
    const std::span<std::byte> slots = tiers.find(Tier::Device, MemoryUse::WeightSlots);
    const int slotCount = tiers.plan().weightSlots;
    for (int i = 0; i < slotCount; ++i)
        m_weightSlots.push_back(slots.data() + slots.size() / static_cast<std::size_t>(slotCount) *
                                                   static_cast<std::size_t>(i));
    for (std::size_t g = 0; g < table.groups.size(); ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        GroupMemory group;
        group.elements = table.groups[g].elements;
        group.weights = tiers.find(Tier::Device, MemoryUse::Weights, id).data();
        if (!group.weights && m_weightSlots.empty())
            return missing(MemoryUse::Weights);
        group.sentFirst = tiers.plan().sentFirst[g];
        group.diskEnds = tiers.plan().diskEnds[g];
        bindGradient(tiers, id, group);
        group.hostGradient = tiers.find(Tier::PinnedHost, MemoryUse::Gradients, id).data();
        bindState(tiers, id, group);
        if (group.weights)
            group.weightViews.push_back(blockTensors(table, id, group.weights, m_shape.compute));
        else
            for (std::byte* slot : m_weightSlots)
                group.weightViews.push_back(blockTensors(table, id, slot, m_shape.compute));
        if (group.accumulator)
            group.gradientViews = blockTensors(table, id, group.accumulator, DType::F32);
        m_groups.push_back(group);
    }
    bindEnds(tiers, config, table);
    bindStateSlots(tiers);
    bindDisk(tiers);
    const bool lacksSecond =
        config.tiedEmbedding && m_groups.front().accumulator && !secondAccumulator.data;
    return lacksSecond ? missing(MemoryUse::SecondAccumulator) : Status();
}

// Scales lie behind their moments.
void RunMemory::bindState(const TierStore& tiers, GroupId id, GroupMemory& group) const
{
    group.stateOnDevice = !tiers.find(Tier::Device, MemoryUse::LowPlane, id).empty();
    const Tier tier = group.stateOnDevice ? Tier::Device : Tier::PinnedHost;
    const std::int64_t inMemory = group.stateOnDevice ? group.elements : group.diskEnds.state;
    const auto bind = [&](StatePart part, MemoryUse use, StatePart behind) {
        std::byte* plane = tiers.find(tier, use, id).data();
        group.state[static_cast<std::size_t>(part)] = plane;
        if (plane && behind != part && planeOf(m_codec, behind).exists())
            group.state[static_cast<std::size_t>(behind)] =
                plane + planeOf(m_codec, part).bytes(inMemory);
    };
    bind(StatePart::High, MemoryUse::HighPlane, StatePart::High);
    bind(StatePart::Low, MemoryUse::LowPlane, StatePart::Low);
    bind(StatePart::FirstMoment, MemoryUse::FirstMoments, StatePart::FirstScale);
    bind(StatePart::SecondMoment, MemoryUse::SecondMoments, StatePart::SecondScale);
    if (group.stateOnDevice && m_shape.compute == DType::BF16)
        group.state[static_cast<std::size_t>(StatePart::High)] = group.weights;
}

// Blocks take turns in shared slots (GradientHomes); embedding and head have bytes of their own.
void RunMemory::bindGradient(const TierStore& tiers, GroupId id, GroupMemory& group) const
{
    const GradientHomes& homes = tiers.plan().gradients;
    const auto slot = [&](MemoryUse use, int slots) {
        const std::span<std::byte> shared = tiers.find(Tier::Device, use);
        const auto index = static_cast<std::size_t>((id.value - 1) % slots);
        return shared.data() + shared.size() / static_cast<std::size_t>(slots) * index;
    };
    const auto own = [&](MemoryUse use) { return tiers.find(Tier::Device, use, id).data(); };
    const bool isBlock = id.value > 0 && id.value <= m_layers;
    const auto before = static_cast<std::size_t>(group.sentFirst);
    group.accumulator = isBlock && homes.sumSlots > 0
                            ? slot(MemoryUse::Accumulators, homes.sumSlots)
                            : own(MemoryUse::Accumulators);
    if (!group.accumulator)
        return; // evaluation only
    if (m_shape.compute == DType::F32) {
        group.gradient = group.accumulator;
        group.sentGradient = group.accumulator + before * sizeof(float);
        return;
    }
    group.gradient = own(MemoryUse::Gradients);
    group.sentGradient = isBlock && homes.finishedSlots > 0
                             ? slot(MemoryUse::Gradients, homes.finishedSlots)
                             : group.gradient + before * sizeOf(DType::BF16);
}

void RunMemory::bindStateSlots(const TierStore& tiers)
{
    std::byte* at = tiers.find(Tier::Device, MemoryUse::StateSlots).data();
    uploadLanding = tiers.find(Tier::Device, MemoryUse::UploadLanding).data();
    if (!at)
        return;
    const std::int64_t elements = tiers.plan().stateTileElements;
    const bool streamed = tiers.plan().visitsStream;
    const bool withHigh = streamed || m_shape.compute == DType::F32;
    stateSlots.resize(kStateSlots);
    for (StateSlot& slot : stateSlots) {
        for (const StatePart part : kPartsOfTile) {
            const StatePlane& plane = planeOf(m_codec, part);
            if (!plane.exists() || (part == StatePart::High && !withHigh))
                continue;
            slot.parts[static_cast<std::size_t>(part)] = at;
            at += plane.bytes(elements);
        }
        if (!streamed)
            continue;
        slot.gradient = at;
        at += static_cast<std::size_t>(elements) * sizeOf(gradientType());
    }
}

// The plan has a page more than they need, to begin at one.
void RunMemory::bindDisk(const TierStore& tiers)
{
    const MemoryPlan& plan = tiers.plan();
    m_disk = plan.disk;
    m_diskParts = plan.diskParts;
    m_boundaryHomes = plan.boundaries;
    m_firstBoundary = plan.firstBoundary();
    const std::span<std::byte> all = tiers.find(Tier::PinnedHost, MemoryUse::DiskSlots);
    if (all.empty())
        return;
    const auto address = reinterpret_cast<std::uintptr_t>(all.data());
    m_allDiskStages = all.subspan(
        (kDiskAlign - address % kDiskAlign) % kDiskAlign, plan.diskStage(plan.diskStages()));
    for (int stage = 0; stage < plan.diskStages(); ++stage) {
        const std::size_t begin = plan.diskStage(stage);
        m_diskStages.push_back(m_allDiskStages.subspan(begin, plan.diskStage(stage + 1) - begin));
    }
}

std::span<std::byte> RunMemory::diskRegion(
    int stage, std::int32_t tile, DiskRegion region) const noexcept
{
    const DiskRange& range = m_disk.tiles[static_cast<std::size_t>(tile)];
    const std::size_t bytes = diskPages(diskRegionBytes(m_diskParts, region, range.count));
    const bool isSlot = stage < m_disk.slots;
    return diskStage(stage).subspan(
        isSlot ? diskRegionOffset(m_diskParts, range, region) : 0, bytes);
}

std::byte* RunMemory::diskPlane(
    int stage, std::int32_t tile, StatePart part, std::int64_t element) const noexcept
{
    const DiskRange& range = m_disk.tiles[static_cast<std::size_t>(tile)];
    const StatePlane& plane = planeOf(m_codec, part);
    const std::int64_t value = (element - range.first) / plane.elementsPerValue;
    return diskRegion(stage, tile, m_diskParts.regionOf(part)).data() +
           diskPlaneOffset(m_diskParts, part, range.count) +
           static_cast<std::size_t>(value) * plane.valueBytes;
}

std::byte* RunMemory::hostState(
    GroupId id, StatePart part, std::int64_t element, int stage) const noexcept
{
    const GroupMemory& group = this->group(id);
    const std::int32_t tile = stage < 0 ? -1 : m_disk.tileOf(id, element);
    if (tile >= 0 && element >= group.diskEnds.of(m_diskParts.regionOf(part)))
        return diskPlane(stage, tile, part, element);
    const StatePlane& plane = planeOf(m_codec, part);
    return group.state[static_cast<std::size_t>(part)] +
           static_cast<std::size_t>(element / plane.elementsPerValue) * plane.valueBytes;
}

// Embedding and head, which the model reads apart from blocks.
void RunMemory::bindEnds(const TierStore& tiers, const ModelConfig& config, const ParamTable& table)
{
    const GroupId first{0};
    const GroupId last{static_cast<std::int32_t>(table.groups.size()) - 1};
    const GroupMemory& embed = m_groups.front();
    const GroupMemory& headGroup = m_groups.back();
    embedding = slotView(table, first, SlotKind::Embedding, embed.weights, m_shape.compute);
    headWeights.norm =
        slotView(table, last, SlotKind::FinalNorm, headGroup.weights, m_shape.compute);
    headWeights.matrix = config.tiedEmbedding ? embedding
                                              : slotView(table, last, SlotKind::Head,
                                                    headGroup.weights, m_shape.compute);
    if (!embed.accumulator)
        return; // evaluation only
    embeddingGradient = slotView(table, first, SlotKind::Embedding, embed.accumulator, DType::F32);
    headGradients.norm =
        slotView(table, last, SlotKind::FinalNorm, headGroup.accumulator, DType::F32);
    headGradients.matrix = slotView(table, last, SlotKind::Head, headGroup.accumulator, DType::F32);
    if (config.tiedEmbedding) {
        std::byte* second = tiers.find(Tier::Device, MemoryUse::SecondAccumulator, first).data();
        if (!second)
            return;
        secondAccumulator = matrixView(second, DType::F32, config.vocab, config.hidden);
        headGradients.matrix = secondAccumulator;
    }
}

Status RunMemory::bindWork(
    const TierStore& tiers, const ModelConfig& config, const ParamTable& table)
{
    const auto device = [&](MemoryUse use) { return tiers.find(Tier::Device, use).data(); };
    m_boundaries = device(MemoryUse::Boundaries);
    m_hostBoundaries = tiers.find(Tier::PinnedHost, MemoryUse::Boundaries).data();
    m_boundariesEach =
        tiers.plan().savesBoundaries ? std::min<std::int64_t>(m_layers + 2, 3) : m_layers + 2;
    m_boundaryCount = tiers.find(Tier::Device, MemoryUse::Boundaries).size() /
                      matrixView(nullptr, m_shape.compute, m_shape.tokens(), m_hidden).bytes();
    std::byte* kept = device(MemoryUse::Activations);
    for (const MemoryUse use : {MemoryUse::Boundaries, MemoryUse::Activations, MemoryUse::Workspace,
             MemoryUse::Head, MemoryUse::Constants, MemoryUse::Scalars})
        if (!device(use))
            return missing(use);
    const std::int64_t sets = m_recompute ? tiers.plan().activations.sets : m_slots * m_layers;
    m_allActivations = tiers.find(Tier::Device, MemoryUse::Activations);
    m_hostActivations = tiers.find(Tier::PinnedHost, MemoryUse::Activations).data();
    m_keptActivations = tiers.plan().keptActivations;
    m_activationTurns = tiers.plan().activations;
    m_activations.resize(static_cast<std::size_t>(sets));
    for (BlockActivations& set : m_activations)
        kept += layoutActivations(config, m_shape, kept, set);
    layoutScratch(config, m_shape, device(MemoryUse::Workspace), scratch);
    layoutHead(config, m_shape, device(MemoryUse::Head), head);
    if (std::byte* product = device(MemoryUse::HeadProduct))
        headProduct = matrixView(product, DType::F32, config.vocab, config.hidden);
    if (std::byte* cache = device(MemoryUse::KeyValueCache))
        m_cache =
            matrixView(cache, m_shape.compute, config.layers * m_shape.seqLen, config.qkvColumns());
    layoutConstants(config, m_shape, device(MemoryUse::Constants), constants);
    layoutScalars(table, m_shape, device(MemoryUse::Scalars), scalars);
    const auto hostScalarBytes = tiers.find(Tier::PinnedHost, MemoryUse::Scalars);
    if (hostScalarBytes.empty())
        return missing(MemoryUse::Scalars);
    layoutScalars(table, m_shape, hostScalarBytes.data(), hostScalars);
    const StepScalars none; // a device does not clear what it gives, and a checkpoint holds this
    std::memcpy(hostScalars.scalars.data, &none, sizeof none);
    staging = tiers.find(Tier::PinnedHost, MemoryUse::Staging);
    return staging.empty() ? missing(MemoryUse::Staging) : Status();
}

Status RunMemory::bindBatches(
    const TierStore& tiers, const ModelConfig& config, std::int64_t deviceBuffers)
{
    std::byte* device = tiers.find(Tier::Device, MemoryUse::Batches).data();
    std::byte* host = tiers.find(Tier::PinnedHost, MemoryUse::Batches).data();
    if (!device || !host)
        return missing(MemoryUse::Batches);
    batches.resize(static_cast<std::size_t>(deviceBuffers));
    hostBatches.resize(static_cast<std::size_t>(m_shape.microBatches));
    for (BatchViews& views : batches)
        device += layoutBatch(config, m_shape, device, views);
    for (BatchViews& views : hostBatches)
        host += batchBytes = layoutBatch(config, m_shape, host, views);
    return {};
}

TensorView RunMemory::boundary(std::int64_t slot, std::int64_t layer) const
{
    TensorView view = matrixView(m_boundaries, m_shape.compute, m_shape.tokens(), m_hidden);
    // Where their home is the host, outputs of layers take turns in two.
    const auto index =
        static_cast<std::size_t>(slot * m_boundariesEach + layer % (m_boundariesEach - 1));
    view.data += index % m_boundaryCount * view.bytes(); // evaluation alone has two, used in turn
    return view;
}

TensorView RunMemory::streamGradient(std::int64_t slot) const
{
    TensorView view = matrixView(m_boundaries, m_shape.compute, m_shape.tokens(), m_hidden);
    view.data += static_cast<std::size_t>((slot + 1) * m_boundariesEach - 1) * view.bytes();
    return view;
}

TensorView RunMemory::hostBoundary(std::int64_t slot, std::int64_t layer) const
{
    TensorView view = matrixView(m_hostBoundaries, m_shape.compute, m_shape.tokens(), m_hidden);
    view.data += static_cast<std::size_t>(
                     m_boundaryHomes.copyOf(static_cast<int>(layer), static_cast<int>(slot))) *
                 view.bytes();
    return view;
}

std::int32_t RunMemory::storedBoundary(std::int64_t slot, std::int64_t layer) const noexcept
{
    const std::int32_t tile =
        m_boundaryHomes.tileOf(static_cast<int>(layer), static_cast<int>(slot));
    return tile < 0 ? -1 : m_firstBoundary + tile;
}

TensorView RunMemory::weight(GroupId id, const WeightCut& slot) const
{
    const std::size_t offset = static_cast<std::size_t>(slot.first) * sizeOf(compute());
    return matrixView(group(id).weights + offset, compute(), slot.rows, slot.cols);
}

const BlockTensors& RunMemory::weightsOf(const Task& task) const
{
    const GroupMemory& group = this->group(task.group);
    return group.weightViews[group.weights ? 0 : task.slot];
}

std::byte* RunMemory::weightBytes(const Task& task) const
{
    std::byte* stay = group(task.group).weights;
    return stay ? stay : m_weightSlots[task.slot];
}

const BlockActivations& RunMemory::activations(std::int64_t slot, std::int64_t block) const
{
    return m_activations[activationIndex(slot, block)];
}

std::size_t RunMemory::activationIndex(std::int64_t slot, std::int64_t block) const
{
    if (!m_recompute)
        return static_cast<std::size_t>(slot * m_layers + block);
    return static_cast<std::size_t>(
        m_activationTurns.setOf(static_cast<int>(block), static_cast<int>(slot)));
}

std::span<std::byte> RunMemory::activationBytes(std::int64_t slot, std::int64_t block) const
{
    const std::size_t each = m_allActivations.size() / m_activations.size();
    return m_allActivations.subspan(activationIndex(slot, block) * each, each);
}

bool RunMemory::keepsActivations(std::int64_t slot, std::int64_t layer) const noexcept
{
    return !m_keptActivations.empty() && slot < m_keptActivations[static_cast<std::size_t>(layer)];
}

std::byte* RunMemory::hostActivations(std::int64_t slot, std::int64_t layer) const noexcept
{
    std::int64_t before = slot;
    for (std::int64_t other = 0; other < layer; ++other)
        before += m_keptActivations[static_cast<std::size_t>(other)];
    const std::size_t each = m_allActivations.size() / m_activations.size();
    return m_hostActivations + static_cast<std::size_t>(before) * each;
}

TensorView RunMemory::keyValueCache(std::int64_t block) const
{
    if (m_cache.data)
        return m_cache.rows(block * m_shape.seqLen, m_shape.seqLen);
    const bool streams = !m_weightSlots.empty(); // then no single sequence goes through the model
    return m_recompute || streams ? TensorView{}
                                  : activations(0, block).qkv.rows(0, m_shape.seqLen);
}

} // namespace mr
