#include "core/model/peft_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace mr {

namespace {

using nlohmann::json;

constexpr std::int64_t kDefaultRank = 8; // of PEFT, where a field is missing
constexpr std::int64_t kMostPeftRank = 1 << 20;
constexpr const char* kTieField = "ensure_weight_tying";
constexpr const char* kSavedField = "modules_to_save";
constexpr const char* kTokensField = "trainable_token_indices";

// Change nothing in what a finished adapter computes.
constexpr std::array<std::string_view, 10> kInformative = {"auto_mapping",
    "base_model_name_or_path", "inference_mode", "loftq_config", "megatron_core", "peft_version",
    "qalora_group_size", "revision", "runtime_config", "task_type"};

// Null, false, "none" or empty: a variant that is not used.
bool isUnused(const json& value)
{
    return value.is_null() || value == false || value == "none" ||
           ((value.is_object() || value.is_array()) && value.empty());
}

std::vector<std::string> namesIn(JsonFields& fields, std::string_view key)
{
    std::vector<std::string> names;
    const json* value = fields.find(key);
    if (value == nullptr)
        return names;
    for (const json& name : value->is_array() ? *value : json::array({*value})) {
        if (name.is_string())
            names.push_back(name.get<std::string>());
        else
            fields.fail(key, "must be a list of names");
    }
    return names;
}

std::vector<AdapterRule> rulesIn(JsonFields& fields, std::string_view key)
{
    std::vector<AdapterRule> rules;
    const json* value = fields.find(key);
    if (value == nullptr)
        return rules;
    if (!value->is_object())
        fields.fail(key, "must be an object of patterns and numbers");
    else
        for (const auto& [pattern, number] : value->items()) {
            if (number.is_number())
                rules.push_back({pattern, number.get<double>()});
            else
                fields.fail(key, "must give numbers");
        }
    return rules;
}

// layers_pattern: the list of the model that they are numbers in.
std::vector<std::int64_t> layersIn(JsonFields& fields)
{
    constexpr std::string_view kKey = "layers_to_transform";
    for (const std::string& list : namesIn(fields, "layers_pattern"))
        if (list != "layers")
            fields.fail("layers_pattern",
                "is " + shown(list) + "; the blocks of a model are called layers here");
    std::vector<std::int64_t> layers;
    const json* value = fields.find(kKey);
    if (value == nullptr)
        return layers;
    for (const json& layer : value->is_array() ? *value : json::array({*value})) {
        if (layer.is_number_integer())
            layers.push_back(layer.get<std::int64_t>());
        else
            fields.fail(kKey, "must be a list of numbers of blocks");
    }
    return layers;
}

// A list of ends of names; a word of PEFT's for all of them; or one expression for whole names.
void readTargets(JsonFields& fields, AdapterSettings& settings)
{
    constexpr std::string_view kKey = "target_modules";
    const json* value = fields.find(kKey);
    if (value == nullptr)
        return fields.fail(kKey,
            "is missing, and PEFT then takes modules by the kind of the model; name them, as "
            R"(["q_proj", "v_proj"] or "all-linear")");
    if (!value->is_string()) {
        settings.targets = namesIn(fields, kKey);
        if (settings.targets.empty())
            fields.fail(kKey, "names no module");
        return;
    }
    const auto text = value->get<std::string>();
    if (text != "all-linear")
        settings.targetPattern = text;
}

// With ensure_weight_tying PEFT trains embedding and head as one, whichever of them is named.
void readSaved(JsonFields& fields, AdapterSettings& settings)
{
    settings.saved = namesIn(fields, kSavedField);
    if (fields.boolean(kTieField, false) && !settings.saved.empty())
        settings.saved = {"embed_tokens", "lm_head"};
}

// A list, or an object of lists by module.
void readTokens(JsonFields& fields, AdapterSettings& settings)
{
    const json* value = fields.find(kTokensField);
    if (value == nullptr)
        return;
    const bool isByModule = value->is_object() && value->size() == 1;
    if (isByModule && !value->begin().key().ends_with("embed_tokens"))
        return fields.fail(kTokensField,
            "trains rows of " + shown(value->begin().key()) + "; those of embed_tokens are read");
    const json& list = isByModule ? *value->begin() : *value;
    if (!list.is_array())
        return fields.fail(kTokensField, "must be a list of ids of tokens");
    for (const json& token : list) {
        if (token.is_number_integer())
            settings.tokens.push_back(token.get<std::int64_t>());
        else
            fields.fail(kTokensField, "must be a list of ids of tokens");
    }
}

// Variants of LoRA compute something else.
void refuseVariants(JsonFields& fields, const json& object)
{
    if (fields.text("peft_type", "") != "LORA")
        fields.fail("peft_type", R"(must be "LORA"; other adapters are not read)");
    if (fields.boolean("fan_in_fan_out", false))
        fields.fail(
            "fan_in_fan_out", "is true: the matrices are turned over, which no model here has");
    const json* init = fields.find("init_lora_weights");
    const auto leavesBase = [](const json& how) {
        return how.is_boolean() || how == "gaussian" || how == "orthogonal" || how == "eva";
    };
    if (init && !leavesBase(*init))
        fields.fail("init_lora_weights", "is " + shown(*init) +
                                             ": such adapters belong to a base that was changed "
                                             "with them; save it with PEFT as a plain LoRA");
    for (const std::string& key : fields.unknown()) {
        const bool isNeutral = std::ranges::count(kInformative, key) > 0 || isUnused(object[key]);
        if (!isNeutral)
            fields.fail(key, "is " + shown(object[key]) +
                                 ": this variant of LoRA computes something that is not built");
    }
}

json numberOf(double value)
{
    const bool isWhole = value == std::floor(value) && std::abs(value) < 0x1p53;
    return isWhole ? json(static_cast<std::int64_t>(value)) : json(value);
}

json objectOf(const std::vector<AdapterRule>& rules)
{
    json object = json::object();
    for (const AdapterRule& rule : rules)
        object[rule.key] = numberOf(rule.value);
    return object;
}

json targetsOf(const AdapterSettings& settings)
{
    if (!settings.targetPattern.empty())
        return settings.targetPattern;
    return settings.targets.empty() ? json("all-linear") : json(settings.targets);
}

json tokensOf(const AdapterSettings& settings)
{
    return settings.tokens.empty() ? json() : json{{"embed_tokens", settings.tokens}};
}

} // namespace

