#include "core/found/judgement.h"

#include "core/api/json_text.h"
#include "core/exchange/gguf_config.h"
#include "core/exchange/gguf_tokenizer.h"
#include "core/exchange/json_reads.h"
#include "core/found/licence.h"
#include "core/model/architecture.h"
#include "core/model/gguf_family.h"
#include "core/model/gguf_weights.h"
#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/model/peft_folder.h"
#include "core/model/safetensors.h"
#include "core/model/weight_folder.h"
#include "core/model/wrapper.h"

#include <millrace/library.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mr {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::uint64_t kMostConfigBytes = 1U << 20;
constexpr const char* kWholeWords = "All of it can be trained, or an adapter beside it.";
constexpr const char* kNf4Words =
    "Its weights are quantised (NF4): an adapter beside them can be trained.";
constexpr const char* kGgufWords =
    "A GGUF file: an adapter beside it can be trained; for all weights take the model it was made "
    "of.";
constexpr const char* kNoConfigWords = "It has no config.json and no GGUF file, so it is no "
                                       "language model that can be read here.";

// Messages name files from the root on; the entry has the folder.
std::string withoutFolder(std::string message, const fs::path& folder)
{
    for (const std::string& prefix : {folder.string() + "/", folder.string() + ": "})
        for (std::size_t at = message.find(prefix); at != std::string::npos;
             at = message.find(prefix))
            message.erase(at, prefix.size());
    return message;
}

bool isThere(const fs::path& path)
{
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

bool isWeightFile(const fs::path& file)
{
    const std::string extension = file.extension().string();
    return extension == ".safetensors" || extension == ".bin" || extension == ".pt" ||
           extension == ".pth";
}

// The weights by their names where the folder does not say which they are.
std::vector<fs::path> filesOf(const fs::path& folder, const FolderList& list)
{
    Result<std::vector<fs::path>> named = listWeightFiles(folder);
    if (named.ok() && !named.value().empty())
        return named.value();
    std::vector<fs::path> files;
    std::copy_if(list.files.begin(), list.files.end(), std::back_inserter(files), isWeightFile);
    return files;
}

std::string missingShard(const std::vector<fs::path>& files)
{
    std::error_code error;
    for (std::size_t i = 0; i < files.size(); ++i)
        if (!fs::exists(files[i], error))
            return files.size() == 1
                       ? "its weights, " + files[i].filename().string() + ", are missing"
                       : fmt::format("shard {} of {} is missing, {}", i + 1, files.size(),
                             files[i].filename().string());
    return {};
}

// Nothing where the architecture is known, or where the config does not say which it is.
std::optional<std::string> foreignArchitecture(const fs::path& folder)
{
    Result<json> config = parseJson(headOf(folder / "config.json", kMostConfigBytes), "config");
    if (!config.ok() || wrapperOf(config.value().is_object() ? config.value() : json::object()))
        return std::nullopt;
    const json list = fieldOf(config.value(), "architectures");
    const bool isNamed = list.is_array() && list.size() == 1 && list[0].is_string();
    const std::string name = isNamed ? list[0].get<std::string>() : std::string();
    if (name.empty() || findArchitecture(name) != nullptr)
        return std::nullopt;
    return name;
}

std::string unknownWords(const std::string& architecture)
{
    return "The architecture " + firstLine(architecture) + " " + unsupportedReason(architecture) +
           ".";
}

std::string brokenWords(const fs::path& link)
{
    return "incomplete: " + link.filename().string() + " is a link to a file that is not there";
}

std::string incompleteWords(const std::vector<fs::path>& files, const FolderList& list)
{
    if (const std::string shard = missingShard(files); !shard.empty())
        return "incomplete: " + shard;
    if (list.broken.empty())
        return {};
    return brokenWords(list.broken.front());
}

// Nothing can be done with a model for this reason; empty: something can.
std::string faultOf(const fs::path& folder, const ModelInfo& info, std::string& architecture)
{
    if (info.problems.empty())
        return {};
    if (!info.canBePlanned)
        if (const auto name = foreignArchitecture(folder)) {
            architecture = firstLine(*name);
            return unknownWords(*name);
        }
    const std::string first = withoutFolder(info.problems.front(), folder);
    const bool isTokenizer =
        info.canBePlanned && info.tokenizerKind.empty() && info.problems.size() == 1;
    return (isTokenizer ? "no tokenizer: " : "") + first;
}

void judgeInfo(const fs::path& folder, const ModelInfo& info, LocalModel& model)
{
    model.architecture = firstLine(info.architecture);
    model.parameters = info.parameters;
    model.reason = faultOf(folder, info, model.architecture);
    if (!model.reason.empty())
        return;
    Result<ModelConfig> config = readModelConfig(folder);
    const bool isNf4 = config.ok() && config.value().isNf4;
    model.use = isNf4 ? ModelUse::Adapter : ModelUse::Train;
    model.reason = isNf4 ? kNf4Words : kWholeWords;
}

void judgeAdapter(const fs::path& folder, LocalModel& model)
{
    const Result<PeftConfig> config = readPeftConfig(folder);
    model.isAdapter = config.ok();
    if (!config.ok()) {
        model.reason = withoutFolder(config.status().message(), folder);
        return;
    }
    const std::string base = Result(config).value().base;
    model.reason = base.empty() ? "An adapter" : "An adapter of " + firstLine(base);
    model.reason += "; name it with --adapter, beside its model.";
}

std::int64_t elementsOf(const GgufFile& file)
{
    double count = 0.0; // of a stranger: no sum of whole numbers overflows
    for (const GgufTensor& tensor : file.tensors())
        count += static_cast<double>(tensor.count());
    return static_cast<std::int64_t>(std::min(count, 1e18));
}

// Ok: the file can be asked.
Status lookInto(const GgufFile& file, LocalModel& model)
{
    const GgufKeys keys(file);
    model.architecture = firstLine(keys.architecture());
    model.parameters = elementsOf(file);
    model.licence = licenceOf(file);
    if (ggufFamilyOfArchitecture(keys.architecture()) == nullptr)
        return Status::error(ErrorKind::InvalidArgument, unknownWords(keys.architecture()));
    MR_ASSIGN(const std::string text, ggufConfigText(keys));
    MR_ASSIGN(ModelConfig config, parseModelConfig(text, file.path().string()));
    MR_TRY(readGgufScales(file.path(), config));
    const ParamTable table = buildParamTable(config);
    model.architecture = config.architecture;
    model.parameters = table.parameters;
    MR_TRY(checkGgufWeights(file.path(), config, table).status());
    return ggufTokenizerFiles(keys).status();
}

Status lookInto(const GgufGroup& group, LocalModel& model)
{
    if (const std::string missing = group.missing(); !missing.empty())
        return Status::error(ErrorKind::InvalidArgument, "incomplete: " + missing + " is missing");
    if (group.parts > 1)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("It is split into {} files, which are not read in parts; merge them with "
                        "`llama-gguf-split --merge FIRST_PART WHOLE_FILE`.",
                group.parts));
    std::error_code error;
    if (!fs::exists(group.files.front(), error))
        return Status::error(ErrorKind::InvalidArgument, brokenWords(group.files.front()));
    MR_ASSIGN(const GgufFile file, GgufFile::open(group.files.front()));
    return lookInto(file, model);
}

} // namespace

