#include "core/model/model_config.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"
#include "core/base/file.h"
#include "core/model/config_fields.h"

#include <array>
#include <limits>
#include <system_error>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::uint64_t kMostConfigBytes = 1U << 20;
constexpr std::string_view kLlama = "LlamaForCausalLM";

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

Status readArchitecture(JsonFields& fields, const std::string& source, ModelConfig& config)
{
    const std::string type = fields.text("model_type", "");
    std::string found = type.empty() || type == "llama" ? std::string(kLlama) : type;
    if (const json* list = fields.find("architectures")) {
        if (!list->is_array() || list->size() > 1 || (list->size() == 1 && !(*list)[0].is_string()))
            return refuse(source, "field \"architectures\" must be a list of one name");
        if (!list->empty())
            found = (*list)[0].get<std::string>();
        else if (type.empty())
            return refuse(source, R"(fields "architectures" and "model_type" name no model)");
    } else if (type.empty()) {
        return refuse(source, R"(fields "architectures" and "model_type" are missing)");
    }
    if (found != kLlama)
        return refuse(source, "architecture " + shown(json(found)) +
                                  " is not supported yet; supported: " + std::string(kLlama));
    if (!type.empty() && type != "llama")
        return refuse(source, "field \"model_type\" is " + shown(json(type)) +
                                  ", which contradicts architecture " + found);
    config.architecture = found;
    return fields.status();
}

void readGeometry(JsonFields& f, ModelConfig& c)
{
    c.hidden = f.requiredInteger("hidden_size", kWidths);
    c.intermediate = f.requiredInteger("intermediate_size", kWidths);
    c.layers = f.requiredInteger("num_hidden_layers", kLayers);
    c.heads = f.requiredInteger("num_attention_heads", kHeads);
    c.kvHeads = f.integer("num_key_value_heads", kHeads, c.heads);
    c.headDim = f.integer("head_dim", kHeads, 0);
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

// `key`: "rope_scaling" or, newer, "rope_parameters". Returns its rope_theta, or 0.
double readRope(JsonFields& fields, std::string_view key, const std::string& source)
{
    const json* value = fields.find(key);
    if (value == nullptr)
        return 0.0;
    JsonFields rope(*value, source + ", " + std::string(key));
    const std::string older = rope.text("type", "default");
    const std::string type = rope.text("rope_type", older);
    if (type != "default" || (older != "default" && older != type))
        fields.take(
            refuse(source, std::string(key) + " type '" + (type != "default" ? type : older) +
                               "' is not supported yet"));
    const double theta = rope.number("rope_theta", 0.0);
    if (rope.find("rope_theta") != nullptr && !(theta > 0.0))
        rope.fail("rope_theta", "must be above 0");
    fields.take(rope.status());
    for (const std::string& name : rope.unknown())
        fields.take(checkOtherField(name, (*value)[name], source + ", " + std::string(key)));
    return theta;
}

void readNumbers(JsonFields& f, const std::string& source, ModelConfig& c)
{
    c.rmsNormEps = f.requiredNumber("rms_norm_eps");
    if (f.status().ok() && !(c.rmsNormEps > 0.0 && c.rmsNormEps < 1.0))
        f.fail("rms_norm_eps", "must be above 0 and below 1");
    c.initializerRange = f.number("initializer_range", 0.02);
    if (!(c.initializerRange >= 0.0 && c.initializerRange <= 1e3))
        f.fail("initializer_range", "must be from 0 to 1000");
    const bool hasTheta = f.find("rope_theta") != nullptr;
    c.ropeTheta = f.number("rope_theta", 10000.0);
    bool nested = false;
    for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
        const double theta = readRope(f, key, source);
        if (theta == 0.0)
            continue;
        if ((hasTheta || nested) && theta != c.ropeTheta)
            f.fail("rope_theta", "is given twice with different values");
        c.ropeTheta = theta;
        nested = true;
    }
    if (!(c.ropeTheta > 0.0))
        f.fail("rope_theta", "must be above 0");
}

void readSwitches(JsonFields& f, const std::string& source, ModelConfig& c)
{
    c.tiedEmbedding = f.boolean("tie_word_embeddings", false);
    c.attentionBias = f.boolean("attention_bias", false);
    c.mlpBias = f.boolean("mlp_bias", false);
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

Result<ModelConfig> parseModelConfig(std::string_view text, const std::string& source)
{
    Result<json> value = parseJson(text, source);
    MR_TRY(value.status());
    JsonFields fields(value.value(), source);
    MR_TRY(fields.status());
    ModelConfig config;
    MR_TRY(readArchitecture(fields, source, config));
    readGeometry(fields, config);
    MR_TRY(fields.status());
    checkParameterCount(fields, config);
    readNumbers(fields, source, config);
    readSwitches(fields, source, config);
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
