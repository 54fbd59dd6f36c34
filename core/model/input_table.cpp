#include "core/model/input_table.h"

#include "core/base/shown_text.h"
#include "core/device/master24.h"
#include "core/gguf/gguf_file.h"
#include "core/model/carried_tensors.h"
#include "core/model/gguf_layout.h"
#include "core/model/model_config.h"
#include "core/model/weight_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace mr {
namespace {

// As far as other tensors tell.
std::filesystem::path folderOf(const ModelConfig& config)
{
    return config.carried.empty() ? std::filesystem::path("the folder of the model")
                                  : config.carried.front().file.parent_path();
}

Status otherModel(const std::filesystem::path& file, std::string_view name,
    const std::vector<std::int64_t>& shape, const ModelConfig& config)
{
    return refuseWeights(file,
        fmt::format("tensor {} is [{}], config.json asks for [{}, {}]: one of them is of "
                    "another model",
            shownName(name), fmt::join(shape, ", "), config.inputVocab, config.inputColumns()));
}

Result<InputTableRows> tableOfGguf(const ModelConfig& config)
{
    MR_ASSIGN(auto opened, GgufFile::open(config.gguf));
    const auto file = std::make_shared<const GgufFile>(std::move(opened));
    const GgufTensor* tensor = file->tensor(kGgufInputTable);
    if (tensor == nullptr)
        return refuseWeights(config.gguf, "missing tensors: " + std::string(kGgufInputTable));
    if (tensor->ne != std::vector{config.inputColumns(), config.inputVocab})
        return otherModel(
            config.gguf, kGgufInputTable, {tensor->ne.rbegin(), tensor->ne.rend()}, config);
    InputTableRows rows;
    rows.floats = [file, tensor](std::int64_t first, std::span<float> out) {
        return file->readFloats(*tensor, first, out);
    };
    return rows;
}

} // namespace

Result<InputTableRows> openInputTable(const ModelConfig& config)
{
    if (!config.gguf.empty())
        return tableOfGguf(config);
    const auto found = std::ranges::find_if(config.carried, &CarriedTensor::isInputTable);
    if (found == config.carried.end())
        return refuseWeights(folderOf(config),
            fmt::format("missing tensors: {}{}, which blocks read rows of; take a folder that has "
                        "all files of the model",
                config.prefix.model, kInputTableName));
    const std::string& type = found->entry.dtype;
    if (found->entry.shape != std::vector{config.inputVocab, config.inputColumns()})
        return otherModel(found->file, found->name, found->entry.shape, config);
    if (type != "F32" && type != "F16" && type != "BF16")
        return refuseWeights(found->file, "tensor " + shownName(found->name) + " is " +
                                              shownName(type) + ", want F32, F16 or BF16");
    MR_ASSIGN(auto opened, SafetensorsReader::open(found->file));
    const auto file = std::make_shared<SafetensorsReader>(std::move(opened));
    InputTableRows rows;
    rows.floats = [file, name = found->name](std::int64_t first, std::span<float> out) {
        return file->readFloats(name, first, out);
    };
    if (type == "BF16")
        rows.bf16 = [file, name = found->name](std::int64_t row, std::span<std::byte> out) {
            return file->readBytes(name, static_cast<std::uint64_t>(row) * out.size(), out);
        };
    return rows;
}

InputTable::InputTable(const ModelConfig& config, InputTableRows rows)
    : m_rows(std::move(rows))
    , m_row(static_cast<std::size_t>(config.inputColumns()))
    , m_places(static_cast<std::size_t>(config.inputVocab), -1)
{
}

Result<InputTable> InputTable::open(const ModelConfig& config)
{
    MR_ASSIGN(InputTableRows rows, openInputTable(config));
    return InputTable(config, std::move(rows));
}

Status InputTable::readRow(std::int64_t row, const TensorView& out)
{
    const std::int64_t columns = out.dims[1];
    if (out.dtype == DType::BF16 && m_rows.bf16)
        return m_rows.bf16(row, {out.data, out.bytes()});
    if (out.dtype == DType::F32)
        return m_rows.floats(row * columns, {out.as<float>(), static_cast<std::size_t>(columns)});
    MR_TRY(m_rows.floats(row * columns, m_row));
    std::ranges::transform(m_row, out.as<std::uint16_t>(), bf16Bits);
    return {};
}

Status InputTable::read(std::span<const std::int32_t> ids, const TensorView& out)
{
    for (const std::int32_t id : ids)
        m_places[static_cast<std::size_t>(id)] = -1;
    for (std::size_t t = 0; t < ids.size(); ++t) {
        const TensorView to = out.rows(static_cast<std::int64_t>(t), 1);
        std::int32_t& place = m_places[static_cast<std::size_t>(ids[t])];
        if (place < 0) {
            MR_TRY(readRow(ids[t], to));
            place = static_cast<std::int32_t>(t);
        } else {
            std::memcpy(to.data, out.rows(place, 1).data, to.bytes());
        }
    }
    return {};
}

} // namespace mr
