#include "core/model/weight_folder.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"
#include "core/base/file.h"
#include "core/base/shown_text.h"
#include "core/model/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

namespace mr {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMostIndexBytes = 16U << 20;
constexpr std::size_t kMostShards = 4096;
constexpr std::size_t kMostNameBytes = 255;

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
        return refuseWeights(folder, wanted);
    return refuseWeights(folder,
        wanted + "; it has " + *others.begin() + (others.size() > 1 ? " (and others)" : "") +
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
        return refuseWeights(file, "field \"weight_map\" must name a file for every tensor");
    std::map<std::string, std::string> out;
    for (const auto& item : map->items()) {
        if (!item.value().is_string() || !isPlainName(item.value().get<std::string>()))
            return refuseWeights(
                file, "tensor " + shownName(item.key()) + " is said to lie in " +
                          (item.value().is_string() ? shownName(item.value().get<std::string>())
                                                    : shown(item.value())) +
                          ", which is not a .safetensors file inside the folder");
        out[item.key()] = item.value().get<std::string>();
    }
    return out;
}

Status openFile(const fs::path& path, WeightFolder& found)
{
    std::error_code error;
    if (!fs::exists(path, error))
        return refuseWeights(path, "this weight file is missing; fetch it");
    if (!fs::is_regular_file(path, error))
        return refuseWeights(path, "is not a file");
    MR_ASSIGN(SafetensorsReader reader, SafetensorsReader::open(path));
    for (const auto& [name, entry] : reader.entries()) {
        const auto [at, added] = found.fileOf.emplace(name, found.files.size());
        if (!added)
            return refuseWeights(path,
                "tensor " + shownName(name) + " is also in " + found.files[at->second].string());
    }
    found.files.push_back(path);
    found.readers.push_back(std::move(reader));
    return {};
}

Result<std::set<std::string>> shardsOf(
    const fs::path& index, const std::map<std::string, std::string>& map)
{
    std::set<std::string> names;
    for (const auto& [tensor, file] : map)
        names.insert(file);
    if (names.size() > kMostShards)
        return refuseWeights(index, fmt::format("names {} files", names.size()));
    return names;
}

Status openShards(const fs::path& folder, WeightFolder& found)
{
    const fs::path index = folder / kSafetensorsIndex;
    MR_ASSIGN(auto map, readIndex(index));
    MR_ASSIGN(const auto names, shardsOf(index, map));
    for (const std::string& name : names)
        MR_TRY(openFile(folder / name, found));
    for (const auto& [tensor, file] : map) {
        const auto at = found.fileOf.find(tensor);
        if (at == found.fileOf.end() || found.files[at->second] != folder / file)
            return refuseWeights(index, "tensor " + shownName(tensor) + " is said to lie in " +
                                            shownName(file) + ", but it does not");
    }
    return {};
}

} // namespace

Status refuseWeights(const fs::path& path, const std::string& why)
{
    return Status::error(ErrorKind::InvalidArgument, path.string() + ": " + why);
}

std::string listedNames(const std::vector<std::string>& names)
{
    constexpr std::size_t kNamed = 5;
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kNamed)
        text += fmt::format(" and {} more", names.size() - kNamed);
    return text;
}

Result<std::vector<fs::path>> listWeightFiles(const fs::path& folder)
{
    std::error_code error;
    const auto isThere = [&](std::string_view name) {
        return fs::exists(fs::symlink_status(folder / name, error));
    };
    if (isThere(kSafetensorsFile))
        return std::vector<fs::path>{folder / kSafetensorsFile};
    if (!isThere(kSafetensorsIndex))
        return std::vector<fs::path>();
    MR_ASSIGN(const auto map, readIndex(folder / kSafetensorsIndex));
    MR_ASSIGN(const auto names, shardsOf(folder / kSafetensorsIndex, map));
    std::vector<fs::path> files;
    for (const std::string& name : names)
        files.push_back(folder / name);
    return files;
}

Result<WeightFolder> openWeightFolder(const fs::path& folder)
{
    std::error_code error;
    if (!fs::is_directory(folder, error))
        return refuseWeights(folder, "is not a folder");
    WeightFolder found;
    if (fs::exists(folder / kSafetensorsFile, error))
        MR_TRY(openFile(folder / kSafetensorsFile, found));
    else if (fs::exists(folder / kSafetensorsIndex, error))
        MR_TRY(openShards(folder, found));
    else
        return explainAbsence(folder);
    return found;
}

} // namespace mr
