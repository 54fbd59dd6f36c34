#include "core/model/peft_folder.h"

#include "core/api/json_fields.h"
#include "core/base/file.h"
#include "core/model/adapter_modules.h"
#include "core/model/export_plan.h"
#include "core/model/peft_fields.h"
#include "core/model/saved_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

namespace mr {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMostAdapterConfigBytes = 1U << 20;
constexpr std::string_view kConfigFile = "adapter_config.json";
constexpr std::string_view kWeightsFile = "adapter_model.safetensors";
constexpr std::string_view kHashFile = "millrace.json"; // PEFT warns of fields it does not know
constexpr const char* kHashField = "base_weights_hash";
constexpr const char* kBaseField = "base_quantization";
constexpr std::string_view kNf4 = "nf4";

// Files hold a tied embedding that is trained whole under two names. The second one, with the first
// element `first`.
std::optional<NamedTensor> secondName(const ParamTable& table, std::int64_t first)
{
    if (!hasTiedHead(wholeModel(table)) || !trainsHeadMatrix(table))
        return {};
    NamedTensor second = table.tensors.front();
    second.name = std::string(kPeftPrefix) + "lm_head.weight";
    second.first = first;
    return second;
}

// The model that the adapter belongs to, if the folder says so.
Status readBase(const fs::path& file, PeftConfig& config)
{
    std::error_code error;
    if (!fs::exists(file, error))
        return {};
    MR_ASSIGN(const std::string text, readWholeFile(file, kMostAdapterConfigBytes));
    const json object = json::parse(text, nullptr, false);
    if (object.is_discarded())
        return Status::error(ErrorKind::InvalidArgument, file.string() + ": is not JSON");
    JsonFields fields(object, file.string());
    config.baseHash = fields.text(kHashField, "");
    const std::string quantization = fields.text(kBaseField, "");
    config.settings.nf4Base = quantization == kNf4;
    if (!quantization.empty() && quantization != kNf4)
        fields.fail(kBaseField, "is " + quantization + "; nf4 is read");
    return fields.status();
}

std::string baseText(const PeftConfig& config)
{
    json object = {{kHashField, config.baseHash}};
    if (config.settings.nf4Base)
        object[kBaseField] = kNf4;
    return object.dump(1) + "\n";
}

// Reads an embedding that stands in the file under two names: behind its group lies the second one,
// which is compared.
class TiedReader final : public MasterReader
{
public:
    TiedReader(const ParamTable& table, const NamedTensor& second)
        : m_table(table)
    {
        m_table.tensors.push_back(second);
    }

    Status open(const fs::path& file)
    {
        MR_ASSIGN(m_reader, openTensors(file, m_table));
        const NamedTensor& first = m_table.tensors.front();
        const NamedTensor& second = m_table.tensors.back();
        MasterPiece one;
        MasterPiece other;
        const auto compare = [&](std::int64_t at, const MasterView& view) -> Status {
            const MasterView got = other.view(std::ssize(view.high));
            MR_TRY(m_reader->read(second.group, second.first + at - first.first, got));
            if (std::ranges::equal(got.high, view.high) && std::ranges::equal(got.low, view.low))
                return {};
            return Status::error(ErrorKind::InvalidArgument,
                file.string() + ": " + second.name + " differs from " + first.name +
                    ", and the model uses one matrix for both; train with ensure_weight_tying");
        };
        return forPieces(*m_reader, {first.group, first.first, first.count()}, one, compare);
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        return m_reader->read(group, first, out);
    }

private:
    ParamTable m_table;
    std::unique_ptr<MasterReader> m_reader;
};

} // namespace

ParamTable peftTable(const ParamTable& table)
{
    ParamTable files = table;
    if (const auto second = secondName(table, table.tensors.front().first))
        files.tensors.push_back(*second);
    return files;
}

Result<PeftConfig> readPeftConfig(const fs::path& folder)
{
    std::error_code error;
    for (const std::string_view name : {kConfigFile, kWeightsFile})
        if (!fs::exists(folder / name, error))
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("{}: has no {}; name the folder of an adapter in PEFT's format",
                    folder.string(), name));
    const fs::path file = folder / kConfigFile;
    MR_ASSIGN(const std::string text, readWholeFile(file, kMostAdapterConfigBytes));
    const json object = json::parse(text, nullptr, false);
    if (object.is_discarded())
        return Status::error(ErrorKind::InvalidArgument, file.string() + ": is not JSON");
    JsonFields fields(object, file.string());
    PeftConfig config;
    readPeftFields(fields, object, config);
    MR_TRY(fields.status());
    MR_TRY(readBase(folder / kHashFile, config));
    return config;
}

Status checkBase(const fs::path& folder, const PeftConfig& config, const fs::path& model,
    const std::string& hash)
{
    if (config.baseHash.empty() || config.baseHash == hash)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        folder.string() + ": was trained beside a model with other weights than those of " +
            model.string() + "; name that model");
}

Result<std::unique_ptr<MasterReader>> openPeftWeights(
    const fs::path& folder, const ParamTable& table)
{
    const fs::path file = folder / kWeightsFile;
    const auto second = secondName(table, table.groups.front().elements);
    if (!second)
        return openTensors(file, table);
    auto reader = std::make_unique<TiedReader>(table, *second);
    MR_TRY(reader->open(file));
    return std::unique_ptr<MasterReader>(std::move(reader));
}

Status savePeft(const fs::path& folder, const PeftConfig& config, const ParamTable& table,
    MasterReader& master, ExportType type)
{
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create folder " + folder.string() + ": " + error.message());
    const ParamTable files = peftTable(table);
    PeftConfig named = config;
    MR_ASSIGN(named.settings, settingsForPeft(wholeModel(table), config.settings));
    MR_TRY(writeTensors(folder / kWeightsFile, files, master, type));
    if (!config.baseHash.empty())
        MR_TRY(replaceFile(folder / kHashFile, baseText(config)));
    return replaceFile(
        folder / kConfigFile, peftConfigText(named, files.tensors.size() > table.tensors.size()));
}

} // namespace mr