bool isModelFolder(const FolderList& list)
{
    const auto isConfig = [](const fs::path& file) { return file.filename() == "config.json"; };
    const auto isWeight = [](const fs::path& file) {
        return isWeightFile(file) || file.filename() == kSafetensorsIndex;
    };
    return std::any_of(list.files.begin(), list.files.end(), isConfig) &&
           (std::any_of(list.files.begin(), list.files.end(), isWeight) ||
               std::any_of(list.broken.begin(), list.broken.end(), isWeight));
}

bool holdsAdapter(const FolderList& list)
{
    return std::any_of(list.files.begin(), list.files.end(),
        [](const fs::path& file) { return file.filename() == "adapter_config.json"; });
}

FoundModel judgeFolder(const fs::path& folder, const FolderList& list)
{
    FoundModel found;
    LocalModel& model = found.model;
    model.path = folder.string();
    model.licence = licenceOfFolder(folder);
    found.files = filesOf(folder, list);
    model.bytes = bytesOf(found.files);
    if (!isThere(folder / "config.json") && holdsAdapter(list))
        judgeAdapter(folder, model);
    else if (!isThere(folder / "config.json"))
        model.reason = kNoConfigWords;
    else if (Result<ModelInfo> info = inspectModel(folder.string()); info.ok())
        judgeInfo(folder, info.value(), model);
    else
        model.reason = withoutFolder(info.status().message(), folder);
    if (const std::string words = incompleteWords(found.files, list); !words.empty()) {
        model.use = ModelUse::Nothing;
        model.reason = words;
    }
    return found;
}

FoundModel judgeGguf(const GgufGroup& group)
{
    FoundModel found;
    found.files = group.files;
    found.model.bytes = bytesOf(group.files);
    const fs::path& first = group.files.front();
    found.model.path = first.string();
    const Status status = lookInto(group, found.model);
    found.model.use = status.ok() ? ModelUse::Adapter : ModelUse::Nothing;
    found.model.reason =
        status.ok() ? kGgufWords : withoutFolder(status.message(), first.parent_path());
    if (found.model.licence.empty())
        found.model.licence = licenceOfFolder(first.parent_path());
    return found;
}

} // namespace mr
