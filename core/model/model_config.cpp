#include "core/model/model_config.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"
#include "core/base/file.h"
#include "core/model/architecture.h"
#include "core/model/config_fields.h"
#include "core/model/family_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <system_error>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::uint64_t kMostConfigBytes = 1U << 20;

// Far above any model, far below where a product of three overflows.
constexpr IntRange kWidths{1, 1 << 24};
constexpr IntRange kHeads{1, 1 << 16};
constexpr IntRange kIds{1, std::numeric_limits<std::int32_t>::max()};
constexpr double kMostParameters = 0x1p52;

// architectures[0], or the architecture of model_type; empty with the fault in `fields`.
std::string namedArchitecture(
    JsonFields& fields, const std::string& type, const std::string& source)
{
    const json* list = fields.find("architectures");
    const bool names = list != nullptr && list->is_array() && !list->empty();
    if (list != nullptr &&
        (!list->is_array() || list->size() > 1 || (names && !(*list)[0].is_string())))
        fields.fail("architectures", "must be a list of one name");
    else if (names)
        return (*list)[0].get<std::string>();
    else if (type.empty())
        fields.take(
            refuseConfig(source, R"(fields "architectures" and "model_type" name no model)"));
    const ArchitectureTraits* traits = findModelType(type);
    return traits == nullptr ? type : std::string(traits->name);
}

// Null with the fault in `fields`.
const ArchitectureTraits* readArchitecture(JsonFields& fields, const std::string& source)
{
    const std::string type = fields.text("model_type", "");
    const std::string found = namedArchitecture(fields, type, source);
    if (!fields.status().ok())
        return nullptr;
    const ArchitectureTraits* traits = findArchitecture(found);
    if (traits == nullptr)
        fields.take(refuseConfig(
            source, "architecture " + shown(json(found)) + " " + unsupportedWords(found)));
    else if (!type.empty() && type != traits->modelType)
        fields.take(refuseConfig(source, "field \"model_type\" is " + shown(json(type)) +
                                             ", which contradicts architecture " + found));
    return fields.status().ok() ? traits : nullptr;
}

void readGeometry(
    JsonFields& f, const ArchitectureTraits& traits, const json& object, ModelConfig& c)
{
    BlockKind& b = c.block;
    c.hidden = f.requiredInteger("hidden_size", kWidths);
    b.intermediate = f.requiredInteger(traits.mlpWidth, kWidths);
    c.layers = f.requiredInteger("num_hidden_layers", kLayerCounts);
    b.heads = f.requiredInteger("num_attention_heads", kHeads);
    constexpr const char* kKvHeads = "num_key_value_heads";
    const bool isClassDefault = traits.missingKvHeads != 0 && !object.contains(kKvHeads);
    b.kvHeads = f.integer(kKvHeads, kHeads, isClassDefault ? traits.missingKvHeads : b.heads);
    b.headDim = f.integer("head_dim", kHeads, traits.missingHeadDim);
    c.vocab = f.requiredInteger("vocab_size", kIds);
    c.maxPositions = f.requiredInteger("max_position_embeddings", kIds);
    if (!f.status().ok())
        return;
    if (b.heads % b.kvHeads != 0)
        f.fail(kKvHeads, fmt::format("is {}; num_attention_heads ({}) must be a multiple of it",
                             b.kvHeads, b.heads));
    if (b.headDim == 0) {
        if (c.hidden % b.heads != 0)
            f.fail("hidden_size",
                fmt::format(
                    "is {}, not a multiple of num_attention_heads ({}), and there is no head_dim",
                    c.hidden, b.heads));
        b.headDim = c.hidden / b.heads;
    }
    if (b.headDim % 2 != 0)
        f.fail("head_dim",
            fmt::format("is {}; it must be even, because positions turn pairs", b.headDim));
}

