#include "core/model/wrapper.h"

#include "core/api/json_fields.h"
#include "core/model/config_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::array<WrappedText, 1> kGemma3Texts = {{{"gemma3_text",
    R"({"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "hidden_activation":
        "gelu_pytorch_tanh"})"}}};
constexpr std::array<WrappedText, 2> kMistral3Texts = {{
    {"ministral3",
        R"({"head_dim": 128, "hidden_size": 4096, "intermediate_size": 14336,
        "max_position_embeddings": 262144, "num_attention_heads": 32, "num_hidden_layers": 34,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "vocab_size": 131072})"},
    {"mistral",
        R"({"hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "rms_norm_eps": 1e-6, "vocab_size": 32000})"},
}};
constexpr std::array<WrappedText, 1> kQwen35Texts = {{{"qwen3_5_text", "{}"}}};
constexpr std::array<std::string_view, 4> kQwen35Carried = {
    "model.visual.", "visual.", "mtp.", "model.mtp."};
constexpr std::array<std::string_view, 4> kTowers = {"vision_tower.", "multi_modal_projector.",
    "model.vision_tower.", "model.multi_modal_projector."};

constexpr std::array<WrappedText, 1> kGemma4Texts = {{{"gemma4_text",
    R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 30, "num_attention_heads": 8, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6})"}}};
constexpr std::array<WrappedText, 1> kUnifiedTexts = {{{"gemma4_unified_text",
    R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 30, "num_attention_heads": 8, "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6})"}}};
constexpr std::array<std::string_view, 6> kGemma4Around = {"*.layer_scalar",
    "*.embed_tokens_per_layer.weight", "model.vision_tower.", "model.embed_vision.",
    "model.audio_tower.", "model.embed_audio."};

constexpr std::array<WrapperTraits, 5> kWrappers = {{
    {"Gemma3ForConditionalGeneration", "gemma3", kGemma3Texts, kSpellings[2], kTowers},
    {"Gemma4ForConditionalGeneration", "gemma4", kGemma4Texts, kSpellings[1], kGemma4Around, true,
        true},
    {"Gemma4UnifiedForConditionalGeneration", "gemma4_unified", kUnifiedTexts, kSpellings[1],
        kGemma4Around, true, true},
    {"Mistral3ForConditionalGeneration", "mistral3", kMistral3Texts, kSpellings[2], kTowers},
    {"Qwen3_5ForConditionalGeneration", "qwen3_5", kQwen35Texts, kSpellings[1], kQwen35Carried,
        false},
}};

// Fields of both levels that say different things by nature. The outer level ends answers of chats,
// too, where the inner one ends texts.
constexpr std::array<std::string_view, 9> kOwn = {"_name_or_path", "architectures", "eos_token_id",
    "initializer_range", "model_type", "quantization_config", "transformers_version", "use_cache",
    "vision_config"};

// Fields of the outer level that are of the text part, where that does not have them.
constexpr std::array<std::string_view, 8> kLifted = {"bos_token_id", "dtype", "eos_token_id",
    "pad_token_id", "quantization_config", "tie_word_embeddings", "torch_dtype", "vocab_size"};

// Beginnings of fields that are of towers and of pictures.
constexpr std::array<std::string_view, 11> kOfTowers = {"audio_", "boa_token", "boi_token",
    "eoa_token", "eoi_token", "image_", "mm_tokens_per_image", "multimodal_", "projector_",
    "spatial_merge_size", "vi"};

bool isOne(std::span<const std::string_view> list, std::string_view name)
{
    return std::ranges::count(list, name) > 0;
}

bool isOfTowers(std::string_view name)
{
    return std::ranges::any_of(
        kOfTowers, [&](std::string_view begin) { return name.starts_with(begin); });
}

Status checkLevels(const json& outer, const json& inner, const std::string& source)
{
    for (const auto& item : outer.items()) {
        const std::string& key = item.key();
        const auto other = inner.find(key);
        if (other != inner.end() && !isOne(kOwn, key) && *other != item.value())
            return Status::error(ErrorKind::InvalidArgument,
                source + ": field " + shown(json(key)) + " is " + shown(item.value()) +
                    ", but field \"text_config." + key + "\" is " + shown(*other) +
                    "; one of them is wrong");
        if (key != "text_config" && !isOne(kOwn, key) && !isOne(kLifted, key) && !isOfTowers(key))
            MR_TRY(checkOtherField(key, item.value(), source));
    }
    return {};
}

} // namespace

std::span<const WrapperTraits> wrappers() noexcept
{
    return kWrappers;
}

const WrapperTraits* wrapperOf(const json& config) noexcept
{
    const auto list = config.find("architectures");
    const auto type = config.find("model_type");
    const auto is = [](const json& value, std::string_view name) {
        return value.is_string() && value.get_ref<const std::string&>() == name;
    };
    for (const WrapperTraits& wrapper : kWrappers) {
        const bool isNamed = list != config.end() && list->is_array() && list->size() == 1 &&
                             is(list->front(), wrapper.name);
        const bool isTyped =
            list == config.end() && type != config.end() && is(*type, wrapper.modelType);
        if (isNamed || isTyped)
            return &wrapper;
    }
    return nullptr;
}

Result<json> textConfig(const WrapperTraits& wrapper, const json& config, const std::string& source)
{
    const auto refuse = [&](const std::string& why) {
        return Status::error(ErrorKind::InvalidArgument, source + ": " + why);
    };
    const auto found = config.find("text_config");
    if (found == config.end() || !found->is_object())
        return refuse("field \"text_config\" must hold the fields of the text model");
    json inner = *found;
    const std::string type = inner.value("model_type", json()).is_string()
                                 ? inner["model_type"].get<std::string>()
                                 : std::string(wrapper.texts.back().modelType);
    const auto text = std::ranges::find(wrapper.texts, type, &WrappedText::modelType);
    if (text == wrapper.texts.end())
        return refuse("field \"text_config.model_type\" is " + shown(json(type)) +
                      ", which is not supported within " + std::string(wrapper.name));
    MR_TRY(checkLevels(config, inner, source));
    inner["model_type"] = type; // the last one of the wrapper where it is missing
    inner.erase("architectures");
    for (const std::string_view key : kLifted)
        if (config.contains(key) && (!inner.contains(key) || key == "eos_token_id"))
            inner[std::string(key)] = config[std::string(key)];
    const json missing = json::parse(text->missing);
    for (const auto& item : missing.items())
        if (!inner.contains(item.key()))
            inner[item.key()] = item.value();
    if (!inner.contains("tie_word_embeddings"))
        inner["tie_word_embeddings"] = wrapper.tiedByDefault;
    return inner;
}

bool leavesTieOpen(const json& config) noexcept
{
    return !config.contains("tie_word_embeddings");
}

} // namespace mr
