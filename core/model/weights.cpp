#include "core/model/weights.h"

#include "core/base/philox.h"
#include "core/base/shown_text.h"
#include "core/device/adamw.h"
#include "core/model/fp8_tensor.h"
#include "core/model/nf4_tensor.h"
#include "core/model/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

namespace mr {

namespace {

constexpr std::size_t kMasterPieceElements = 1U << 20; // 4 MiB of F32

// Finds the tensors that a piece of a group meets; a subclass supplies their content.
class TensorReader : public MasterReader
{
public:
    explicit TensorReader(const ParamTable& table)
        : m_table(table)
        , m_inGroup(table.groups.size())
    {
        for (std::size_t i = 0; i < table.tensors.size(); ++i)
            m_inGroup[static_cast<std::size_t>(table.tensors[i].group.value)].push_back(i);
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
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
                    out.part(static_cast<std::size_t>(from - first),
                        static_cast<std::size_t>(to - from))));
        }
        return {};
    }

protected:
    virtual Status readTensor(std::size_t index, std::int64_t first, const MasterView& out) = 0;

    const std::vector<std::size_t>& tensorsOf(GroupId group) const
    {
        return m_inGroup[static_cast<std::size_t>(group.value)];
    }

    const ParamTable& m_table;

private:
    std::vector<std::vector<std::size_t>> m_inGroup; // into ParamTable::tensors
};

void store(float value, const MasterView& view, std::size_t i)
{
    view.high[i] = highHalf(value);
    if (!view.low.empty())
        view.low[i] = lowHalf(value);
}

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

class FileWeights final : public TensorReader
{
public:
    FileWeights(const ParamTable& table, std::vector<WeightFiles::Location> of,
        std::vector<SafetensorsReader> readers)
        : TensorReader(table)
        , m_of(std::move(of))
        , m_readers(std::move(readers))
    {
    }

    Result<bool> readNf4(GroupId group, std::int64_t first, std::span<std::byte> out) override
    {
        const auto& inGroup = tensorsOf(group);
        const auto index = std::ranges::find_if(
            inGroup, [&](std::size_t i) { return m_table.tensors[i].first == first; });
        if (index == inGroup.end() || m_of[*index].form != WeightForm::Nf4)
            return false;
        MR_TRY(openNf4(*index));
        MR_TRY(m_nf4->pack(out));
        return true;
    }

private:
    Status readTensor(std::size_t index, std::int64_t first, const MasterView& out) override
    {
        const std::string& name = m_of[index].name;
        const SafetensorsReader& reader = m_readers[m_of[index].file];
        if (m_of[index].form == WeightForm::Nf4)
            MR_TRY(openNf4(index));
        else if (m_of[index].form == WeightForm::Fp8)
            MR_TRY(openFp8(index));
        m_values.resize(std::min(out.high.size(), kMasterPieceElements));
        for (std::size_t at = 0; at < out.high.size(); at += m_values.size()) {
            const auto part =
                std::span(m_values).first(std::min(m_values.size(), out.high.size() - at));
            const std::int64_t place = first + static_cast<std::int64_t>(at);
            MR_TRY(readPart(index, place, part));
            bool usable = true;
            for (std::size_t i = 0; i < part.size(); ++i) {
                usable = usable && isUsable(part[i]);
                store(part[i], out, at + i);
            }
            if (usable)
                continue;
            const auto bad = std::find_if_not(part.begin(), part.end(), isUsable);
            return refuseValue(reader.path(), name, place + (bad - part.begin()), *bad);
        }
        return {};
    }

    // Precondition: a matrix in codes is open.
    Status readPart(std::size_t index, std::int64_t first, std::span<float> out)
    {
        switch (m_of[index].form) {
        case WeightForm::Nf4:
            return m_nf4->read(first, out);
        case WeightForm::Fp8:
            return m_fp8->read(first, out);
        case WeightForm::Plain:
            break;
        }
        const NamedTensor& tensor = m_table.tensors[index];
        const SafetensorsReader& reader = m_readers[m_of[index].file];
        return tensor.isPart() ? readColumns(tensor, reader, first, out)
                               : reader.readFloats(tensor.name, first, out);
    }

