#include "core/step/run_memory.h"

#include "core/model/frozen_model.h"

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

} // namespace

// NOLINTNEXTLINE(readability-function-size): seven facts of a run, no two of which belong together
Result<std::unique_ptr<RunMemory>> RunMemory::create(const TierStore& tiers,
    const ModelConfig& config, const ParamTable& table, const MicroShape& shape,
    std::int64_t microsInFlight, std::int64_t batchBuffers, Recompute recompute)
{
    auto memory = std::unique_ptr<RunMemory>(new RunMemory);
    memory->m_shape = shape;
    memory->m_codec = tiers.plan().stateCodec;
    memory->m_optimizer = tiers.plan().optimizer;
    memory->m_stateSlots = tiers.plan().stateSlots;
    memory->m_slots = microsInFlight;
    memory->m_recompute = recompute;
    memory->m_vocabulary = tiers.plan().vocabulary;
    MR_TRY(memory->bindGroups(tiers, config, table));
    MR_TRY(memory->bindWork(tiers, config, table));
    MR_TRY(memory->bindBatches(tiers, config, batchBuffers));
    if (config.inputsAreOnHost()) {
        MR_ASSIGN(InputTable opened, InputTable::open(config));
        memory->inputTable = std::make_unique<InputTable>(std::move(opened));
    }
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
        m_groups.push_back(bindGroup(tiers, table, id, m_shape.compute, m_weightSlots));
        if (m_groups.back().weightViews.empty())
            return missing(MemoryUse::Weights);
    }
    bindSharedGaps(tiers.plan().gradients, table, m_groups);
    bindEnds(tiers, config, table);
    bindMoved(tiers, config, table);
    stateSlots = bindStateSlots(tiers, m_shape.compute);
    updateScratch = tiers.find(Tier::Device, MemoryUse::UpdateScratch).data();
    uploadLanding = tiers.find(Tier::Device, MemoryUse::UploadLanding).data();
    packedLanding = tiers.find(Tier::Device, MemoryUse::PackedLanding).data();
    const bool lacksSecond =
        config.tiedEmbedding && m_groups.front().accumulator && !secondAccumulator.data;
    return lacksSecond ? missing(MemoryUse::SecondAccumulator) : Status();
}

std::byte* RunMemory::hostState(
    GroupId id, StatePart part, std::int64_t element, int stage) const noexcept
{
    const GroupMemory& group = this->group(id);
    const std::int32_t tile = stage < 0 ? -1 : m_disk.cuts().tileOf(id, element);
    if (tile >= 0 && element >= group.diskEnds.of(m_disk.parts().regionOf(part)))
        return m_disk.plane(stage, tile, part, element);
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
    const auto weight = [&](const GroupMemory& group, GroupId id, SlotKind kind) {
        const bool isTrained = table.find(id, kind) != nullptr;
        return isTrained ? slotView(table, id, kind, group.weights, m_shape.compute)
                         : slotView(wholeModel(table), id, kind, group.frozen, m_shape.compute);
    };
    inputWeights = {weight(embed, first, SlotKind::InputProjection),
        weight(embed, first, SlotKind::InputsNorm)};
    if (!m_vocabulary.any()) {
        embedding = weight(embed, first, SlotKind::Embedding);
        headWeights.norm = weight(headGroup, last, SlotKind::FinalNorm);
        headWeights.matrix =
            config.tiedEmbedding ? embedding : weight(headGroup, last, SlotKind::Head);
    }
    // Null in an evaluation, and of what is frozen.
    const auto gradient = [&](const GroupMemory& group, GroupId id, SlotKind kind) {
        return group.accumulator ? slotView(table, id, kind, group.accumulator, group.sumType)
                                 : TensorView{};
    };
    embeddingGradient = gradient(embed, first, SlotKind::Embedding);
    inputGradients = {gradient(embed, first, SlotKind::InputProjection),
        gradient(embed, first, SlotKind::InputsNorm)};
    headGradients.norm = gradient(headGroup, last, SlotKind::FinalNorm);
    headGradients.matrix = gradient(headGroup, last, SlotKind::Head);
    if (table.find(first, SlotKind::TokenRows))
        tokenRows = {table, config.padToken,
            slotView(table, first, SlotKind::TokenRows, embed.weights, m_shape.compute), embedding,
            gradient(embed, first, SlotKind::TokenRows)};
    if (config.tiedEmbedding) {
        std::byte* second = tiers.find(Tier::Device, MemoryUse::SecondAccumulator, first).data();
        if (!second)
            return;
        const ParamSlot& trained = table.groups.front().paramSlots.front();
        secondAccumulator = matrixView(second, DType::F32, trained.rows, trained.cols);
        if (!tokenRows.any())
            headGradients.matrix = secondAccumulator;
    }
}

