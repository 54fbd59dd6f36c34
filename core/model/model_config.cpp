#include "core/model/model_config.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"
#include "core/base/file.h"
#include "core/model/architecture.h"
#include "core/model/config_fields.h"

#include <algorithm>
#include <limits>
#include <system_error>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::uint64_t kMostConfigBytes = 1U << 20;

// Far above any model, far below where a product of three overflows.
constexpr IntRange kWidths{1, 1 << 24};
constexpr IntRange kHeads{1, 1 << 16};
constexpr IntRange kLayers{1, 10'000};
constexpr IntRange kIds{1, std::numeric_limits<std::int32_t>::max()};
constexpr double kMostParameters = 0x1p52;

Status refuse(const std::string& source, const std::string& why)
{
    return Status::error(ErrorKind::InvalidArgument, source + ": " + why);
}

// architectures[0], or what model_type stands for; empty with the fault in `fields`.
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
        fields.take(refuse(source, R"(fields "architectures" and "model_type" name no model)"));
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
        fields.take(
            refuse(source, "architecture " + shown(json(found)) + " " + unsupportedWords(found)));
    else if (!type.empty() && type != traits->modelType)
        fields.take(refuse(source, "field \"model_type\" is " + shown(json(type)) +
                                       ", which contradicts architecture " + found));
    return fields.status().ok() ? traits : nullptr;
}

void readGeometry(JsonFields& f, const ArchitectureTraits& traits, ModelConfig& c)
{
    c.hidden = f.requiredInteger("hidden_size", kWidths);
    c.intermediate = f.requiredInteger("intermediate_size", kWidths);
    c.layers = f.requiredInteger("num_hidden_layers", kLayers);
    c.heads = f.requiredInteger("num_attention_heads", kHeads);
    c.kvHeads = f.integer("num_key_value_heads", kHeads, c.heads);
    c.headDim = f.integer("head_dim", kHeads, traits.missingHeadDim);
    c.vocab = f.requiredInteger("vocab_size", kIds);
    c.maxPositions = f.requiredInteger("max_position_embeddings", kIds);
    if (!f.status().ok())
        return;
    const std::string heads = std::to_string(c.heads);
    if (c.heads % c.kvHeads != 0)
        f.fail("num_key_value_heads", "is " + std::to_string(c.kvHeads) +
                                          "; num_attention_heads (" + heads +
                                          ") must be a multiple of it");
    if (c.headDim == 0) {
        if (c.hidden % c.heads != 0)
            f.fail("hidden_size", "is " + std::to_string(c.hidden) +
                                      ", not a multiple of num_attention_heads (" + heads +
                                      "), and there is no head_dim");
        c.headDim = c.hidden / c.heads;
    }
    if (c.headDim % 2 != 0)
        f.fail("head_dim",
            "is " + std::to_string(c.headDim) + "; it must be even, because positions turn pairs");
}

// An upper bound in double: every factor is limited, so nothing overflows.
void checkParameterCount(JsonFields& f, const ModelConfig& c)
{
    const auto hidden = static_cast<double>(c.hidden);
    const double attention =
        2.0 * hidden * static_cast<double>(c.heads + c.kvHeads) * static_cast<double>(c.headDim);
    const double mlp = 3.0 * hidden * static_cast<double>(c.intermediate);
    const double total = static_cast<double>(c.layers) * (attention + mlp) +
                         2.0 * hidden * static_cast<double>(c.vocab);
    if (!(total <= kMostParameters))
        f.fail("hidden_size", "is " + std::to_string(c.hidden) +
                                  ": with the other sizes the model has more parameters than can "
                                  "be counted");
}