    // Row by row.
    Status readColumns(const NamedTensor& part, const SafetensorsReader& reader, std::int64_t first,
        std::span<float> out)
    {
        const std::int64_t columns = part.shape[1];
        while (!out.empty()) {
            const std::int64_t column = first % columns;
            const auto count =
                static_cast<std::size_t>(std::min<std::int64_t>(columns - column, std::ssize(out)));
            const std::int64_t at = first / columns * part.fileColumns + part.firstColumn + column;
            MR_TRY(reader.readFloats(part.name, at, out.first(count)));
            out = out.subspan(count);
            first += static_cast<std::int64_t>(count);
        }
        return {};
    }

    Status openFp8(std::size_t index)
    {
        if (m_fp8 && m_fp8Index == index)
            return {};
        const std::string& name = m_of[index].name;
        MR_ASSIGN(
            m_fp8, Fp8Tensor::open(name, m_table.tensors[index].shape, m_readers[m_of[index].file],
                       *holderOf(name + std::string(kFp8Scale))));
        m_fp8Index = index;
        return {};
    }

    // One is kept: pieces of a matrix follow each other.
    Status openNf4(std::size_t index)
    {
        if (m_nf4 && m_nf4Index == index)
            return {};
        MR_ASSIGN(m_nf4, Nf4Tensor::open(m_of[index].name, m_table.tensors[index].shape,
                             [this](const std::string& name) { return holderOf(name); }));
        m_nf4Index = index;
        return {};
    }

    const SafetensorsReader* holderOf(const std::string& name) const
    {
        const auto at = std::ranges::find_if(m_readers,
            [&](const SafetensorsReader& reader) { return reader.entries().contains(name); });
        return at == m_readers.end() ? nullptr : &*at;
    }

    std::vector<WeightFiles::Location> m_of;
    std::vector<SafetensorsReader> m_readers;
    std::vector<float> m_values;
    std::optional<Nf4Tensor> m_nf4;
    std::size_t m_nf4Index = 0;
    std::optional<Fp8Tensor> m_fp8;
    std::size_t m_fp8Index = 0;
};

class MadeWeights final : public TensorReader
{
public:
    MadeWeights(const ParamTable& table, MatrixFill fill)
        : TensorReader(table)
        , m_fill(std::move(fill))
    {
    }

private:
    Status readTensor(std::size_t index, std::int64_t first, const MasterView& out) override
    {
        const NamedTensor& tensor = m_table.tensors[index];
        if (tensor.shape.size() > 1) {
            m_fill(tensor, first, out);
            return {};
        }
        const float value = firstValue(m_table, m_table.slotOf(tensor).kind);
        for (std::size_t i = 0; i < out.high.size(); ++i)
            store(value, out, i);
        return {};
    }

    MatrixFill m_fill;
};

// A number in (0, 1] of 53 bits.
double uniform(std::uint32_t high, std::uint32_t low)
{
    const std::uint64_t bits = ((std::uint64_t{high} << 32) | low) >> 11;
    return (static_cast<double>(bits) + 1.0) * 0x1p-53;
}

// Box and Muller, "A note on the generation of random normal deviates" (1958): one Philox block
// makes the elements 2 k and 2 k + 1.
std::array<double, 2> normalPair(std::uint64_t key, std::uint64_t block)
{
    const std::array<std::uint32_t, 4> words = philox(key, block);
    const double radius = std::sqrt(-2.0 * std::log(uniform(words[0], words[1])));
    const double angle = 2.0 * std::numbers::pi * uniform(words[2], words[3]);
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

void fillNormal(std::uint64_t key, double range, std::int64_t first, const MasterView& out)
{
    const std::int64_t end = first + std::ssize(out.high);
    for (std::int64_t i = first; i < end;) {
        const std::array<double, 2> pair = normalPair(key, static_cast<std::uint64_t>(i / 2));
        for (auto j = static_cast<std::size_t>(i % 2); j < 2 && i < end; ++j, ++i)
            store(static_cast<float>(range * pair[j]), out, static_cast<std::size_t>(i - first));
    }
}

} // namespace

Result<std::unique_ptr<MasterReader>> openWeights(
    const std::filesystem::path& folder, const ModelConfig& config, const ParamTable& table)
{
    Result<WeightFiles> files = findWeights(folder, config, table);
    MR_TRY(files.status());
    std::vector<SafetensorsReader> readers;
    for (const std::filesystem::path& file : files.value().files) {
        MR_ASSIGN(SafetensorsReader reader, SafetensorsReader::open(file));
        readers.push_back(std::move(reader));
    }
    return std::unique_ptr<MasterReader>(
        std::make_unique<FileWeights>(table, std::move(files.value().of), std::move(readers)));
}

