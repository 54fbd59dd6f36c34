#include "core/model/input_table.h"

#include "core/base/shown_text.h"
#include "core/device/master24.h"
#include "core/model/model_config.h"
#include "core/model/weight_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace mr {
namespace {

// As far as other tensors tell.
std::filesystem::path folderOf(const ModelConfig& config)
{
    return config.carried.empty() ? std::filesystem::path("the folder of the model")
                                  : config.carried.front().file.parent_path();
}

} // namespace

InputTable::InputTable(CarriedTensor tensor, SafetensorsReader reader)
    : m_tensor(std::move(tensor))
    , m_reader(std::move(reader))
    , m_row(static_cast<std::size_t>(m_tensor.entry.shape[1]))
    , m_places(static_cast<std::size_t>(m_tensor.entry.shape[0]), -1)
{
}

Result<InputTable> InputTable::open(const ModelConfig& config)
{
    const auto found = std::ranges::find_if(config.carried, &CarriedTensor::isInputTable);
    if (found == config.carried.end())
        return refuseWeights(folderOf(config),
            fmt::format("missing tensors: {}{}, which blocks read rows of; take a folder that has "
                        "all files of the model",
                config.prefix.model, kInputTableName));
    const std::string& type = found->entry.dtype;
    if (found->entry.shape != std::vector{config.inputVocab, config.inputColumns()})
        return refuseWeights(found->file,
            fmt::format("tensor {} is [{}], config.json asks for [{}, {}]: one of them is of "
                        "another model",
                shownName(found->name), fmt::join(found->entry.shape, ", "), config.inputVocab,
                config.inputColumns()));
    if (type != "F32" && type != "F16" && type != "BF16")
        return refuseWeights(found->file, "tensor " + shownName(found->name) + " is " +
                                              shownName(type) + ", want F32, F16 or BF16");
    MR_ASSIGN(SafetensorsReader reader, SafetensorsReader::open(found->file));
    return InputTable(*found, std::move(reader));
}

Status InputTable::readRow(std::int64_t row, const TensorView& out)
{
    const std::int64_t columns = out.dims[1];
    if (out.dtype == DType::BF16 && m_tensor.entry.dtype == "BF16")
        return m_reader.readBytes(
            m_tensor.name, static_cast<std::uint64_t>(row) * out.bytes(), {out.data, out.bytes()});
    if (out.dtype == DType::F32)
        return m_reader.readFloats(
            m_tensor.name, row * columns, {out.as<float>(), static_cast<std::size_t>(columns)});
    MR_TRY(m_reader.readFloats(m_tensor.name, row * columns, m_row));
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
