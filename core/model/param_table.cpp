#include "core/model/param_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace mr {

namespace {

std::int64_t aligned(std::int64_t elements)
{
    return (elements + kSlotAlign - 1) / kSlotAlign * kSlotAlign;
}

// Appends groups, slots and names; a slot's tensors follow one another in it.
class Builder
{
public:
    void group(std::string name)
    {
        m_group = GroupId{static_cast<std::int32_t>(table.groups.size())};
        table.groups.push_back({std::move(name), 0, {}});
    }

    void matrix(SlotKind kind, std::int64_t rows, std::int64_t cols)
    {
        addSlot(table, kind, rows, cols, 2);
    }
    void vector(SlotKind kind, std::int64_t length) { addSlot(table, kind, length, 1, 1); }

    // Rows [firstRow, firstRow + rows) of the slot `kind` of the last group, if it has one.
    void tensor(std::string name, SlotKind kind, std::int64_t firstRow, std::int64_t rows)
    {
        const ParamSlot* slot = table.find(m_group, kind);
        if (slot == nullptr)
            return;
        std::vector<std::int64_t> shape{rows};
        if (slot->rank == 2)
            shape.push_back(slot->cols);
        table.tensors.push_back(
            {std::move(name), m_group, slot->first + firstRow * slot->cols, std::move(shape)});
    }

    // A matrix and its bias, cut alike.
    void linear(const std::string& name, std::pair<SlotKind, SlotKind> kinds, std::int64_t firstRow,
        std::int64_t rows)
    {
        tensor(name + ".weight", kinds.first, firstRow, rows);
        tensor(name + ".bias", kinds.second, firstRow, rows);
    }

    ParamTable table;

private:
    GroupId m_group;
};

void addBlockSlots(Builder& b, const ModelConfig& c)
{
    b.vector(SlotKind::AttnNorm, c.hidden);
    b.matrix(SlotKind::Qkv, c.qkvColumns(), c.hidden);
    if (c.qkvBias)
        b.vector(SlotKind::QkvBias, c.qkvColumns());
    if (c.queryKeyNorm) {
        b.vector(SlotKind::QueryNorm, c.headDim);
        b.vector(SlotKind::KeyNorm, c.headDim);
    }
    b.matrix(SlotKind::AttnOut, c.hidden, c.attentionColumns());
    if (c.attnOutBias)
        b.vector(SlotKind::AttnOutBias, c.hidden);
    if (c.branchNorms)
        b.vector(SlotKind::AttnBranchNorm, c.hidden);
    b.vector(SlotKind::MlpNorm, c.hidden);
    b.matrix(SlotKind::GateUp, 2 * c.intermediate, c.hidden);
    if (c.mlpBias)
        b.vector(SlotKind::GateUpBias, 2 * c.intermediate);
    b.matrix(SlotKind::Down, c.hidden, c.intermediate);
    if (c.mlpBias)
        b.vector(SlotKind::DownBias, c.hidden);
    if (c.branchNorms)
        b.vector(SlotKind::MlpBranchNorm, c.hidden);
}

void addAttentionTensors(Builder& b, const ModelConfig& c, const std::string& prefix)
{
    const std::int64_t q = c.heads * c.headDim;
    const std::int64_t kv = c.kvHeads * c.headDim;
    const std::pair qkv{SlotKind::Qkv, SlotKind::QkvBias};
    if (c.fusedProjections) {
        b.linear(prefix + "qkv_proj", qkv, 0, c.qkvColumns());
    } else {
        b.linear(prefix + "q_proj", qkv, 0, q);
        b.linear(prefix + "k_proj", qkv, q, kv);
        b.linear(prefix + "v_proj", qkv, q + kv, kv);
    }
    b.linear(prefix + "o_proj", {SlotKind::AttnOut, SlotKind::AttnOutBias}, 0, c.hidden);
    b.tensor(prefix + "q_norm.weight", SlotKind::QueryNorm, 0, c.headDim);
    b.tensor(prefix + "k_norm.weight", SlotKind::KeyNorm, 0, c.headDim);
}

void addMlpTensors(Builder& b, const ModelConfig& c, const std::string& prefix)
{
    const std::pair gateUp{SlotKind::GateUp, SlotKind::GateUpBias};
    if (c.fusedProjections) {
        b.linear(prefix + "gate_up_proj", gateUp, 0, 2 * c.intermediate);
    } else {
        b.linear(prefix + "gate_proj", gateUp, 0, c.intermediate);
        b.linear(prefix + "up_proj", gateUp, c.intermediate, c.intermediate);
    }
    b.linear(prefix + "down_proj", {SlotKind::Down, SlotKind::DownBias}, 0, c.hidden);
}

void addBlockTensors(Builder& b, const ModelConfig& c, const std::string& prefix)
{
    addAttentionTensors(b, c, prefix + "self_attn.");
    addMlpTensors(b, c, prefix + "mlp.");
    b.tensor(prefix + "input_layernorm.weight", SlotKind::AttnNorm, 0, c.hidden);
    // The older name became that of attention's own output norm.
    const char* mlpNorm =
        c.branchNorms ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight";
    b.tensor(prefix + "post_attention_layernorm.weight", SlotKind::AttnBranchNorm, 0, c.hidden);
    b.tensor(prefix + mlpNorm, SlotKind::MlpNorm, 0, c.hidden);
    b.tensor(prefix + "post_feedforward_layernorm.weight", SlotKind::MlpBranchNorm, 0, c.hidden);
}

} // namespace

