#include "core/model/carried_tensors.h"

#include "core/base/shown_text.h"
#include "core/model/model_config.h"
#include "core/model/weight_folder.h"
#include "core/model/wrapper.h"

#include <algorithm>
#include <array>
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

void findCarried(const WeightFolder& found, ModelConfig& config)
{
    chooseSpelling(found, config);
    if (config.tieIsOpen)
        config.tiedEmbedding =
            !found.fileOf.contains(std::string(config.prefix.head) + "lm_head.weight");
    config.carried.clear();
    const auto isCarried = [&](const std::string& name) {
        return std::ranges::any_of(
            config.carries, [&](std::string_view begin) { return name.starts_with(begin); });
    };
    for (const auto& [name, file] : found.fileOf)
        if (isCarried(name))
            config.carried.push_back({name, found.files[file], found.entry(name)});
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
    std::error_code error;
    if (!fs::exists(folder / kSafetensorsFile, error) &&
        !fs::exists(folder / kSafetensorsIndex, error))
        return {};
    Result<WeightFolder> found = openWeightFolder(folder);
    if (!found.ok()) // of a model that carries nothing it is reported with the weights
        return config.carries.empty() ? Status() : found.status();
    if (!config.carries.empty())
        findCarried(found.value(), config);
    findWide(found.value(), config);
    return {};
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
