#include "core/model/tensor_reader.h"

#include "core/base/shown_text.h"
#include "core/device/adamw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mr {
namespace {

constexpr std::size_t kFloatPiece = 1U << 20; // 4 MiB of F32

// NaN, infinite, or so large that its BF16 half would be infinite.
bool isUsable(float value)
{
    return (highHalf(value) & 0x7F80U) != 0x7F80U && std::isfinite(value);
}

Status refuseValue(
    const std::filesystem::path& file, const std::string& name, std::int64_t index, float value)
{
    const std::string what = std::isfinite(value) ? "a number too large for BF16"
                             : std::isnan(value)  ? "NaN"
                                                  : "infinity";
    return Status::error(ErrorKind::DataCorrupt,
        fmt::format(
            "{}: tensor {} holds {} at element {}; the model is damaged, fetch or export it again",
            file.string(), shownName(name), what, index));
}

} // namespace

void storeHalves(float value, const MasterView& view, std::size_t i)
{
    view.high[i] = highHalf(value);
    if (!view.low.empty())
        view.low[i] = lowHalf(value);
}

TensorReader::TensorReader(const ParamTable& table)
    : m_table(table)
    , m_inGroup(table.groups.size())
{
    for (std::size_t i = 0; i < table.tensors.size(); ++i)
        m_inGroup[static_cast<std::size_t>(table.tensors[i].group.value)].push_back(i);
}

Status TensorReader::read(GroupId group, std::int64_t first, const MasterView& out)
{
    std::fill(out.high.begin(), out.high.end(), std::uint16_t{0});
    std::fill(out.low.begin(), out.low.end(), std::int16_t{0});
    const std::int64_t end = first + std::ssize(out.high);
    for (const std::size_t i : tensorsOf(group)) {
        const NamedTensor& tensor = m_table.tensors[i];
        const std::int64_t from = std::max(first, tensor.first);
        const std::int64_t to = std::min(end, tensor.first + tensor.count());
        if (from < to)
            MR_TRY(readTensor(i, from - tensor.first,
                out.part(
                    static_cast<std::size_t>(from - first), static_cast<std::size_t>(to - from))));
    }
    return {};
}

Status FloatReader::readTensor(std::size_t index, std::int64_t first, const MasterView& out)
{
    m_values.resize(std::min(out.high.size(), kFloatPiece));
    for (std::size_t at = 0; at < out.high.size(); at += m_values.size()) {
        const auto part =
            std::span(m_values).first(std::min(m_values.size(), out.high.size() - at));
        const std::int64_t place = first + static_cast<std::int64_t>(at);
        MR_TRY(readFloats(index, place, part));
        bool usable = true;
        for (std::size_t i = 0; i < part.size(); ++i) {
            usable = usable && isUsable(part[i]);
            storeHalves(part[i], out, at + i);
        }
        if (usable)
            continue;
        const auto bad = std::find_if_not(part.begin(), part.end(), isUsable);
        return refuseValue(
            fileOf(index), m_table.tensors[index].name, place + (bad - part.begin()), *bad);
    }
    return {};
}

} // namespace mr