void RunMemory::bindMoved(
    const TierStore& tiers, const ModelConfig& config, const ParamTable& table)
{
    const GroupId first{0};
    const GroupId last{static_cast<std::int32_t>(table.groups.size()) - 1};
    const std::span<std::byte> shared = tiers.find(Tier::Device, MemoryUse::MovedCopies);
    const std::span<std::byte> own = tiers.find(Tier::Device, MemoryUse::MovedCopies, first);
    for (const std::size_t copy : {0U, 1U}) {
        if (shared.empty())
            return;
        Moved& moved = m_moved.emplace_back();
        moved.shared = shared.data() + copy * (shared.size() / 2);
        moved.embedding = own.empty() ? moved.shared : own.data() + copy * (own.size() / 2);
        for (std::size_t g = 0; g < table.groups.size(); ++g)
            moved.blocks.push_back(blockTensors(
                table, GroupId{static_cast<std::int32_t>(g)}, moved.shared, m_shape.compute));
        moved.matrix =
            slotView(table, first, SlotKind::Embedding, moved.embedding, m_shape.compute);
        const auto ofInputs = [&](SlotKind kind) {
            return slotView(table, first, kind, moved.embedding, m_shape.compute);
        };
        moved.inputs = {ofInputs(SlotKind::InputProjection), ofInputs(SlotKind::InputsNorm)};
        moved.head.norm = slotView(table, last, SlotKind::FinalNorm, moved.shared, m_shape.compute);
        moved.head.matrix = config.tiedEmbedding ? moved.matrix
                                                 : slotView(table, last, SlotKind::Head,
                                                       moved.shared, m_shape.compute);
    }
}

std::byte* RunMemory::movedWeights(GroupId id, int copy) const noexcept
{
    const Moved& moved = m_moved[static_cast<std::size_t>(copy)];
    return id.value == 0 ? moved.embedding : moved.shared;
}

const BlockTensors& RunMemory::movedBlock(GroupId id, int copy) const
{
    return m_moved[static_cast<std::size_t>(copy)].blocks[static_cast<std::size_t>(id.value)];
}

TensorView RunMemory::movedEmbedding(int copy) const
{
    return m_moved[static_cast<std::size_t>(copy)].matrix;
}

InputTensors RunMemory::movedInputs(int copy) const
{
    return m_moved[static_cast<std::size_t>(copy)].inputs;
}

HeadTensors RunMemory::movedHead(int copy) const
{
    return m_moved[static_cast<std::size_t>(copy)].head;
}

Status RunMemory::bindWork(
    const TierStore& tiers, const ModelConfig& config, const ParamTable& table)
{
    const auto device = [&](MemoryUse use) { return tiers.find(Tier::Device, use).data(); };
    for (const MemoryUse use : {MemoryUse::Boundaries, MemoryUse::Activations, MemoryUse::Workspace,
             MemoryUse::Head, MemoryUse::Constants, MemoryUse::Scalars})
        if (!device(use))
            return missing(use);
    m_boundaries = BoundaryMemory(tiers, config, m_shape);
    m_activations = ActivationMemory(tiers, config, m_shape, m_slots, m_recompute);
    bindShared(tiers, config);
    m_disk = DiskPlaces(tiers);
    m_firstPiece = tiers.plan().firstFrozenPiece();
    m_scratch.resize(static_cast<std::size_t>(config.layers));
    for (std::int64_t block = 0; block < config.layers; ++block)
        layoutScratch({config.kindOf(block), config.hidden}, m_shape, device(MemoryUse::Workspace),
            m_scratch[static_cast<std::size_t>(block)]);
    const bool trains = std::any_of(m_groups.begin(), m_groups.end(),
        [](const GroupMemory& group) { return group.accumulator != nullptr; });
    bindHead(config, trains, device(MemoryUse::Head));
    if (std::byte* product = device(MemoryUse::HeadProduct))
        headProduct = matrixView(product, DType::F32, config.vocab, config.hidden);
    if (std::byte* cache = device(MemoryUse::KeyValueCache))
        layoutCache(config, m_shape, cache, m_cache);
    layoutConstants(config, m_shape, device(MemoryUse::Constants), constants);
    layoutScalars(table, m_shape, device(MemoryUse::Scalars), scalars);
    const auto hostScalarBytes = tiers.find(Tier::PinnedHost, MemoryUse::Scalars);
    if (hostScalarBytes.empty())
        return missing(MemoryUse::Scalars);
    layoutScalars(table, m_shape, hostScalarBytes.data(), hostScalars);
    const StepScalars none; // a checkpoint may hold them before a step wrote them
    std::memcpy(hostScalars.scalars.data, &none, sizeof none);
    staging = tiers.find(Tier::PinnedHost, MemoryUse::Staging);
    return staging.empty() ? missing(MemoryUse::Staging) : Status();
}

