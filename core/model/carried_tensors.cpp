#include "core/model/carried_tensors.h"

#include "core/base/shown_text.h"
#include "core/model/gguf_weights.h"
#include "core/model/model_config.h"
#include "core/model/weight_folder.h"
#include "core/model/wrapper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kCarriedBytes = std::uint64_t{8} << 20;

bool isSpelled(const WeightFolder& found, const TensorPrefix& prefix)
{
    return found.fileOf.contains(std::string(prefix.model) + "embed_tokens.weight");
}

// A file that has none of these is reported when its weights are looked for.
void chooseSpelling(const WeightFolder& found, ModelConfig& config)
{
    const auto spelling = std::ranges::find_if(
        kSpellings, [&](const TensorPrefix& prefix) { return isSpelled(found, prefix); });
    if (spelling != kSpellings.end())
        config.prefix = *spelling;
}

std::string layerName(const ModelConfig& config, std::int64_t block)
{
    return std::string(config.prefix.model) + "layers." + std::to_string(block) + ".";
}

// Published files have k and v of blocks that read those of another.
bool isUnreadKey(const ModelConfig& config, std::string_view name)
{
    for (std::int64_t block = 0; !config.keyGivers.empty() && block < config.layers; ++block) {
        if (!config.kindOf(block).readsKeys())
            continue;
        const std::string attention = layerName(config, block) + "self_attn.";
        for (const char* module : {"k_proj.", "v_proj.", "k_norm."})
            if (name.starts_with(attention + module))
                return true;
    }
    return false;
}

Status readOutputScales(const WeightFolder& found, ModelConfig& config)
{
    if (config.layerScalars.empty())
        return {};
    config.outputScales.assign(static_cast<std::size_t>(config.layers), 1.0F);
    for (std::int64_t block = 0; block < config.layers; ++block) {
        const std::string name = layerName(config, block) + std::string(config.layerScalars);
        const auto at = found.fileOf.find(name);
        if (at == found.fileOf.end())
            continue; // the class has 1
        const SafetensorsReader& reader = found.readers[at->second];
        float& scale = config.outputScales[static_cast<std::size_t>(block)];
        const auto& shape = found.entry(name).shape;
        if (shape != std::vector<std::int64_t>{1})
            return refuseWeights(reader.path(),
                fmt::format("tensor {} has shape [{}]; it must be one number, [1]: fetch the file "
                            "the model was published with",
                    shownName(name), fmt::join(shape, ", ")));
        MR_TRY(reader.readFloats(name, 0, {&scale, 1}));
        if (!std::isfinite(scale))
            return refuseWeights(reader.path(),
                "tensor " + shownName(name) + " is not finite; fetch the file again");
    }
    return {};
}

Status findCarried(const WeightFolder& found, ModelConfig& config)
{
    chooseSpelling(found, config);
    if (config.tieIsOpen)
        config.tiedEmbedding =
            !found.fileOf.contains(std::string(config.prefix.head) + "lm_head.weight");
    config.carried.clear();
    for (const auto& [name, file] : found.fileOf)
        if (isCarried(config, name))
            config.carried.push_back({name, found.files[file], found.entry(name)});
    return readOutputScales(found, config);
}

// All but a few tensors of some models are in 16 bits.
void findWide(const WeightFolder& found, ModelConfig& config)
{
    config.wideTensors.clear();
    const std::string embedding = std::string(config.prefix.model) + "embed_tokens.weight";
    if (!found.fileOf.contains(embedding) || found.entry(embedding).dtype == "F32")
        return;
    for (const auto& [name, file] : found.fileOf)
        if (found.entry(name).dtype == "F32")
            config.wideTensors.push_back(name);
}

bool isTheSame(const SafetensorEntry& a, const SafetensorEntry& b)
{
    return a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin && a.end == b.end;
}

} // namespace

Status readFileLayout(const fs::path& folder, ModelConfig& config)
{
    config.gguf = ggufOf(folder);
    if (!config.gguf.empty())
        return readGgufScales(config.gguf, config);
    std::error_code error;
    if (!fs::exists(folder / kSafetensorsFile, error) &&
        !fs::exists(folder / kSafetensorsIndex, error))
        return {};
    Result<WeightFolder> found = openWeightFolder(folder);
    if (!found.ok()) // of a model that carries nothing it is reported with the weights
        return config.carries.empty() ? Status() : found.status();
    if (!config.carries.empty())
        MR_TRY(findCarried(found.value(), config));
    findWide(found.value(), config);
    return {};
}

bool isCarried(const ModelConfig& config, std::string_view name)
{
    return isUnreadKey(config, name) ||
           std::ranges::any_of(config.carries, [&](std::string_view part) {
               return part.starts_with('*') ? name.ends_with(part.substr(1))
                                            : name.starts_with(part);
           });
}

Status CarriedReader::read(
    const CarriedTensor& tensor, std::uint64_t offset, std::span<std::byte> out)
{
    if (m_open.empty() || m_open.front().path() != tensor.file) {
        m_open.clear();
        MR_ASSIGN(SafetensorsReader reader, SafetensorsReader::open(tensor.file));
        m_open.push_back(std::move(reader));
    }
    const auto& entries = m_open.front().entries();
    const auto entry = entries.find(tensor.name);
    if (entry == entries.end() || !isTheSame(entry->second, tensor.entry))
        return Status::error(ErrorKind::DataCorrupt,
            tensor.file.string() + ": was changed since the run began: tensor " +
                shownName(tensor.name) +
                " is not where it was, and is to be copied into the saved model; put the file of "
                "the model back");
    return m_open.front().readBytes(tensor.name, offset, out);
}

Status CarriedReader::forBytes(
    const CarriedTensor& tensor, const std::function<void(std::span<const std::byte>)>& take)
{
    std::vector<std::byte> piece(std::min(kCarriedBytes, tensor.bytes()));
    for (std::uint64_t at = 0; at < tensor.bytes(); at += piece.size()) {
        const auto part =
            std::span(piece).first(std::min<std::uint64_t>(piece.size(), tensor.bytes() - at));
        MR_TRY(read(tensor, at, part));
        take(part);
    }
    return {};
}

} // namespace mr
