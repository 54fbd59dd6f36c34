#include "core/model/merged_model.h"

#include "core/base/half.h"
#include "core/device/adamw.h"
#include "core/model/dora.h"

#include <algorithm>
#include <cmath>

namespace mr {
MergedModel::MergedModel(const ParamTable& table, MasterReader& model, MasterReader& adapter)
    : m_table(table)
    , m_model(model)
    , m_adapter(adapter)
{
}

Status MergedModel::load(GroupId group)
{
    const std::int64_t elements = m_table.groups[static_cast<std::size_t>(group.value)].elements;
    m_group.clear();
    MasterPiece piece;
    MR_TRY(forPieces(
        m_adapter, {group, 0, elements}, piece, [&](std::int64_t, const MasterView& view) {
            for (std::size_t i = 0; i < view.high.size(); ++i)
                m_group.push_back(joinHalves(view.high[i], view.low[i]));
            return Status();
        }));
    m_loaded = group;
    return m_table.frozen->settings.dora ? loadFactors(group) : Status();
}

Status MergedModel::loadFactors(GroupId group)
{
    m_factors.clear();
    for (const AdapterModule& module :
        m_table.frozen->adapters[static_cast<std::size_t>(group.value)]) {
        MR_ASSIGN(std::vector<float> factors,
            adaptedNorms(m_table, group, module, m_model, m_group, DType::F32));
        const float* magnitude = m_group.data() + module.magnitude;
        for (float& factor : factors) {
            factor = factor > 0.0F ? *magnitude / factor : 0.0F;
            ++magnitude;
        }
        m_factors.push_back(std::move(factors));
    }
    return {};
}

Status MergedModel::read(GroupId group, std::int64_t first, const MasterView& out)
{
    std::vector<std::int16_t> low(out.low.empty() ? out.high.size() : 0);
    const MasterView whole{out.high, out.low.empty() ? std::span(low) : out.low};
    MR_TRY(m_model.read(group, first, whole));
    const auto& modules = m_table.frozen->adapters[static_cast<std::size_t>(group.value)];
    if (!modules.empty() && m_loaded != group)
        MR_TRY(load(group));
    for (std::size_t i = 0; i < modules.size(); ++i) {
        const AdapterModule& module = modules[i];
        const ParamSlot* slot = m_table.frozen->model.find(group, module.product);
        const std::int64_t begin = slot->first + module.firstRow * module.in;
        add(module, {group, begin, module.rows * module.in},
            m_factors.empty() ? std::span<const float>() : m_factors[i], first, whole);
    }
    for (const ReplacedRange& range :
        m_table.frozen->replaced[static_cast<std::size_t>(group.value)])
        MR_TRY(replace(group, range, first, whole));
    return {};
}

Status MergedModel::replace(
    GroupId group, const ReplacedRange& range, std::int64_t first, const MasterView& out)
{
    const std::int64_t begin = std::max(first, range.model);
    const std::int64_t end = std::min(first + std::ssize(out.high), range.model + range.count);
    if (begin >= end)
        return {};
    MasterPiece piece;
    const MasterView trained = piece.view(end - begin);
    MR_TRY(m_adapter.read(group, range.trained + begin - range.model, trained));
    for (std::size_t i = 0; i < trained.high.size(); ++i)
        write(joinHalves(trained.high[i], trained.low[i]),
            static_cast<std::size_t>(begin - first) + i, out);
    return {};
}

void MergedModel::write(float value, std::size_t i, const MasterView& out)
{
    const float before = joinHalves(out.high[i], out.low[i]);
    out.high[i] = highHalf(value);
    out.low[i] = lowHalf(value);
    m_count.unchanged += bfloatBits(value) == bfloatBits(before) ? 1 : 0;
    ++m_count.elements;
}

void MergedModel::add(const AdapterModule& module, const MasterRange& range,
    std::span<const float> factors, std::int64_t first, const MasterView& out)
{
    const std::int64_t begin = range.first;
    const std::int64_t from = std::max(first, begin);
    const std::int64_t end = std::min(first + std::ssize(out.high), begin + range.count);
    for (std::int64_t at = from; at < end;) {
        const std::int64_t row = (at - begin) / module.in;
        const std::int64_t rowEnd = std::min(end, begin + (row + 1) * module.in);
        m_row.assign(static_cast<std::size_t>(module.in), 0.0F);
        for (std::int64_t k = 0; k < module.rank; ++k) {
            const float b = m_group[static_cast<std::size_t>(module.b + row * module.rank + k)];
            const float* a = m_group.data() + module.a + k * module.in;
            for (std::size_t col = 0; col < m_row.size(); ++col)
                m_row[col] = std::fma(b, a[col], m_row[col]);
        }
        for (; at < rowEnd; ++at) {
            const auto i = static_cast<std::size_t>(at - first);
            const float added =
                module.scale * m_row[static_cast<std::size_t>(at - begin - row * module.in)];
            const float sum = joinHalves(out.high[i], out.low[i]) + added;
            write(factors.empty() ? sum : factors[static_cast<std::size_t>(row)] * sum, i, out);
        }
    }
}

} // namespace mr
