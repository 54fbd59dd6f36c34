#include "core/model/gguf_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace mr {
namespace {

// Modules whose tensors share a slot, by the end of the module's name.
struct ModuleName {
    std::string_view module;
    std::string_view name;
};

constexpr ModuleName kModules[] = {{"q_proj", "attn_q"}, {"k_proj", "attn_k"}, {"v_proj", "attn_v"},
    {"qkv_proj", "attn_qkv"}, {"in_proj_qkv", "attn_qkv"}, {"in_proj_z", "attn_gate"},
    {"in_proj_b", "ssm_beta"}, {"in_proj_a", "ssm_alpha"}, {"gate_proj", "ffn_gate"},
    {"up_proj", "ffn_up"}, {"gate_up_proj", "ffn_up"}, {"input_linear", "ffn_gate"}};

std::string_view moduleOf(std::string_view tensor)
{
    const std::string_view path = tensor.substr(0, tensor.rfind('.'));
    return path.substr(path.rfind('.') + 1);
}

std::string_view byModule(std::string_view tensor)
{
    const auto* const found = std::ranges::find(kModules, moduleOf(tensor), &ModuleName::module);
    return found == std::end(kModules) ? std::string_view() : found->name;
}

// Names of a group that is no block, and of the slots of one with a tensor of their own.
std::string_view bySlot(SlotKind kind, const BlockKind& block, const GgufFamily& family)
{
    switch (kind) {
    case SlotKind::AttnNorm:
        return "attn_norm";
    case SlotKind::QueryNorm:
        return "attn_q_norm";
    case SlotKind::KeyNorm:
        return "attn_k_norm";
    case SlotKind::AttnOut:
    case SlotKind::AttnOutBias:
        return block.isDelta() ? "ssm_out" : "attn_output";
    case SlotKind::AttnBranchNorm:
        return "post_attention_norm";
    case SlotKind::MlpNorm:
        return family.mlpNorm;
    case SlotKind::Down:
    case SlotKind::DownBias:
        return "ffn_down";
    case SlotKind::MlpBranchNorm:
        return "post_ffw_norm";
    case SlotKind::Conv:
        return "ssm_conv1d";
    case SlotKind::DeltaNorm:
        return "ssm_norm";
    case SlotKind::InputGate:
        return "inp_gate";
    case SlotKind::InputOut:
        return "proj";
    case SlotKind::InputNorm:
        return "post_norm";
    default:
        return {};
    }
}

std::string_view outsideBlocks(SlotKind kind)
{
    switch (kind) {
    case SlotKind::Embedding:
        return "token_embd.weight";
    case SlotKind::InputProjection:
        return "per_layer_model_proj.weight";
    case SlotKind::InputsNorm:
        return "per_layer_proj_norm.weight";
    case SlotKind::FinalNorm:
        return "output_norm.weight";
    default:
        return "output.weight";
    }
}

std::string blockName(std::int64_t block, SlotKind kind, std::string_view tensor,
    const BlockKind& shape, const GgufFamily& family)
{
    const std::string prefix = fmt::format("blk.{}.", block);
    if (kind == SlotKind::LogDecay)
        return prefix + "ssm_a";
    if (kind == SlotKind::TimeBias)
        return prefix + "ssm_dt.bias";
    const std::string_view own = bySlot(kind, shape, family);
    const std::string_view name = own.empty() ? byModule(tensor) : own;
    const bool isBias = tensor.ends_with(".bias");
    return prefix + std::string(name) + (isBias ? ".bias" : ".weight");
}

bool isNorm(SlotKind kind)
{
    constexpr SlotKind kNorms[] = {SlotKind::AttnNorm, SlotKind::QueryNorm, SlotKind::KeyNorm,
        SlotKind::AttnBranchNorm, SlotKind::MlpNorm, SlotKind::MlpBranchNorm, SlotKind::FinalNorm,
        SlotKind::InputsNorm, SlotKind::InputNorm};
    return std::ranges::find(kNorms, kind) != std::end(kNorms);
}

// Turned heads as llama.cpp's "normal" rotation wants them.
GgufOrder neighbours(const BlockKind& block)
{
    return {GgufOrder::Kind::Neighbours, 0, block.headDim, 1, 1};
}

GgufOrder tiled(const DeltaShape& delta, std::int64_t first, std::int64_t length)
{
    if (delta.keyHeads == delta.valueHeads)
        return {};
    return {
        GgufOrder::Kind::Tiled, first, length, delta.keyHeads, delta.valueHeads / delta.keyHeads};
}

// A state's value heads, wherever they are rows or columns.
void orderDelta(GgufEntry& entry, SlotKind kind, const BlockKind& block)
{
    const DeltaShape& delta = block.delta;
    const std::string_view name = entry.name;
    if (kind == SlotKind::AttnOut)
        entry.columnOrder = tiled(delta, 0, delta.valueDim);
    else if (kind == SlotKind::LogDecay || kind == SlotKind::TimeBias ||
             name.ends_with("ssm_alpha.weight") || name.ends_with("ssm_beta.weight"))
        entry.rowOrder = tiled(delta, 0, 1);
    else if (name.ends_with("attn_gate.weight"))
        entry.rowOrder = tiled(delta, 0, delta.valueDim);
    else if (kind == SlotKind::Conv || name.ends_with("attn_qkv.weight"))
        entry.rowOrder = tiled(delta, 2 * delta.keyColumns(), delta.valueDim);
}

void order(GgufEntry& entry, SlotKind kind, const BlockKind& block, const GgufFamily& family)
{
    if (block.isDelta())
        return orderDelta(entry, kind, block);
    const std::string_view name = entry.name;
    const bool turns = name.find(".attn_q.") != std::string_view::npos ||
                       name.find(".attn_k.") != std::string_view::npos;
    if (turns && family.turnsNeighbours)
        entry.rowOrder = neighbours(block);
}

class LayoutBuilder
{
public:
    LayoutBuilder(const ModelConfig& config, const ParamTable& table, const GgufFamily& family)
        : m_config(config)
        , m_table(table)
        , m_family(family)
    {
        layout.family = &family;
    }

