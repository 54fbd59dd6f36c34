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

// The convolution is a vector: a matrix of four columns is none that optimizers of matrices are
// for.
void addDeltaSlots(Builder& b, const BlockKind& kind)
{
    addSlot(b.table, SlotKind::Conv, kind.delta.columns() * kind.taps, 1, 1).decayed = true;
    b.vector(SlotKind::LogDecay, kind.delta.valueHeads);
    b.vector(SlotKind::TimeBias, kind.delta.valueHeads);
    b.vector(SlotKind::DeltaNorm, kind.delta.valueDim);
}

void addBlockSlots(Builder& b, std::int64_t hidden, const BlockKind& kind)
{
    if (kind.inputNorms)
        b.vector(SlotKind::AttnNorm, hidden);
    b.matrix(SlotKind::Qkv, kind.projectedColumns(), hidden);
    if (kind.qkvBias)
        b.vector(SlotKind::QkvBias, kind.projectedColumns());
    if (kind.isDelta())
        addDeltaSlots(b, kind);
    else if (kind.normsQueries())
        b.vector(SlotKind::QueryNorm, kind.queryNormLength());
    if (!kind.isDelta() && kind.normsKeys())
        b.vector(SlotKind::KeyNorm, kind.keyNormLength());
    b.matrix(SlotKind::AttnOut, hidden, kind.mixedColumns());
    if (kind.attnOutBias)
        b.vector(SlotKind::AttnOutBias, hidden);
    if (kind.branchNorms)
        b.vector(SlotKind::AttnBranchNorm, hidden);
    if (kind.inputNorms)
        b.vector(SlotKind::MlpNorm, hidden);
    b.matrix(SlotKind::GateUp, 2 * kind.intermediate, hidden);
    if (kind.mlpBias)
        b.vector(SlotKind::GateUpBias, 2 * kind.intermediate);
    b.matrix(SlotKind::Down, hidden, kind.intermediate);
    if (kind.mlpBias)
        b.vector(SlotKind::DownBias, hidden);
    if (kind.branchNorms)
        b.vector(SlotKind::MlpBranchNorm, hidden);
    if (kind.layerInput > 0) {
        b.matrix(SlotKind::InputGate, kind.layerInput, hidden);
        b.matrix(SlotKind::InputOut, hidden, kind.layerInput);
        b.vector(SlotKind::InputNorm, hidden);
    }
}

// Their rows are looked up where a block uses them, so they come and go with the block.
void addInputTable(Builder& b, const ModelConfig& config, std::int64_t block, std::string name)
{
    if (!config.trainsInputs || config.layerInput == 0)
        return;
    b.matrix(SlotKind::InputTable, config.inputVocab, config.layerInput);
    b.tensor(std::move(name), SlotKind::InputTable, 0, config.inputVocab);
    b.table.tensors.back().firstColumn = block * config.layerInput;
    b.table.tensors.back().fileColumns = config.inputColumns();
}

// Weights that make the inputs of all blocks.
void addInputSlots(Builder& b, const ModelConfig& config)
{
    if (config.layerInput == 0)
        return;
    b.matrix(SlotKind::InputProjection, config.inputColumns(), config.hidden);
    b.vector(SlotKind::InputsNorm, config.layerInput);
}

void addInputTensors(Builder& b, const ModelConfig& config, const std::string& prefix)
{
    b.tensor(prefix + "per_layer_model_projection.weight", SlotKind::InputProjection, 0,
        config.inputColumns());
    b.tensor(
        prefix + "per_layer_projection_norm.weight", SlotKind::InputsNorm, 0, config.layerInput);
}

// The tensors of a block and their names in files.
struct BlockPlace {
    const BlockKind& kind;
    const BlockNames& names;
    std::int64_t hidden;
    std::string prefix; // "model.layers.3."

    std::string name(std::string_view module) const { return prefix + std::string(module); }
    std::string weight(std::string_view module) const { return name(module) + ".weight"; }
};

