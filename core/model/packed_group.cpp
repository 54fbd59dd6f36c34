#include "core/model/packed_group.h"

#include "core/device/adamw.h"

#include <algorithm>
#include <utility>

namespace mr {
namespace {

// Halves of numbers.
void store(std::span<const float> values, const MasterView& out)
{
    std::ranges::transform(values, out.high.begin(), highHalf);
    if (!out.low.empty())
        std::ranges::transform(values, out.low.begin(), lowHalf);
}

std::vector<PackedTensor> tensorsOf(const ParamTable& model, GroupId group)
{
    std::vector<PackedTensor> tensors;
    for (const NamedTensor& tensor : model.tensors)
        if (tensor.group == group)
            tensors.push_back({tensor.first, tensor.count(), 0, isLinear(model, tensor)});
    return tensors;
}

class Nf4Model final : public MasterReader
{
public:
    Nf4Model(const ParamTable& model, MasterReader& reader)
        : m_reader(reader)
    {
        for (std::size_t g = 0; g < model.groups.size(); ++g)
            m_tensors.push_back(tensorsOf(model, GroupId{static_cast<std::int32_t>(g)}));
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        MR_TRY(m_reader.read(group, first, out));
        const std::int64_t end = first + std::ssize(out.high);
        for (const PackedTensor& tensor : m_tensors[static_cast<std::size_t>(group.value)]) {
            const std::int64_t from = std::max(first, tensor.first);
            const std::int64_t to = std::min(end, tensor.first + tensor.elements);
            if (!tensor.isPacked || from >= to)
                continue;
            MR_TRY(pack(group, tensor));
            m_values.resize(static_cast<std::size_t>(to - from));
            unpackNf4(m_packed, tensor.elements, from - tensor.first, m_values);
            store(m_values, out.part(static_cast<std::size_t>(from - first), m_values.size()));
        }
        return {};
    }

private:
    // One is kept: pieces of a matrix follow each other.
    Status pack(GroupId group, const PackedTensor& tensor)
    {
        if (std::exchange(m_held, {group, tensor.first}) == std::pair(group, tensor.first))
            return {};
        m_packed.resize(nf4Layout(tensor.elements).bytes);
        MR_ASSIGN(const bool isRead, m_reader.readNf4(group, tensor.first, m_packed));
        if (isRead)
            return {};
        Nf4Packer packer;
        packer.begin(tensor.elements);
        MasterPiece piece;
        std::vector<float> values;
        MR_TRY(forPieces(m_reader, {group, tensor.first, tensor.elements}, piece,
            [&](std::int64_t, const MasterView& view) {
                values.resize(view.high.size());
                std::ranges::transform(view.high, view.low, values.begin(), joinHalves);
                packer.add(values);
                return Status();
            }));
        const auto packed = packer.finish();
        m_packed.assign(packed.begin(), packed.end());
        return {};
    }

    MasterReader& m_reader;
    std::vector<std::vector<PackedTensor>> m_tensors; // by group
    std::pair<GroupId, std::int64_t> m_held{GroupId{-1}, 0};
    std::vector<std::byte> m_packed;
    std::vector<float> m_values;
};

} // namespace

const PackedTensor& PackedGroup::holding(std::int64_t element) const
{
    return *std::ranges::find_if(tensors, [&](const PackedTensor& tensor) {
        return tensor.first <= element && element < tensor.first + tensor.elements;
    });
}

PackedGroup packedGroup(const ParamTable& trained, GroupId group, DType compute)
{
    PackedGroup packed;
    if (!trained.frozen || !trained.frozen->settings.nf4Base)
        return packed;
    packed.tensors = tensorsOf(trained.frozen->model, group);
    if (std::ranges::none_of(packed.tensors, &PackedTensor::isPacked))
        return {};
    for (PackedTensor& tensor : packed.tensors) {
        tensor.at = packed.bytes;
        const std::size_t plain = sizeOf(compute) * static_cast<std::size_t>(tensor.elements);
        packed.bytes += tensor.isPacked ? nf4Layout(tensor.elements).bytes
                                        : (plain + kNf4Align - 1) / kNf4Align * kNf4Align;
    }
    return packed;
}

GroupPacker::GroupPacker(const ParamTable& trained, DType compute, MasterReader& model, Sink sink)
    : m_compute(compute)
    , m_model(model)
    , m_sink(std::move(sink))
{
    for (std::size_t g = 0; g < trained.groups.size(); ++g)
        m_groups.push_back(packedGroup(trained, GroupId{static_cast<std::int32_t>(g)}, compute));
}

bool GroupPacker::packs(GroupId group) const
{
    return m_groups[static_cast<std::size_t>(group.value)].bytes > 0;
}

Status GroupPacker::add(GroupId group, std::int64_t first, const MasterView& piece)
{
    const PackedTensor& tensor = m_groups[static_cast<std::size_t>(group.value)].holding(first);
    m_values.resize(piece.high.size());
    std::ranges::transform(piece.high, piece.low, m_values.begin(), joinHalves);
    if (tensor.isPacked)
        return addMatrix(group, tensor, first);
    const std::size_t at =
        tensor.at + sizeOf(m_compute) * static_cast<std::size_t>(first - tensor.first);
    return m_compute == DType::BF16 ? m_sink(group, at, std::as_bytes(piece.high))
                                    : m_sink(group, at, std::as_bytes(std::span(m_values)));
}

// The piece is in m_values.
Status GroupPacker::addMatrix(GroupId group, const PackedTensor& tensor, std::int64_t first)
{
    if (first == tensor.first) {
        m_bytes.resize(nf4Layout(tensor.elements).bytes);
        MR_ASSIGN(m_isRead, m_model.readNf4(group, first, m_bytes));
        if (m_isRead)
            MR_TRY(m_sink(group, tensor.at, m_bytes));
        else
            m_packer.begin(tensor.elements);
    }
    if (m_isRead)
        return {};
    m_packer.add(m_values);
    const bool isWhole = first + std::ssize(m_values) == tensor.first + tensor.elements;
    return isWhole ? m_sink(group, tensor.at, m_packer.finish()) : Status();
}

std::unique_ptr<MasterReader> nf4Model(const ParamTable& model, MasterReader& reader)
{
    return std::make_unique<Nf4Model>(model, reader);
}

} // namespace mr
