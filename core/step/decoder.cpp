// StepExecutor::advance and logitsAt: the blocks of training, one stretch of new tokens at a time.

#include "core/step/step_executor.h"

#include <algorithm>
#include <cstring>

namespace mr {
namespace {

// The first `count` rows of every tensor of a set made for a whole sequence.
BlockActivations firstRows(const BlockActivations& whole, std::int64_t count)
{
    BlockActivations part = whole;
    for (TensorView* view : {&part.normed1, &part.rstd1, &part.attention, &part.lse, &part.mid,
             &part.normed2, &part.rstd2, &part.gateUp, &part.activated})
        *view = view->rows(0, count);
    for (TensorView* view :
        {&part.attnBranch, &part.mlpBranch, &part.attnBranchRstd, &part.mlpBranchRstd})
        if (view->data != nullptr)
            *view = view->rows(0, count);
    return part;
}

} // namespace

Status StepExecutor::advance(
    std::span<const TokenId> tokens, std::int64_t first, std::span<float> logits)
{
    const auto count = static_cast<std::int64_t>(tokens.size());
    const std::int64_t seqLen = m_memory.constants.cosTable.dims[0];
    if (count < 1 || first + count > seqLen || !m_memory.keyValueCache(0).data)
        return Status::error(ErrorKind::Internal, "generation: no room for these tokens");
    MicroBatchData data;
    // A micro-batch of a run may hold several sequences; the batch is copied whole.
    const std::size_t whole = m_memory.hostBatches[0].ids.bytes() / sizeof(std::int32_t);
    for (auto* field : {&data.ids, &data.targets, &data.positions, &data.visibleFrom, &data.order})
        field->assign(whole, 0);
    std::copy(tokens.begin(), tokens.end(), data.ids.begin());
    for (std::size_t i = 0; i < tokens.size(); ++i)
        data.positions[i] = static_cast<std::int32_t>(first + static_cast<std::int64_t>(i));
    StepInputs inputs;
    inputs.micros = {&data, 1};
    MR_TRY(fillHostBatches(inputs));
    Stream& lane = stream(Lane::Compute);
    const BatchViews& batch = m_memory.batches[0];
    MR_TRY(lane.copy(batch.ids.data, {m_memory.hostBatches[0].ids.data, m_memory.batchBytes}));
    LayerContext context{&m_device.ops(), &lane, &m_config, batch, m_memory.constants, first};
    context.batch.positions = batch.positions.rows(0, count);
    MR_TRY(m_device.ops().embed({batch.ids.rows(0, count), m_memory.embedding,
                                    m_memory.boundary(0, 0).rows(0, count), embeddingScale()},
        lane));
    BlockScratch scratch = m_memory.scratch;
    scratch.branch = scratch.branch.rows(0, count);
    for (std::int64_t block = 0; block < m_config.layers; ++block) {
        BlockActivations kept = firstRows(m_memory.activations(0, 0), count);
        kept.visibleQkv = m_memory.keyValueCache(block).rows(0, first + count);
        kept.qkv = kept.visibleQkv.rows(first, count);
        const GroupId group{static_cast<std::int32_t>(block + 1)};
        context.batch.visibleFrom =
            batchOfBlock(m_config, block, batch).visibleFrom.rows(0, first + count);
        context.constants = constantsOfBlock(m_config, block, m_memory.constants);
        MR_TRY(forwardBlock(context, m_memory.group(group).weightViews.front(),
            m_memory.boundary(0, block).rows(0, count),
            m_memory.boundary(0, block + 1).rows(0, count), kept, scratch));
    }
    return logitsAt(count - 1, logits);
}

Status StepExecutor::logitsAt(std::int64_t row, std::span<float> logits)
{
    Stream& lane = stream(Lane::Compute);
    const LayerContext context{
        &m_device.ops(), &lane, &m_config, m_memory.batches[0], m_memory.constants};
    const TensorView last = m_memory.boundary(0, m_config.layers).rows(row, 1);
    MR_TRY(headLogits(context, m_memory.headWeights, last, m_memory.head));
    return copyThroughStaging(reinterpret_cast<std::byte*>(logits.data()),
        m_memory.head.logits.data, logits.size() * sizeof(float), false, &lane);
}

} // namespace mr