    void addTensors()
    {
        for (std::size_t i = 0; i < m_table.tensors.size(); ++i)
            addTensor(i);
        if (m_family.ownHead && m_config.tiedEmbedding) {
            layout.entries.push_back(layout.entries.front());
            layout.entries.back().name = "output.weight";
        }
    }

    GgufLayout layout;

private:
    void addTensor(std::size_t index)
    {
        const NamedTensor& tensor = m_table.tensors[index];
        const SlotKind kind = m_table.slotOf(tensor).kind;
        GgufEntry entry;
        entry.tensor = index;
        entry.rows = tensor.shape.front();
        entry.columns = tensor.count() / entry.rows;
        if (isNorm(kind) && m_config.onePlusNorms)
            entry.stored = GgufStored::PlusOne;
        if (kind == SlotKind::LogDecay)
            entry.stored = GgufStored::MinusExp;
        const std::int64_t block = tensor.group.value - 1;
        const BlockKind* shape = m_config.findKind(block);
        entry.name = shape == nullptr ? std::string(outsideBlocks(kind))
                                      : blockName(block, kind, tensor.name, *shape, m_family);
        entry.isWide = entry.isVector() || isNorm(kind) || kind == SlotKind::Conv ||
                       kind == SlotKind::DeltaNorm;
        if (shape != nullptr)
            order(entry, kind, *shape, m_family);
        add(std::move(entry), kind);
    }

    void add(GgufEntry entry, SlotKind kind)
    {
        const bool isBoth = kind == SlotKind::GateUp || kind == SlotKind::GateUpBias;
        if (!isBoth || !m_family.splitsGateUp || m_config.names.gateUp.empty()) {
            layout.entries.push_back(std::move(entry));
            return;
        }
        entry.rows /= 2;
        GgufEntry up = entry;
        up.firstRow = entry.rows;
        up.name.replace(up.name.find("ffn_gate"), std::string_view("ffn_gate").size(), "ffn_up");
        layout.entries.push_back(std::move(entry));
        layout.entries.push_back(std::move(up));
    }

    const ModelConfig& m_config;
    const ParamTable& m_table;
    const GgufFamily& m_family;
};

// Divisors of the frequencies: those of plain positions over those that turn.
std::vector<float> ropeFactors(const ModelConfig& config, const Rope& rope)
{
    const RopeShape shape = config.shapeOf(rope);
    const RopeFrequencies scaled = ropeFrequencies(rope.scaling, shape, config.maxPositions);
    constexpr float kStill = 1e30F; // of a pair that does not turn
    std::vector<float> factors;
    for (std::size_t i = 0; i < scaled.inverse.size(); ++i) {
        const double plain = std::pow(
            rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(shape.rotaryDim));
        const double turned = scaled.inverse[i];
        factors.push_back(turned == 0.0 ? kStill : static_cast<float>(plain / turned));
    }
    return factors;
}

void addMade(const ModelConfig& config, GgufLayout& layout)
{
    const Rope& rope = config.ropes.front();
    switch (rope.scaling.type) {
    case RopeType::Llama3:
    case RopeType::Proportional:
        layout.made.push_back({"rope_freqs.weight", ropeFactors(config, rope)});
        break;
    case RopeType::LongRope:
        layout.made.push_back({"rope_factors_long.weight", rope.scaling.longFactors});
        layout.made.push_back({"rope_factors_short.weight", rope.scaling.shortFactors});
        break;
    default:
        break;
    }
    for (std::size_t block = 0; block < config.outputScales.size(); ++block)
        layout.made.push_back(
            {ggufScaleName(static_cast<std::int64_t>(block)), {config.outputScales[block]}});
    if (config.layerInput > 0)
        layout.inputTable = kGgufInputTable;
}

} // namespace

std::int64_t GgufOrder::source(std::int64_t row) const noexcept
{
    if (kind == Kind::Same || row < first)
        return row;
    const std::int64_t head = (row - first) / length;
    const std::int64_t in = (row - first) % length;
    if (kind == Kind::Neighbours)
        return first + head * length + in / 2 + in % 2 * (length / 2);
    return first + (head % groups * inGroup + head / groups) * length + in;
}

std::int64_t GgufOrder::place(std::int64_t row) const noexcept
{
    if (kind == Kind::Same || row < first)
        return row;
    const std::int64_t head = (row - first) / length;
    const std::int64_t in = (row - first) % length;
    const std::int64_t half = length / 2;
    if (kind == Kind::Neighbours)
        return first + head * length + (in < half ? 2 * in : 2 * (in - half) + 1);
    return first + (head % inGroup * groups + head / inGroup) * length + in;
}

std::vector<std::int64_t> GgufEntry::ne() const
{
    return isVector() ? std::vector{rows} : std::vector{columns, rows};
}

std::string ggufScaleName(std::int64_t block)
{
    return fmt::format("blk.{}.layer_output_scale.weight", block);
}

Result<GgufLayout> ggufLayout(const ModelConfig& config, const ParamTable& table)
{
    const GgufFamily* family = ggufFamilyOf(config.family);
    if (family == nullptr)
        return Status::error(
            ErrorKind::InvalidArgument, "GGUF files have no architecture for " + config.family);
    LayoutBuilder builder(config, table, *family);
    builder.addTensors();
    addMade(config, builder.layout);
    return std::move(builder.layout);
}

} // namespace mr