// rope_theta, and what "rope_scaling" or, newer, "rope_parameters" adds. Some configs carry both
// forms; they must agree.
void readRope(JsonFields& f, const std::string& source, ModelConfig& c)
{
    bool hasTheta = f.find("rope_theta") != nullptr;
    bool hasScaling = false;
    c.ropeTheta = f.number("rope_theta", 10000.0);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const json* value = f.find(key);
        if (value == nullptr)
            continue;
        Result<RopeFields> read = readRopeFields(*value, source + ", " + key);
        if (!read.ok())
            return f.take(read.status());
        const auto& [scaling, theta] = read.value();
        if (hasTheta && theta != 0.0 && theta != c.ropeTheta)
            f.fail("rope_theta", "is given twice with different values");
        if (hasScaling && !(scaling == c.ropeScaling))
            f.fail(key, "says otherwise than rope_scaling");
        c.ropeTheta = theta != 0.0 ? theta : c.ropeTheta;
        hasTheta = hasTheta || theta != 0.0;
        c.ropeScaling = scaling;
        hasScaling = true;
    }
    if (!(c.ropeTheta > 0.0))
        return f.fail("rope_theta", "must be above 0");
    // Phi-3 has it at the top; where scaling does not ask for it, it changes nothing.
    const std::int64_t original = f.integer("original_max_position_embeddings", kIds, 0);
    if (original != 0 && c.ropeScaling.originalPositions == 0.0)
        c.ropeScaling.originalPositions = static_cast<double>(original);
    f.take(checkRope(c.ropeScaling, c.ropeShape(), source));
}

void readNumbers(JsonFields& f, const std::string& source, ModelConfig& c)
{
    c.rmsNormEps = f.requiredNumber("rms_norm_eps");
    if (f.status().ok() && !(c.rmsNormEps > 0.0 && c.rmsNormEps < 1.0))
        f.fail("rms_norm_eps", "must be above 0 and below 1");
    c.initializerRange = f.number("initializer_range", 0.02);
    if (!(c.initializerRange >= 0.0 && c.initializerRange <= 1e3))
        f.fail("initializer_range", "must be from 0 to 1000");
    readRope(f, source, c);
}

void readBiases(JsonFields& f, const ArchitectureTraits& traits, ModelConfig& c)
{
    if (traits.attentionBias == BiasRule::Field)
        c.attnOutBias = c.qkvBias = f.boolean("attention_bias", false);
    else
        c.qkvBias = traits.attentionBias == BiasRule::QkvOnly;
    if (traits.mlpBias == BiasRule::Field)
        c.mlpBias = f.boolean("mlp_bias", false);
}

// layer_types, where it is given, decides; else the rule of the architecture.
void chooseWindowedBlocks(
    JsonFields& f, const ArchitectureTraits& traits, std::int64_t firstWindowed, ModelConfig& c)
{
    const json* types = f.find("layer_types");
    if (types == nullptr) {
        if (traits.window == WindowRule::UpperLayers)
            for (std::int64_t block = 0; block < c.layers; ++block)
                c.windowedBlocks.push_back(block >= firstWindowed ? 1 : 0);
        return;
    }
    if (!types->is_array() || types->size() != static_cast<std::size_t>(c.layers))
        return f.fail("layer_types", "must be a list of one name for each layer");
    for (const json& type : *types) {
        if (type != "full_attention" && type != "sliding_attention")
            return f.fail("layer_types",
                "holds " + shown(type) + "; full_attention and sliding_attention are known");
        c.windowedBlocks.push_back(type == "sliding_attention" ? 1 : 0);
    }
}

