// findWeights: which file holds which tensor, and everything that is wrong with a model folder.

#include "core/api/json_fields.h"
#include "core/api/json_text.h"
#include "core/base/file.h"
#include "core/base/shown_text.h"
#include "core/model/nf4_tensor.h"
#include "core/model/safetensors.h"
#include "core/model/safetensors_header.h"
#include "core/model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace mr {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
constexpr std::uint64_t kMostIndexBytes = 16U << 20;
constexpr std::size_t kMostShards = 4096;
constexpr std::size_t kMostNameBytes = 255;
constexpr std::size_t kNamed = 5; // names listed for each kind of fault; the rest is counted
constexpr std::size_t kPieceBytes = 1U << 20;

Status refuse(const fs::path& path, const std::string& why)
{
    return Status::error(ErrorKind::InvalidArgument, path.string() + ": " + why);
}

// Where every tensor that any file holds lies.
struct Found {
    std::vector<fs::path> files;
    std::vector<SafetensorsReader> readers;
    std::map<std::string, std::size_t> fileOf; // by tensor
};

std::string listed(const std::vector<std::string>& items)
{
    std::string text;
    for (std::size_t i = 0; i < std::min(items.size(), kNamed); ++i)
        text += (i == 0 ? "" : ", ") + items[i];
    if (items.size() > kNamed)
        text += fmt::format(" and {} more", items.size() - kNamed);
    return text;
}

std::string shapeText(const std::vector<std::int64_t>& shape)
{
    std::string text;
    for (const std::int64_t n : shape)
        text += (text.empty() ? "" : ", ") + std::to_string(n);
    return "[" + text + "]";
}

// The folder has no weights this program reads: names the ones it has instead.
Status explainAbsence(const fs::path& folder)
{
    std::error_code error;
    std::set<std::string> others;
    for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
        const std::string extension = it->path().extension().string();
        for (const char* known : {".bin", ".pt", ".pth", ".ckpt", ".gguf", ".safetensors", ".h5"})
            if (extension == known)
                others.insert(shownName(it->path().filename().string()));
    }
    const std::string wanted = "no " + std::string(kSafetensorsFile) + " and no " +
                               std::string(kSafetensorsIndex) + " in this folder";
    if (others.empty())
        return refuse(folder, wanted);
    return refuse(folder, wanted + "; it has " + *others.begin() +
                              (others.size() > 1 ? " (and others)" : "") +
                              ", which is not read: convert the model to Hugging Face safetensors "
                              "first");
}