void RunMemory::bindShared(const TierStore& tiers, const ModelConfig& config)
{
    const std::span<std::byte> all = tiers.find(Tier::Device, MemoryUse::Shared);
    SharedViews none;
    const std::size_t each = layoutShared(config, m_shape, nullptr, none);
    m_shared.resize(each == 0 ? 2 * static_cast<std::size_t>(m_slots) : all.size() / each);
    for (std::size_t slot = 0; slot < m_shared.size(); ++slot)
        layoutShared(config, m_shape, all.data() + slot * each, m_shared[slot]);
    layoutInputs(
        config, m_shape, tiers.find(Tier::Device, MemoryUse::Workspace).data(), inputScratch);
}

void RunMemory::bindHead(const ModelConfig& config, bool trains, std::byte* bytes)
{
    if (!m_vocabulary.any()) {
        layoutHead(config, m_shape, trains, bytes, head);
        return;
    }
    m_headRows.resize(static_cast<std::size_t>(m_slots));
    for (HeadRows& rows : m_headRows)
        bytes += layoutHeadRows(config, m_shape, trains, bytes, rows);
    layoutHeadTile(config, m_shape, trains, bytes, head);
    head.rows = m_headRows.front();
}

HeadScratch RunMemory::headOf(std::int64_t slot) const
{
    HeadScratch own = head;
    if (!m_headRows.empty())
        own.rows = m_headRows[static_cast<std::size_t>(slot)];
    return own;
}

HeadTile RunMemory::headTile(const Task& task, const VocabularyTile& tile) const
{
    const VocabularyShape& shape = m_vocabulary.shape;
    const std::int64_t at = shape.headFirst + tile.firstRow * shape.cols - tile.first;
    return {matrixView(m_weightSlots[task.slot] + static_cast<std::size_t>(at) * sizeOf(compute()),
                compute(), tile.rows, shape.cols),
        tile.firstRow};
}

TensorView RunMemory::headNorm(const Task& task) const
{
    return vectorView(m_weightSlots[task.slot], compute(), m_vocabulary.shape.cols);
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

TensorView RunMemory::weight(GroupId id, const WeightCut& slot) const
{
    const std::size_t offset = static_cast<std::size_t>(slot.first) * sizeOf(compute());
    return matrixView(group(id).weights + offset, compute(), slot.rows, slot.cols);
}

const BlockTensors& RunMemory::weightsOf(const Task& task) const
{
    const GroupMemory& group = this->group(task.group);
    return group.weightViews[group.modelWeights() ? 0 : task.slot];
}

std::byte* RunMemory::weightBytes(const Task& task) const
{
    const GroupMemory& group = this->group(task.group);
    const bool haveSlot = task.kind == TaskKind::FetchFrozen || group.streams();
    return haveSlot ? m_weightSlots[task.slot] : group.weights;
}

std::byte* RunMemory::updatedWeights(const Task& task) const
{
    const GroupMemory& group = this->group(task.group);
    return group.streams() ? m_weightSlots[slotsOf(task).weights] : group.weights;
}

BlockCache RunMemory::cacheOf(std::int64_t block) const
{
    if (!m_cache.empty())
        return m_cache[static_cast<std::size_t>(block)];
    const bool streams = !m_weightSlots.empty(); // then no single sequence goes through the model
    if (m_recompute == Recompute::Block || streams)
        return {};
    const BlockActivations kept = m_activations.of(0, block);
    if (kept.state.data != nullptr)
        return {{}, kept.history, kept.state};
    return {kept.qkv.rows(0, m_shape.seqLen), {}, {}};
}

} // namespace mr
