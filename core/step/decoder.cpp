#include "core/step/decoder.h"

#include "core/step/host_batches.h"

#include <algorithm>

namespace mr {
namespace {

// The first `count` rows of every tensor of a set made for a whole sequence.
BlockActivations firstRows(const BlockActivations& whole, std::int64_t count)
{
    BlockActivations part = whole;
    for (TensorView* view : {&part.normed1, &part.rstd1, &part.joined, &part.deltaRstd, &part.gated,
             &part.queries, &part.keys, &part.queryRstd, &part.keyRstd, &part.values,
             &part.valueRstd, &part.attention, &part.lse, &part.attnBranch, &part.mlpBranch,
             &part.attnBranchRstd, &part.mlpBranchRstd, &part.mid, &part.normed2, &part.rstd2,
             &part.gateUp, &part.activated, &part.fed, &part.inputGateUp, &part.inputActivated,
             &part.inputBranch, &part.inputRstd})
        if (view->data != nullptr)
            *view = view->rows(0, count);
    return part;
}

} // namespace

Decoder::Decoder(Device& device, const RunMemory& memory, const ModelConfig& config,
    BlockingCopier& copier, Stream& stream)
    : m_device(device)
    , m_memory(memory)
    , m_config(config)
    , m_copier(copier)
    , m_stream(stream)
{
}

// To the first batch. A micro-batch of a run may hold several sequences; it is copied whole, but
// for rows of the inputs' table, which are the most of it.
Status Decoder::fetch(std::span<const TokenId> tokens, std::int64_t first)
{
    const BatchViews& host = m_memory.hostBatches[0];
    MicroBatchData data;
    const std::size_t whole = host.ids.bytes() / sizeof(std::int32_t);
    for (auto* field : {&data.ids, &data.targets, &data.positions, &data.visibleFrom, &data.order})
        field->assign(whole, 0);
    std::copy(tokens.begin(), tokens.end(), data.ids.begin());
    for (std::size_t i = 0; i < tokens.size(); ++i)
        data.positions[i] = static_cast<std::int32_t>(first + static_cast<std::int64_t>(i));
    MR_TRY(fillHostBatches(m_config, {&data, 1}, m_memory));
    MR_TRY(readInputRows(m_memory, 0, std::span(data.ids).first(tokens.size())));
    std::size_t bytes = m_memory.batchBytes;
    if (host.inputRows.data != nullptr) // they come last
        bytes = static_cast<std::size_t>(host.inputRows.data - host.ids.data) +
                host.inputRows.rows(0, std::ssize(tokens)).bytes();
    return m_stream.copy(m_memory.batches[0].ids.data, {host.ids.data, bytes});
}

Status Decoder::runBlock(std::int64_t block, std::int64_t first, std::int64_t count)
{
    const BatchViews& batch = m_memory.batches[0];
    LayerContext context{&m_device.ops(), &m_stream, &m_config,
        batchOfBlock(m_config, block, batch), m_config.findKind(block),
        ropeOfBlock(m_config, block, m_memory.constants), first};
    context.generates = true;
    context.block = block;
    context.shared = &m_memory.shared(0);
    context.ones = m_memory.constants.ones;
    context.batch.positions = batch.positions.rows(0, count);
    context.batch.visibleFrom = context.batch.visibleFrom.rows(0, first + count);
    BlockActivations kept = firstRows(m_memory.activations().of(0, block), count);
    const BlockCache cache = m_memory.cacheOf(block);
    kept.history = cache.history;
    kept.state = cache.state;
    if (cache.rows.data != nullptr) {
        kept.visibleQkv = cache.rows.rows(0, first + count);
        kept.qkv = kept.visibleQkv.rows(first, count);
    }
    BlockScratch scratch = m_memory.scratchOf(block);
    scratch.branch = scratch.branch.rows(0, count);
    const GroupId group{static_cast<std::int32_t>(block + 1)};
    context.adapter = m_memory.adapterOf(group);
    return forwardBlock(context, m_memory.group(group).weightViews.front(),
        {m_memory.boundaries().of(0, block).rows(0, count), {}, {}},
        m_memory.boundaries().of(0, block + 1).rows(0, count), kept, scratch);
}

Status Decoder::embed(std::int64_t count)
{
    LayerContext context{&m_device.ops(), &m_stream, &m_config, m_memory.batches[0]};
    const TensorView out = m_memory.boundaries().of(0, 0).rows(0, count);
    MR_TRY(context.ops->embed({context.batch.ids.rows(0, count), m_memory.embedding, out,
                                  static_cast<float>(m_config.embeddingScale)},
        m_stream));
    if (m_config.layerInput == 0)
        return {};
    context.shared = &m_memory.shared(0);
    return makeInputs(context, m_memory.inputWeights, out, m_memory.inputScratch);
}

Status Decoder::advance(
    std::span<const TokenId> tokens, std::int64_t first, std::span<float> logits)
{
    const auto count = static_cast<std::int64_t>(tokens.size());
    const std::int64_t seqLen = m_memory.constants.ropes.front().cosines.dims[0];
    if (count < 1 || first + count > seqLen || !m_memory.hasCache())
        return Status::error(ErrorKind::Internal, "generation: no room for these tokens");
    MR_TRY(fetch(tokens, first));
    MR_TRY(m_memory.tokenRows.place(m_stream));
    MR_TRY(embed(count));
    for (std::int64_t block = 0; block < m_config.layers; ++block)
        MR_TRY(runBlock(block, first, count));
    return logitsAt(count - 1, logits);
}

// No plan is running, so the slots are free.
Status Decoder::logitsByTiles(const LayerContext& context, const TensorView& x)
{
    const VocabularyTiles& tiles = m_memory.vocabulary();
    for (int i = 0; i < tiles.count(); ++i) {
        const VocabularyTile tile = tiles.at(i);
        Task fetch;
        fetch.kind = TaskKind::FetchWeights;
        fetch.group = GroupId{static_cast<std::int32_t>(m_memory.groupCount()) - 1};
        const std::byte* from = m_memory.hostState(fetch.group, StatePart::High, tile.first, -1);
        MR_TRY(m_stream.copy(m_memory.weightBytes(fetch),
            {from, static_cast<std::size_t>(tile.count) * sizeOf(m_memory.compute())}));
        if (i == 0)
            MR_TRY(beginLogits(context, m_memory.headNorm(fetch), x, m_memory.head));
        MR_TRY(logitsOfTile(context, m_memory.headTile(fetch, tile), m_memory.head));
    }
    return {};
}

Status Decoder::logitsAt(std::int64_t row, std::span<float> logits)
{
    const LayerContext context{&m_device.ops(), &m_stream, &m_config, m_memory.batches[0]};
    const TensorView last = m_memory.boundaries().of(0, m_config.layers).rows(row, 1);
    MR_TRY(m_memory.vocabulary().any()
               ? logitsByTiles(context, last)
               : headLogits(context, m_memory.headWeights, last, m_memory.head));
    return m_copier.toHost(std::as_writable_bytes(logits), m_memory.head.logits.data, m_stream);
}

} // namespace mr