// File names come from a stranger: they may not leave the folder, and no file system has longer
// ones.
bool isPlainName(const std::string& name)
{
    const fs::path path(name);
    if (name.empty() || name.size() > kMostNameBytes || name.find('\0') != std::string::npos ||
        path.is_absolute() || path.extension() != ".safetensors")
        return false;
    return std::none_of(
        path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

Result<std::map<std::string, std::string>> readIndex(const fs::path& file)
{
    MR_ASSIGN(std::string text, readWholeFile(file, kMostIndexBytes));
    if (text.starts_with("version https://git-lfs"))
        return Status::error(
            ErrorKind::DataCorrupt, file.string() + ": " + describeForeignFile(text));
    Result<json> value = parseJson(text, file.string());
    MR_TRY(value.status());
    JsonFields fields(value.value(), file.string());
    const json* map = fields.find("weight_map");
    MR_TRY(fields.status());
    if (map == nullptr || !map->is_object() || map->empty())
        return refuse(file, "field \"weight_map\" must name a file for every tensor");
    std::map<std::string, std::string> out;
    for (const auto& item : map->items()) {
        if (!item.value().is_string() || !isPlainName(item.value().get<std::string>()))
            return refuse(
                file, "tensor " + shownName(item.key()) + " is said to lie in " +
                          (item.value().is_string() ? shownName(item.value().get<std::string>())
                                                    : shown(item.value())) +
                          ", which is not a .safetensors file inside the folder");
        out[item.key()] = item.value().get<std::string>();
    }
    return out;
}

Status openFile(const fs::path& path, Found& found)
{
    std::error_code error;
    if (!fs::exists(path, error))
        return refuse(path, "this weight file is missing; fetch it");
    if (!fs::is_regular_file(path, error))
        return refuse(path, "is not a file");
    MR_ASSIGN(SafetensorsReader reader, SafetensorsReader::open(path));
    for (const auto& [name, entry] : reader.entries()) {
        const auto [at, added] = found.fileOf.emplace(name, found.files.size());
        if (!added)
            return refuse(path,
                "tensor " + shownName(name) + " is also in " + found.files[at->second].string());
    }
    found.files.push_back(path);
    found.readers.push_back(std::move(reader));
    return {};
}

Status openShards(const fs::path& folder, Found& found)
{
    const fs::path index = folder / kSafetensorsIndex;
    MR_ASSIGN(auto map, readIndex(index));
    std::set<std::string> names;
    for (const auto& [tensor, file] : map)
        names.insert(file);
    if (names.size() > kMostShards)
        return refuse(index, fmt::format("names {} files", names.size()));
    for (const std::string& name : names)
        MR_TRY(openFile(folder / name, found));
    for (const auto& [tensor, file] : map) {
        const auto at = found.fileOf.find(tensor);
        if (at == found.fileOf.end() || found.files[at->second] != folder / file)
            return refuse(index, "tensor " + shownName(tensor) + " is said to lie in " +
                                     shownName(file) + ", but it does not");
    }
    return {};
}

// A file of a tied model that has a head as well: harmless if it is the embedding over again.
Status checkTiedHead(const Found& found)
{
    const auto head = found.fileOf.find(std::string(kHead));
    const auto embedding = found.fileOf.find(std::string(kEmbedding));
    if (embedding == found.fileOf.end())
        return {}; // reported as missing
    const SafetensorsReader& a = found.readers[head->second];
    const SafetensorsReader& b = found.readers[embedding->second];
    const SafetensorEntry& x = a.entries().at(std::string(kHead));
    const SafetensorEntry& y = b.entries().at(std::string(kEmbedding));
    bool equal = x.dtype == y.dtype && x.shape == y.shape;
    std::vector<std::byte> left(kPieceBytes);
    std::vector<std::byte> right(kPieceBytes);
    for (std::uint64_t at = 0; equal && at < x.end - x.begin; at += kPieceBytes) {
        const std::size_t count = std::min<std::uint64_t>(kPieceBytes, x.end - x.begin - at);
        MR_TRY(a.readBytes(std::string(kHead), at, std::span(left).first(count)));
        MR_TRY(b.readBytes(std::string(kEmbedding), at, std::span(right).first(count)));
        equal = std::memcmp(left.data(), right.data(), count) == 0;
    }
    if (equal)
        return {};
    return refuse(a.path(), "config.json ties the head to the embedding, but lm_head.weight "
                            "differs from model.embed_tokens.weight; set tie_word_embeddings to "
                            "false if the model has its own head");
}

struct Faults {
    std::vector<std::string> missing;
    std::vector<std::string> misshapen;
    std::vector<std::string> types;
    std::vector<std::string> surplus;

    Status status(const fs::path& folder, bool tied) const
    {
        std::string text;
        const auto add = [&](const char* what, const std::vector<std::string>& items) {
            if (!items.empty())
                text += (text.empty() ? "" : "; ") + std::string(what) + listed(items);
        };
        add("missing tensors: ", missing);
        add("wrong shapes: ", misshapen);
        add("dtypes that are not read (F32, F16 and BF16 are): ", types);
        add("tensors the config does not explain: ", surplus);
        if (text.empty())
            return {};
        if (!tied && missing.size() == 1 && missing.front() == kHead)
            text += " (config.json does not say tie_word_embeddings: true)";
        return refuse(folder, text);
    }
};

void judge(const NamedTensor& tensor, const SafetensorEntry& entry, Faults& faults)
{
    const bool isQuantised = entry.dtype == "U8" || entry.dtype == "I8";
    if (entry.shape != tensor.shape && !isQuantised)
        faults.misshapen.push_back(tensor.name + " is " + shapeText(entry.shape) +
                                   ", config.json asks for " + shapeText(tensor.shape));
    if (isQuantised)
        faults.types.push_back(tensor.name + " is quantised, and not to NF4 by bitsandbytes");
    else if (entry.dtype != "F32" && entry.dtype != "F16" && entry.dtype != "BF16")
        faults.types.push_back(tensor.name + " is " + entry.dtype);
}

// The tensors that belong to a matrix in NF4 are no surplus. False: it is not in NF4.
bool takeNf4Parts(const std::string& name, Found& found)
{
    if (!found.fileOf.contains(name + std::string(kNf4State)))
        return false;
    for (const std::string_view part : kNf4Parts)
        found.fileOf.erase(name + std::string(part));
    return true;
}

Result<WeightFiles> matchTensors(
    const fs::path& folder, const ModelConfig& config, const ParamTable& table, Found& found)
{
    WeightFiles out;
    Faults faults;
    std::set<std::string> dtypes;
    for (const NamedTensor& tensor : table.tensors) {
        const auto at = found.fileOf.find(tensor.name);
        if (at == found.fileOf.end()) {
            faults.missing.push_back(tensor.name);
            continue;
        }
        const SafetensorEntry& entry = found.readers[at->second].entries().at(tensor.name);
        const bool isNf4 = takeNf4Parts(tensor.name, found);
        if (!isNf4)
            judge(tensor, entry, faults);
        dtypes.insert(isNf4 ? "NF4" : entry.dtype);
        out.of.push_back({at->second, tensor.name, isNf4});
        found.fileOf.erase(at);
    }
    for (const auto& [name, file] : found.fileOf)
        if (!name.ends_with("rotary_emb.inv_freq") && !(config.tiedEmbedding && name == kHead))
            faults.surplus.push_back(shownName(name));
    MR_TRY(faults.status(folder, config.tiedEmbedding));
    out.dtypes.assign(dtypes.begin(), dtypes.end());
    return out;
}

} // namespace

Result<WeightFiles> findWeights(
    const fs::path& folder, const ModelConfig& config, const ParamTable& table, TiedHead head)
{
    std::error_code error;
    if (!fs::is_directory(folder, error))
        return refuse(folder, "is not a folder");
    Found found;
    if (fs::exists(folder / kSafetensorsFile, error))
        MR_TRY(openFile(folder / kSafetensorsFile, found));
    else if (fs::exists(folder / kSafetensorsIndex, error))
        MR_TRY(openShards(folder, found));
    else
        return explainAbsence(folder);
    if (config.tiedEmbedding && head == TiedHead::Compared &&
        found.fileOf.contains(std::string(kHead)))
        MR_TRY(checkTiedHead(found));
    Result<WeightFiles> files = matchTensors(folder, config, table, found);
    MR_TRY(files.status());
    files.value().files = found.files;
    for (const fs::path& file : found.files)
        files.value().bytes += fs::file_size(file, error);
    return files;
}

} // namespace mr