void readPeftFields(JsonFields& fields, const json& object, PeftConfig& config)
{
    AdapterSettings& settings = config.settings;
    config.base = fields.text("base_model_name_or_path", "");
    settings.rank = fields.integer("r", {1, kMostPeftRank}, kDefaultRank);
    settings.alpha = fields.number("lora_alpha", kDefaultRank);
    settings.rankStabilised = fields.boolean("use_rslora", false);
    settings.dora = fields.boolean("use_dora", false);
    config.dropout = fields.number("lora_dropout", 0.0);
    if (!(config.dropout >= 0.0 && config.dropout < 1.0))
        fields.fail("lora_dropout", "must be 0 or more, and below 1");
    readTargets(fields, settings);
    settings.excluded = namesIn(fields, "exclude_modules");
    settings.layers = layersIn(fields);
    settings.ranks = rulesIn(fields, "rank_pattern");
    settings.alphas = rulesIn(fields, "alpha_pattern");
    readSaved(fields, settings);
    readTokens(fields, settings);
    if (fields.status().ok())
        refuseVariants(fields, object);
}

std::string peftConfigText(const PeftConfig& config, bool isTied)
{
    const AdapterSettings& s = config.settings;
    nlohmann::ordered_json out;
    out["peft_type"] = "LORA";
    out["task_type"] = "CAUSAL_LM";
    out["base_model_name_or_path"] =
        config.base.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(config.base);
    out["r"] = s.rank;
    out["lora_alpha"] = numberOf(s.alpha);
    out["use_rslora"] = s.rankStabilised;
    out["target_modules"] = targetsOf(s);
    out["exclude_modules"] = s.excluded.empty() ? json() : json(s.excluded);
    out["layers_to_transform"] = s.layers.empty() ? json() : json(s.layers);
    out["rank_pattern"] = objectOf(s.ranks);
    out["alpha_pattern"] = objectOf(s.alphas);
    out["lora_dropout"] = config.dropout;
    out["bias"] = "none";
    out["fan_in_fan_out"] = false;
    out["init_lora_weights"] = true;
    out["inference_mode"] = true;
    out["use_dora"] = s.dora;
    out[kSavedField] = s.saved.empty() ? json() : json(s.saved);
    out[kTokensField] = tokensOf(s);
    out[kTieField] = isTied;
    return out.dump(2) + "\n";
}

} // namespace mr