Result<std::unique_ptr<MasterReader>> openTensors(
    const std::filesystem::path& file, const ParamTable& table)
{
    MR_ASSIGN(SafetensorsReader reader, SafetensorsReader::open(file));
    std::map<std::string, SafetensorEntry> left = reader.entries();
    std::vector<WeightFiles::Location> of;
    for (const NamedTensor& tensor : table.tensors) {
        const auto entry = left.find(tensor.name);
        if (entry == left.end())
            return Status::error(ErrorKind::InvalidArgument,
                file.string() + ": tensor " + tensor.name + " is missing");
        if (entry->second.shape != tensor.shape)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("{}: tensor {} has shape ({}), want ({})", file.string(), tensor.name,
                    fmt::join(entry->second.shape, ", "), fmt::join(tensor.shape, ", ")));
        const std::string& dtype = entry->second.dtype;
        if (dtype != "F32" && dtype != "F16" && dtype != "BF16")
            return Status::error(
                ErrorKind::InvalidArgument, file.string() + ": tensor " + tensor.name + " is " +
                                                shownName(dtype) + ", want F32, F16 or BF16");
        of.push_back({0, tensor.name});
        left.erase(entry);
    }
    if (!left.empty())
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("{}: {} more tensors than expected, the first is {}", file.string(),
                left.size(), shownName(left.begin()->first)));
    std::vector<SafetensorsReader> readers;
    readers.push_back(std::move(reader));
    return std::unique_ptr<MasterReader>(
        std::make_unique<FileWeights>(table, std::move(of), std::move(readers)));
}

std::unique_ptr<MasterReader> madeWeights(const ParamTable& table, MatrixFill fill)
{
    return std::make_unique<MadeWeights>(table, std::move(fill));
}

std::unique_ptr<MasterReader> initialWeights(
    const ModelConfig& config, const ParamTable& table, std::uint64_t seed)
{
    return madeWeights(table, [seed, range = config.initializerRange](const NamedTensor& tensor,
                                  std::int64_t first, const MasterView& out) {
        const std::uint64_t key = XXH3_64bits(tensor.name.data(), tensor.name.size()) ^ seed ^
                                  static_cast<std::uint64_t>(tensor.firstColumn);
        fillNormal(key, range, first, out);
    });
}

Result<std::string> weightsHash(
    const ParamTable& table, MasterReader& master, const MasterSink& also)
{
    std::map<std::string_view, std::vector<const NamedTensor*>> order; // none: it is carried
    std::map<std::string_view, const CarriedTensor*> carried;
    for (const NamedTensor& tensor : table.tensors)
        order[tensor.name].push_back(&tensor);
    for (const CarriedTensor& tensor : table.carried) {
        order[tensor.name] = {};
        carried[tensor.name] = &tensor;
    }
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(
        XXH3_createState(), XXH3_freeState);
    XXH3_128bits_reset(state.get());
    const auto add = [&](const auto& values) {
        XXH3_128bits_update(state.get(), values.data(), values.size() * sizeof(values[0]));
    };
    MasterPiece piece;
    std::vector<float> joined;
    CarriedReader reader;
    const auto take = [&](const MasterView& view) {
        joined.resize(view.high.size());
        std::transform(
            view.high.begin(), view.high.end(), view.low.begin(), joined.begin(), joinHalves);
        add(joined);
    };
    for (const auto& [name, tensors] : order) {
        if (tensors.empty()) {
            MR_TRY(reader.forBytes(*carried[name], add));
            continue;
        }
        const NamedTensor& tensor = *tensors.front();
        if (tensor.isPart()) {
            JoinedRows rows(tensors);
            MR_TRY(rows.forPieces(
                master, 0, rows.count(),
                [&](std::int64_t, const MasterView& view) {
                    take(view);
                    return Status();
                },
                also));
            continue;
        }
        MR_TRY(forPieces(master, {tensor.group, tensor.first, tensor.count()}, piece,
            [&](std::int64_t first, const MasterView& view) {
                take(view);
                return also ? also(tensor.group, first, view) : Status();
            }));
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
        static_cast<unsigned long long>(hash.high64), static_cast<unsigned long long>(hash.low64));
    return std::string(text.data());
}

} // namespace mr