// An upper bound in double: every factor is limited, so nothing overflows.
void checkParameterCount(JsonFields& f, const ModelConfig& c)
{
    const auto hidden = static_cast<double>(c.hidden);
    const double attention =
        2.0 * hidden * static_cast<double>(c.block.queryColumns() + c.block.keyColumns());
    const double mlp = 3.0 * hidden * static_cast<double>(c.block.intermediate);
    const double total = static_cast<double>(c.layers) * (attention + mlp) +
                         2.0 * hidden * static_cast<double>(c.vocab);
    if (!(total <= kMostParameters))
        f.fail("hidden_size",
            fmt::format(
                "is {}: with the other sizes the model has more parameters than can be counted",
                c.hidden));
}

void readNumbers(JsonFields& f, ModelConfig& c)
{
    c.rmsNormEps = f.requiredNumber("rms_norm_eps");
    if (f.status().ok() && !(c.rmsNormEps > 0.0 && c.rmsNormEps < 1.0))
        f.fail("rms_norm_eps", "must be above 0 and below 1");
    c.initializerRange = f.number("initializer_range", 0.02);
    if (!(c.initializerRange >= 0.0 && c.initializerRange <= 1e3))
        f.fail("initializer_range", "must be from 0 to 1000");
}

void readDtype(JsonFields& f, const std::string& source, ModelConfig& c)
{
    const std::string older = f.text("torch_dtype", "");
    c.dtype = f.text("dtype", older);
    for (const std::string_view known : {"", "float32", "float16", "bfloat16"})
        if (c.dtype == known)
            return;
    f.take(refuseConfig(source,
        "dtype " + shown(json(c.dtype)) + " is not supported; use float32, float16 or bfloat16"));
}

void readTokenIds(JsonFields& f, ModelConfig& c)
{
    const IntRange ids{-1, c.vocab - 1};
    c.bosToken = f.integer("bos_token_id", ids, -1);
    const json* eos = f.find("eos_token_id");
    if (eos == nullptr)
        return;
    const json list = eos->is_array() ? *eos : json::array({*eos});
    for (const json& item : list) {
        const bool whole = item.is_number_integer() &&
                           !(item.is_number_unsigned() &&
                               item.get<std::uint64_t>() > static_cast<std::uint64_t>(ids.most));
        const std::int64_t id = whole ? item.get<std::int64_t>() : -2;
        if (id < ids.least || id > ids.most)
            return f.fail("eos_token_id",
                fmt::format("holds {}; ids must be below vocab_size ({})", shown(item), c.vocab));
        if (id >= 0)
            c.eosTokens.push_back(id);
    }
}

// Any other kind that is not switched off was refused before.
void readQuantisation(const json& object, ModelConfig& c)
{
    const auto found = object.find("quantization_config");
    const bool isThere = found != object.end() && found->is_object() && !found->empty();
    c.isFp8 = isThere && found->value("quant_method", json()) == "fp8";
    c.isNf4 = isThere && !c.isFp8;
    if (c.isFp8)
        c.notes.push_back("The weights are published in FP8; they are read as the numbers they "
                          "stand for, and saved in the type of the run.");
}

} // namespace

std::vector<BlockKind> ModelConfig::kinds() const
{
    std::vector<BlockKind> found;
    for (std::int64_t i = 0; i < layers; ++i)
        if (std::find(found.begin(), found.end(), kindOf(i)) == found.end())
            found.push_back(kindOf(i));
    return found;
}

std::int64_t ModelConfig::window() const noexcept
{
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < layers; ++i)
        longest = std::max(longest, kindOf(i).window);
    return longest;
}

std::int64_t ModelConfig::longestSequence() const noexcept
{
    const RopeScaling& ropeScaling = ropes.front().scaling;
    const double given = ropeScaling.originalPositions;
    double base = static_cast<double>(maxPositions);
    if (ropeScaling.type == RopeType::Yarn)
        base = given;
    else if (ropeScaling.type != RopeType::Dynamic || ropeScaling.alpha > 0.0)
        base = 0.0;
    const double most = std::min(base * ropeScaling.factor, static_cast<double>(kIds.most));
    return std::max(maxPositions, static_cast<std::int64_t>(most));
}