// Which layers see how far back. `object` tells a missing sliding_window from one that is null.
void readWindow(JsonFields& f, const json& object, const ArchitectureTraits& traits, ModelConfig& c)
{
    if (traits.window == WindowRule::None)
        return;
    const bool given = object.contains("sliding_window");
    c.window = f.integer("sliding_window", kIds, given ? 0 : traits.missingWindow);
    std::int64_t firstWindowed = 0;
    if (traits.window == WindowRule::UpperLayers) {
        constexpr std::int64_t kDefaultFirst = 28;
        firstWindowed = f.integer("max_window_layers", {0, 10'000}, kDefaultFirst);
        if (!f.boolean("use_sliding_window", false))
            c.window = 0;
    }
    chooseWindowedBlocks(f, traits, firstWindowed, c);
    const auto& blocks = c.windowedBlocks;
    const bool anyWindowed =
        blocks.empty() || std::find(blocks.begin(), blocks.end(), 1) != blocks.end();
    if (c.window == 0 && !blocks.empty() && anyWindowed && f.find("layer_types") != nullptr)
        return f.fail("layer_types", "has sliding_attention, but there is no sliding_window");
    if (!anyWindowed || c.window == 0) {
        c.window = 0;
        c.windowedBlocks.clear();
    }
}

void readSwitches(JsonFields& f, const std::string& source, ModelConfig& c)
{
    c.tiedEmbedding = f.boolean("tie_word_embeddings", false);
    const std::string act = f.text("hidden_act", "silu");
    if (act != "silu" && act != "swish")
        f.take(refuse(source, "hidden_act '" + act + "' is not supported; only silu is"));
    const std::string older = f.text("torch_dtype", "");
    c.dtype = f.text("dtype", older);
    for (const std::string_view known : {"", "float32", "float16", "bfloat16"})
        if (c.dtype == known)
            return;
    f.take(refuse(source,
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
            return f.fail("eos_token_id", "holds " + shown(item) +
                                              "; ids must be below vocab_size (" +
                                              std::to_string(c.vocab) + ")");
        if (id >= 0)
            c.eosTokens.push_back(id);
    }
}

} // namespace

bool ModelConfig::isWindowed(std::int64_t block) const noexcept
{
    if (window == 0 || block < 0 || block >= layers)
        return false;
    return windowedBlocks.empty() || windowedBlocks[static_cast<std::size_t>(block)] != 0;
}

Result<ModelConfig> parseModelConfig(std::string_view text, const std::string& source)
{
    Result<json> value = parseJson(text, source);
    MR_TRY(value.status());
    JsonFields fields(value.value(), source);
    MR_TRY(fields.status());
    const ArchitectureTraits* traits = readArchitecture(fields, source);
    MR_TRY(fields.status());
    ModelConfig config;
    config.architecture = traits->name;
    config.queryKeyNorm = traits->queryKeyNorm;
    config.fusedProjections = traits->fusedProjections;
    readGeometry(fields, *traits, config);
    MR_TRY(fields.status());
    checkParameterCount(fields, config);
    readNumbers(fields, source, config);
    readBiases(fields, *traits, config);
    readWindow(fields, value.value(), *traits, config);
    readSwitches(fields, source, config);
    if (traits->ownCode) // what it points to is what this program does itself
        fields.find("auto_map");
    readTokenIds(fields, config);
    MR_TRY(fields.status());
    for (const std::string& name : fields.unknown())
        MR_TRY(checkOtherField(name, value.value()[name], source));
    config.text = text;
    return config;
}

Result<ModelConfig> readModelConfig(const std::filesystem::path& path)
{
    std::error_code error;
    const auto kind = std::filesystem::status(path, error).type();
    if (kind == std::filesystem::file_type::not_found)
        return refuse(path.string(), "there is no such folder or file");
    const bool folder = kind == std::filesystem::file_type::directory;
    const std::filesystem::path file = folder ? path / "config.json" : path;
    if (folder && !std::filesystem::exists(file, error))
        return refuse(path.string(), "not a model folder: it has no config.json");
    if (!std::filesystem::is_regular_file(file, error))
        return refuse(file.string(), "is not a file");
    Result<std::string> text = readWholeFile(file, kMostConfigBytes);
    MR_TRY(text.status());
    if (text.value().starts_with("version https://git-lfs"))
        return Status::error(ErrorKind::DataCorrupt,
            file.string() +
                ": git-lfs pointer: run `git lfs pull` in the folder to fetch the file");
    return parseModelConfig(text.value(), file.string());
}

} // namespace mr