std::int64_t NamedTensor::count() const noexcept
{
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

const ParamSlot* ParamTable::find(GroupId group, SlotKind kind) const noexcept
{
    if (group.value < 0 || static_cast<std::size_t>(group.value) >= groups.size())
        return nullptr;
    for (const ParamSlot& slot : groups[static_cast<std::size_t>(group.value)].paramSlots)
        if (slot.kind == kind)
            return &slot;
    return nullptr;
}

const ParamSlot& ParamTable::slotAt(GroupId group, std::int64_t first) const noexcept
{
    const auto& slots = groups[static_cast<std::size_t>(group.value)].paramSlots;
    return *std::find_if(
        slots.begin(), slots.end(), [first](const ParamSlot& slot) { return slot.first == first; });
}

ParamSlot& addSlot(ParamTable& table, SlotKind kind, std::int64_t rows, std::int64_t cols, int rank)
{
    ParamGroup& group = table.groups.back();
    const GroupId id{static_cast<std::int32_t>(table.groups.size()) - 1};
    const ParamSlot added{kind, id, group.elements, rows, cols, rank, rank == 2};
    group.paramSlots.push_back(added);
    group.elements += aligned(added.count());
    table.parameters += added.count();
    return group.paramSlots.back();
}

bool hasTiedHead(const ParamTable& model) noexcept
{
    const GroupId head{static_cast<std::int32_t>(model.groups.size()) - 1};
    return model.find(head, SlotKind::Head) == nullptr;
}

ParamTable buildParamTable(const ModelConfig& config)
{
    Builder b;
    b.table.firstNorm = config.onePlusNorms ? 0.0F : 1.0F;
    b.group("embedding");
    b.matrix(SlotKind::Embedding, config.vocab, config.hidden);
    b.tensor("model.embed_tokens.weight", SlotKind::Embedding, 0, config.vocab);
    for (std::int64_t i = 0; i < config.layers; ++i) {
        b.group(fmt::format("block {}", i));
        addBlockSlots(b, config);
        addBlockTensors(b, config, fmt::format("model.layers.{}.", i));
    }
    b.group("head");
    b.vector(SlotKind::FinalNorm, config.hidden);
    if (!config.tiedEmbedding)
        b.matrix(SlotKind::Head, config.vocab, config.hidden);
    b.tensor("model.norm.weight", SlotKind::FinalNorm, 0, config.hidden);
    b.tensor("lm_head.weight", SlotKind::Head, 0, config.vocab);
    return std::move(b.table);
}

} // namespace mr