void addAttentionTensors(Builder& b, const BlockPlace& at)
{
    const std::int64_t q = at.kind.queryColumns() * (at.kind.gatesAttention ? 2 : 1);
    const std::int64_t kv = at.kind.keyColumns();
    const std::string prefix = at.name("self_attn.");
    const std::pair qkv{SlotKind::Qkv, SlotKind::QkvBias};
    if (!at.names.qkv.empty()) {
        b.linear(prefix + std::string(at.names.qkv), qkv, 0, at.kind.qkvColumns());
    } else {
        b.linear(prefix + "q_proj", qkv, 0, q);
        if (at.kind.projectedKeyColumns() > 0)
            b.linear(prefix + "k_proj", qkv, q, kv);
        if (at.kind.projectedValueColumns() > 0)
            b.linear(prefix + "v_proj", qkv, q + kv, kv);
    }
    b.linear(prefix + "o_proj", {SlotKind::AttnOut, SlotKind::AttnOutBias}, 0, at.hidden);
    b.tensor(prefix + std::string(at.names.queryNorm) + ".weight", SlotKind::QueryNorm, 0,
        at.kind.queryNormLength());
    b.tensor(prefix + std::string(at.names.keyNorm) + ".weight", SlotKind::KeyNorm, 0,
        at.kind.keyNormLength());
}

void addDeltaTensors(Builder& b, const BlockPlace& at)
{
    const DeltaShape& delta = at.kind.delta;
    const std::string prefix = at.name("linear_attn.");
    const std::pair in{SlotKind::Qkv, SlotKind::QkvBias};
    const std::int64_t gate = at.kind.ruleGateColumn();
    b.linear(prefix + "in_proj_qkv", in, 0, delta.columns());
    b.linear(prefix + "in_proj_z", in, at.kind.normGateColumn(), delta.valueColumns());
    b.linear(prefix + "in_proj_b", in, gate, delta.valueHeads);
    b.linear(prefix + "in_proj_a", in, gate + delta.valueHeads, delta.valueHeads);
    b.tensor(prefix + "conv1d.weight", SlotKind::Conv, 0, delta.columns() * at.kind.taps);
    b.table.tensors.back().shape = {delta.columns(), 1, at.kind.taps};
    b.tensor(prefix + "dt_bias", SlotKind::TimeBias, 0, delta.valueHeads);
    b.tensor(prefix + "A_log", SlotKind::LogDecay, 0, delta.valueHeads);
    b.tensor(prefix + "norm.weight", SlotKind::DeltaNorm, 0, delta.valueDim);
    b.linear(prefix + "out_proj", {SlotKind::AttnOut, SlotKind::AttnOutBias}, 0, at.hidden);
}

void addMlpTensors(Builder& b, const BlockPlace& at)
{
    const std::pair gateUp{SlotKind::GateUp, SlotKind::GateUpBias};
    const std::int64_t width = at.kind.intermediate;
    const std::string prefix = at.name(at.names.mlp) + ".";
    if (!at.names.gateUp.empty()) {
        b.linear(prefix + std::string(at.names.gateUp), gateUp, 0, 2 * width);
    } else {
        b.linear(prefix + "gate_proj", gateUp, 0, width);
        b.linear(prefix + "up_proj", gateUp, width, width);
    }
    b.linear(
        prefix + std::string(at.names.down), {SlotKind::Down, SlotKind::DownBias}, 0, at.hidden);
}

