#include "core/model/rounded_model.h"

#include "core/base/half.h"
#include "core/device/adamw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mr {

RoundedModel::RoundedModel(const ParamTable& table, MasterReader& model, ExportType type)
    : m_table(table)
    , m_model(model)
    , m_type(type)
{
}

Status RoundedModel::read(GroupId group, std::int64_t first, const MasterView& out)
{
    std::vector<std::int16_t> low(out.low.empty() ? out.high.size() : 0);
    const MasterView whole{out.high, out.low.empty() ? std::span(low) : out.low};
    MR_TRY(m_model.read(group, first, whole));
    if (m_type == ExportType::F32)
        return {};
    const std::int64_t end = first + std::ssize(out.high);
    for (const NamedTensor& tensor : m_table.tensors) {
        const std::int64_t from = std::max(first, tensor.first);
        const std::int64_t to = std::min(end, tensor.first + tensor.count());
        if (tensor.group == group && !tensor.isWide && from < to)
            MR_TRY(roundTensor(tensor, whole.part(static_cast<std::size_t>(from - first),
                                           static_cast<std::size_t>(to - from))));
    }
    return {};
}

Status RoundedModel::roundTensor(const NamedTensor& tensor, const MasterView& part) const
{
    for (std::size_t i = 0; i < part.high.size(); ++i) {
        const float value = joinHalves(part.high[i], part.low[i]);
        const float rounded =
            m_type == ExportType::F16 ? halfValue(halfBits(value)) : bfloatValue(bfloatBits(value));
        if (std::isinf(rounded) && !std::isinf(value))
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("tensor {} holds {}, beyond the largest number of this type; use {}",
                    tensor.name, value, m_type == ExportType::F16 ? "bf16 or fp32" : "fp32"));
        part.high[i] = highHalf(rounded);
        part.low[i] = lowHalf(rounded);
    }
    return {};
}

} // namespace mr
