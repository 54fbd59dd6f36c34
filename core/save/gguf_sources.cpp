#include "core/save/gguf_sources.h"

#include "core/device/adamw.h"
#include "core/model/input_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

namespace mr {
namespace {

constexpr std::int64_t kSmallBlock = 32;

// "blk.7.ffn_down.weight" is 7; -1: outside of blocks.
std::int64_t blockOf(std::string_view name)
{
    constexpr std::string_view kPrefix = "blk.";
    std::int64_t block = -1;
    if (name.starts_with(kPrefix))
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), block);
    return block;
}

// The layers to which Q4_K_M gives more bits: the first and last eighth, and every third between.
bool hasMoreBits(std::int64_t block, std::int64_t layers)
{
    return block < layers / 8 || block >= 7 * layers / 8 || (block - layers / 8) % 3 == 2;
}

GgufType mixedType(const GgufEntry& entry, const ModelConfig& config)
{
    const std::string_view name = entry.name;
    const bool isHead =
        name == "output.weight" || (name == "token_embd.weight" && config.tiedEmbedding);
    if (isHead || name.ends_with(".attn_qkv.weight"))
        return GgufType::Q6_K;
    const bool isWide = name.ends_with(".attn_v.weight") || name.ends_with(".ffn_down.weight");
    return isWide && hasMoreBits(blockOf(name), config.layers) ? GgufType::Q6_K : GgufType::Q4_K;
}

// The type in place of one whose block rows are no multiple of.
GgufType fallback(GgufType type, std::int64_t columns)
{
    if (columns % ggufTypeInfo(type).elements == 0)
        return type;
    if (columns % kSmallBlock != 0)
        return GgufType::F16;
    return type == GgufType::Q4_K ? GgufType::Q5_0 : GgufType::Q8_0;
}

void readHalves(const MasterView& view, std::span<float> out)
{
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = joinHalves(view.high[i], view.low[i]);
}

float storedOf(float weight, GgufStored how)
{
    switch (how) {
    case GgufStored::PlusOne:
        return weight + 1.0F;
    case GgufStored::MinusExp:
        return -std::exp(weight);
    case GgufStored::Weight:
        break;
    }
    return weight;
}

// Rows of another order than the model's. `begin`: the entry's first element in its group.
Status readTurned(const GgufEntry& entry, GroupId group, std::int64_t begin, MasterReader& model,
    std::int64_t first, std::span<float> out)
{
    const auto columns = static_cast<std::size_t>(entry.columns);
    std::vector<float> row(columns);
    MasterPiece piece;
    for (std::int64_t at = first; !out.empty(); at += entry.columns) {
        const std::int64_t source = entry.rowOrder.source(at / entry.columns);
        const MasterView view = piece.view(entry.columns);
        MR_TRY(model.read(group, begin + source * entry.columns, view));
        readHalves(view, row);
        for (std::size_t c = 0; c < columns; ++c)
            out[c] = row[static_cast<std::size_t>(
                entry.columnOrder.source(static_cast<std::int64_t>(c)))];
        out = out.subspan(columns);
    }
    return {};
}

// The table that inputs of blocks come from, which is no parameter.
GgufSource tableSource(const GgufLayout& layout, const ModelConfig& config, GgufForm form)
{
    const std::int64_t columns = config.inputColumns();
    const GgufType type =
        form == GgufForm::F32 ? GgufType::F32 : fallback(typeOfForm(form), columns);
    auto rows = std::make_shared<std::optional<InputTableRows>>();
    const auto fill = [rows, &config](std::int64_t first, std::span<float> out) -> Status {
        if (!*rows) {
            MR_ASSIGN(*rows, openInputTable(config));
        }
        return (*rows)->floats(first, out);
    };
    return {layout.inputTable, {columns, config.inputVocab}, type, fill};
}

GgufSource madeSource(const GgufMade& made)
{
    return {made.name, {std::ssize(made.values)}, GgufType::F32,
        [&made](std::int64_t first, std::span<float> out) -> Status {
            std::copy_n(made.values.begin() + first, out.size(), out.begin());
            return {};
        }};
}

} // namespace

GgufType typeOfForm(GgufForm form) noexcept
{
    switch (form) {
    case GgufForm::F16:
        return GgufType::F16;
    case GgufForm::BF16:
        return GgufType::BF16;
    case GgufForm::Q8_0:
        return GgufType::Q8_0;
    case GgufForm::Q4_0:
        return GgufType::Q4_0;
    case GgufForm::Q4_K_M:
        return GgufType::Q4_K;
    case GgufForm::Q6_K:
        return GgufType::Q6_K;
    case GgufForm::F32:
        break;
    }
    return GgufType::F32;
}

GgufType typeOfEntry(const GgufEntry& entry, GgufForm form, const ModelConfig& config)
{
    if (entry.isWide)
        return GgufType::F32;
    const GgufType type = form == GgufForm::Q4_K_M ? mixedType(entry, config) : typeOfForm(form);
    return fallback(type, entry.columns);
}

Status readGgufRows(const GgufEntry& entry, const ParamTable& table, MasterReader& model,
    std::int64_t first, std::span<float> out)
{
    const NamedTensor& tensor = table.tensors[entry.tensor];
    const std::int64_t begin = tensor.first + entry.firstRow * entry.columns;
    MasterPiece piece;
    if (entry.rowOrder.isSame() && entry.columnOrder.isSame()) {
        const MasterView view = piece.view(std::ssize(out));
        MR_TRY(model.read(tensor.group, begin + first, view));
        readHalves(view, out);
    } else {
        MR_TRY(readTurned(entry, tensor.group, begin, model, first, out));
    }
    for (float& value : out)
        value = storedOf(value, entry.stored);
    return {};
}

std::vector<GgufSource> ggufSources(const GgufLayout& layout, const ModelConfig& config,
    const ParamTable& table, MasterReader& model, GgufForm form)
{
    std::vector<GgufSource> sources;
    for (const GgufEntry& entry : layout.entries)
        sources.push_back({entry.name, entry.ne(), typeOfEntry(entry, form, config),
            [&entry, &table, &model](std::int64_t first, std::span<float> out) {
                return readGgufRows(entry, table, model, first, out);
            }});
    for (const GgufMade& made : layout.made)
        sources.push_back(madeSource(made));
    if (!layout.inputTable.empty())
        sources.push_back(tableSource(layout, config, form));
    return sources;
}

} // namespace mr
