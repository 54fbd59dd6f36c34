#include "core/model/weights.h"

#include "core/base/philox.h"
#include "core/base/shown_text.h"
#include "core/device/adamw.h"
#include "core/model/fp8_tensor.h"
#include "core/model/gguf_weights.h"
#include "core/model/nf4_tensor.h"
#include "core/model/safetensors.h"
#include "core/model/tensor_reader.h"

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

constexpr std::array<std::string_view, 3> kExportTypes = {"fp32", "bf16", "fp16"}; // of ExportType

class FileWeights final : public FloatReader
{
public:
    FileWeights(const ParamTable& table, std::vector<WeightFiles::Location> of,
        std::vector<SafetensorsReader> readers)
        : FloatReader(table)
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
    const std::filesystem::path& fileOf(std::size_t index) const override
    {
        return m_readers[m_of[index].file].path();
    }

    Status readFloats(std::size_t index, std::int64_t first, std::span<float> out) override
    {
        switch (m_of[index].form) {
        case WeightForm::Nf4:
            MR_TRY(openNf4(index));
            return m_nf4->read(first, out);
        case WeightForm::Fp8:
            MR_TRY(openFp8(index));
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
            storeHalves(value, out, i);
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
            storeHalves(
                static_cast<float>(range * pair[j]), out, static_cast<std::size_t>(i - first));
    }
}

} // namespace

Result<std::unique_ptr<MasterReader>> openWeights(
    const std::filesystem::path& folder, const ModelConfig& config, const ParamTable& table)
{
    if (const std::filesystem::path file = ggufOf(folder); !file.empty())
        return openGgufWeights(file, config, table);
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

std::string_view name(ExportType type) noexcept
{
    return kExportTypes[static_cast<std::size_t>(type)];
}

std::optional<ExportType> parseExportType(std::string_view text) noexcept
{
    for (std::size_t i = 0; i < kExportTypes.size(); ++i)
        if (kExportTypes[i] == text)
            return static_cast<ExportType>(i);
    return std::nullopt;
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