void addBlockTensors(Builder& b, const BlockPlace& at)
{
    if (at.kind.isDelta())
        addDeltaTensors(b, at);
    else
        addAttentionTensors(b, at);
    addMlpTensors(b, at);
    b.tensor(at.weight(at.names.attnNorm), SlotKind::AttnNorm, 0, at.hidden);
    b.tensor(at.weight(at.names.attnBranchNorm), SlotKind::AttnBranchNorm, 0, at.hidden);
    b.tensor(at.weight(at.names.mlpNorm), SlotKind::MlpNorm, 0, at.hidden);
    b.tensor(at.weight(at.names.mlpBranchNorm), SlotKind::MlpBranchNorm, 0, at.hidden);
    b.tensor(at.weight("per_layer_input_gate"), SlotKind::InputGate, 0, at.kind.layerInput);
    b.tensor(at.weight("per_layer_projection"), SlotKind::InputOut, 0, at.hidden);
    b.tensor(at.weight("post_per_layer_input_norm"), SlotKind::InputNorm, 0, at.hidden);
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

const ParamSlot& ParamTable::slotOf(const NamedTensor& tensor) const noexcept
{
    const auto& slots = groups[static_cast<std::size_t>(tensor.group.value)].paramSlots;
    return *std::ranges::find_if(slots, [&](const ParamSlot& slot) {
        return slot.first <= tensor.first && tensor.first < slot.first + slot.count();
    });
}

const ParamSlot& ParamTable::slotAt(GroupId group, std::int64_t first) const noexcept
{
    const auto& slots = groups[static_cast<std::size_t>(group.value)].paramSlots;
    return *std::find_if(
        slots.begin(), slots.end(), [first](const ParamSlot& slot) { return slot.first == first; });
}

float firstValue(const ParamTable& table, SlotKind kind) noexcept
{
    switch (kind) {
    case SlotKind::QkvBias:
    case SlotKind::AttnOutBias:
    case SlotKind::GateUpBias:
    case SlotKind::DownBias:
    case SlotKind::LogDecay:
        return 0.0F;
    case SlotKind::TimeBias:
    case SlotKind::DeltaNorm: // its gain is the weight in every family
        return 1.0F;
    default:
        return table.firstNorm;
    }
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

std::string nameInMemory(const ParamTable& model, const std::string& name)
{
    const TensorPrefix& files = model.prefix;
    const TensorPrefix& memory = kSpellings[model.isWrapped ? 1 : 0];
    if (name.starts_with(files.model))
        return std::string(memory.model) + name.substr(files.model.size());
    return std::string(memory.head) + name.substr(files.head.size());
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
    b.table.prefix = config.prefix;
    b.table.isWrapped = config.isWrapped;
    for (const CarriedTensor& tensor : config.carried)
        if (!config.trainsInputs || !tensor.isInputTable())
            b.table.carried.push_back(tensor);
    const std::string prefix(config.prefix.model);
    b.group("embedding");
    b.matrix(SlotKind::Embedding, config.vocab, config.hidden);
    addInputSlots(b, config);
    b.tensor(prefix + "embed_tokens.weight", SlotKind::Embedding, 0, config.vocab);
    addInputTensors(b, config, prefix);
    for (std::int64_t i = 0; i < config.layers; ++i) {
        b.group(fmt::format("block {}", i));
        const BlockKind& kind = config.kindOf(i);
        addBlockSlots(b, config.hidden, kind);
        addBlockTensors(
            b, {kind, config.names, config.hidden, fmt::format("{}layers.{}.", prefix, i)});
        addInputTable(b, config, i, prefix + std::string(kInputTableName));
    }
    b.group("head");
    b.vector(SlotKind::FinalNorm, config.hidden);
    if (!config.tiedEmbedding)
        b.matrix(SlotKind::Head, config.vocab, config.hidden);
    b.tensor(prefix + "norm.weight", SlotKind::FinalNorm, 0, config.hidden);
    b.tensor(std::string(config.prefix.head) + "lm_head.weight", SlotKind::Head, 0, config.vocab);
    for (NamedTensor& tensor : b.table.tensors)
        tensor.isWide = std::ranges::count(config.wideTensors, tensor.name) > 0;
    return std::move(b.table);
}

} // namespace mr