namespace {

// `object`: the fields of a text model.
Result<ModelConfig> parseText(const json& object, const std::string& source)
{
    JsonFields fields(object, source);
    MR_TRY(fields.status());
    const ArchitectureTraits* traits = readArchitecture(fields, source);
    MR_TRY(fields.status());
    ModelConfig config;
    config.architecture = traits->name;
    config.family = traits->name;
    readGeometry(fields, *traits, object, config);
    MR_TRY(fields.status());
    checkParameterCount(fields, config);
    readNumbers(fields, config);
    readFamily(fields, {*traits, object, source}, config);
    readDtype(fields, source, config);
    readTokenIds(fields, config);
    MR_TRY(fields.status());
    for (const std::string& name : fields.unknown())
        MR_TRY(checkOtherField(name, object[name], source));
    readQuantisation(object, config);
    return config;
}

Result<ModelConfig> parseWrapped(
    const WrapperTraits& wrapper, const json& object, const std::string& source)
{
    MR_ASSIGN(const json text, textConfig(wrapper, object, source));
    MR_ASSIGN(ModelConfig config, parseText(text, source + ", text_config"));
    if (config.logitCap > 0.0 && !wrapper.capsLogits)
        return refuseConfig(source, "field \"text_config.final_logit_softcapping\" is not null: " +
                                        std::string(wrapper.name) +
                                        " of transformers leaves it out and other programs do not; "
                                        "set it to null, or take the text model");
    config.architecture = wrapper.name;
    config.isWrapped = true;
    config.tieIsOpen = leavesTieOpen(object);
    config.prefix = wrapper.prefix;
    config.carries = wrapper.carried;
    return config;
}

} // namespace

Result<ModelConfig> parseModelConfig(std::string_view text, const std::string& source)
{
    Result<json> value = parseJson(text, source);
    MR_TRY(value.status());
    const WrapperTraits* wrapper = value.value().is_object() ? wrapperOf(value.value()) : nullptr;
    Result<ModelConfig> config = wrapper != nullptr ? parseWrapped(*wrapper, value.value(), source)
                                                    : parseText(value.value(), source);
    if (config.ok())
        config.value().text = text;
    return config;
}

namespace {

// A file that can be taken was made a folder of before.
Status refuseGgufFile(const std::filesystem::path& path)
{
    MR_ASSIGN(const File file, File::openRead(path));
    std::array<char, 4> magic{};
    const bool isRead = file.readAt(0, std::as_writable_bytes(std::span(magic))).ok();
    if (!isRead || std::string_view(magic.data(), magic.size()) != "GGUF")
        return {};
    return refuseConfig(path.string(),
        "is a GGUF file, and a model folder is wanted here; take the one that it was made of");
}

} // namespace

Result<ModelConfig> readModelConfig(const std::filesystem::path& path)
{
    std::error_code error;
    const auto kind = std::filesystem::status(path, error).type();
    if (kind == std::filesystem::file_type::not_found)
        return refuseConfig(path.string(), "there is no such folder or file");
    const bool folder = kind == std::filesystem::file_type::directory;
    const std::filesystem::path file = folder ? path / "config.json" : path;
    if (folder && !std::filesystem::exists(file, error))
        return refuseConfig(path.string(), "not a model folder: it has no config.json");
    if (!std::filesystem::is_regular_file(file, error))
        return refuseConfig(file.string(), "is not a file");
    MR_TRY(refuseGgufFile(file));
    MR_ASSIGN(std::string text, readWholeFile(file, kMostConfigBytes));
    if (text.starts_with("version https://git-lfs"))
        return Status::error(ErrorKind::DataCorrupt,
            file.string() +
                ": git-lfs pointer: run `git lfs pull` in the folder to fetch the file");
    MR_ASSIGN(ModelConfig config, parseModelConfig(text, file.string()));
    if (folder)
        MR_TRY(readFileLayout(path, config));
    return config;
}

} // namespace mr
