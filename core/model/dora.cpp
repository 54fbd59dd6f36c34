#include "core/model/dora.h"

#include "core/device/adamw.h"
#include "core/model/packed_group.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace mr {
namespace {

// A row of W in `values` becomes that of W + scale B A.
void addAdapterRow(const AdapterModule& module, std::int64_t row, std::span<const float> adapter,
    std::vector<double>& values)
{
    for (std::int64_t k = 0; k < module.rank; ++k) {
        const double b = static_cast<double>(module.scale) *
                         static_cast<double>(
                             adapter[static_cast<std::size_t>(module.b + row * module.rank + k)]);
        const float* a = adapter.data() + module.a + k * module.in;
        for (std::size_t col = 0; col < values.size(); ++col)
            values[col] += b * static_cast<double>(a[col]);
    }
}

class FreshAdapter final : public MasterReader
{
public:
    FreshAdapter(const ParamTable& table, std::uint64_t seed, MasterReader& model, DType compute)
        : m_table(table)
        , m_matrices(initialAdapter(table, seed))
        , m_nf4(table.frozen->settings.nf4Base ? nf4Model(wholeModel(table), model) : nullptr)
        , m_model(m_nf4 ? *m_nf4 : model)
        , m_compute(compute)
    {
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        MR_TRY(m_matrices->read(group, first, out));
        for (const ReplacedRange& range :
            m_table.frozen->replaced[static_cast<std::size_t>(group.value)])
            MR_TRY(copyOfModel(group, range, first, out));
        return m_table.frozen->settings.dora ? readMagnitudes(group, first, out) : Status();
    }

private:
    // As far as the range is in `out`.
    Status copyOfModel(
        GroupId group, const ReplacedRange& range, std::int64_t first, const MasterView& out)
    {
        const std::int64_t begin = std::max(first, range.trained);
        const std::int64_t end =
            std::min(first + std::ssize(out.high), range.trained + range.count);
        if (begin >= end)
            return {};
        return m_model.read(group, range.model + begin - range.trained,
            out.part(
                static_cast<std::size_t>(begin - first), static_cast<std::size_t>(end - begin)));
    }

    Status readMagnitudes(GroupId group, std::int64_t first, const MasterView& out)
    {
        if (m_loaded != group)
            MR_TRY(load(group));
        std::size_t index = 0;
        for (const AdapterModule& module : modulesOf(group))
            write(m_norms[index++], module.magnitude - first, out);
        return {};
    }

    const std::vector<AdapterModule>& modulesOf(GroupId group) const
    {
        return m_table.frozen->adapters[static_cast<std::size_t>(group.value)];
    }

    Status load(GroupId group)
    {
        m_norms.clear();
        for (const AdapterModule& module : modulesOf(group)) {
            MR_ASSIGN(std::vector<float> norms,
                adaptedNorms(m_table, group, module, m_model, {}, m_compute));
            m_norms.push_back(std::move(norms));
        }
        m_loaded = group;
        return {};
    }

    // Values whose first is element `begin` of `out`, as far as they are in it.
    static void write(const std::vector<float>& values, std::int64_t begin, const MasterView& out)
    {
        const std::int64_t end = std::min(begin + std::ssize(values), std::ssize(out.high));
        for (std::int64_t i = std::max<std::int64_t>(begin, 0); i < end; ++i) {
            const float value = values[static_cast<std::size_t>(i - begin)];
            out.high[static_cast<std::size_t>(i)] = highHalf(value);
            if (!out.low.empty())
                out.low[static_cast<std::size_t>(i)] = lowHalf(value);
        }
    }

    const ParamTable& m_table;
    std::unique_ptr<MasterReader> m_matrices;
    std::unique_ptr<MasterReader> m_nf4; // null: the model is read as it is
    MasterReader& m_model;
    DType m_compute;
    GroupId m_loaded{-1};
    std::vector<std::vector<float>> m_norms; // of the loaded group, by module
};

} // namespace

Result<std::vector<float>> adaptedNorms(const ParamTable& table, GroupId group,
    const AdapterModule& module, MasterReader& model, std::span<const float> adapter, DType as)
{
    const ParamSlot* slot = table.frozen->model.find(group, module.product);
    const std::int64_t first = slot->first + module.firstRow * module.in;
    std::vector<float> norms;
    norms.reserve(static_cast<std::size_t>(module.rows));
    std::vector<double> row(static_cast<std::size_t>(module.in));
    MasterPiece piece;
    const std::int64_t most = std::max<std::int64_t>(1, kMasterPiece / module.in) * module.in;
    const auto take = [&](std::int64_t, const MasterView& view) {
        for (std::size_t at = 0; at < view.high.size(); at += row.size()) {
            for (std::size_t col = 0; col < row.size(); ++col)
                row[col] = static_cast<double>(joinHalves(
                    view.high[at + col], as == DType::F32 ? view.low[at + col] : std::int16_t{0}));
            if (!adapter.empty())
                addAdapterRow(module, std::ssize(norms), adapter, row);
            double squares = 0.0;
            for (const double value : row)
                squares += value * value;
            norms.push_back(static_cast<float>(std::sqrt(squares)));
        }
        return Status();
    };
    MR_TRY(forPieces(model, {group, first, module.rows * module.in}, piece, take, most));
    return norms;
}

std::unique_ptr<MasterReader> freshAdapter(
    const ParamTable& table, std::uint64_t seed, MasterReader& model, DType compute)
{
    return std::make_unique<FreshAdapter>(table, seed, model, compute);
}

} // namespace mr
