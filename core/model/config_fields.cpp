#include "core/model/config_fields.h"

#include "core/api/json_fields.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace mr {

using nlohmann::json;

namespace {

// Bookkeeping: the origin of the model, sampling of text, output of a pipeline.
constexpr std::array<std::string_view, 53> kHarmless = {"_attn_implementation",
    "_attn_implementation_autoset", "_commit_hash", "_flash_attn_2_enabled", "_name_or_path",
    "attn_implementation", "bad_words_ids", "begin_suppress_tokens", "cache_implementation",
    "decoder_start_token_id", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "eod_token_id", "exponential_decay_length_penalty",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "id2label", "is_decoder",
    "is_llama_config", "label2id", "length_penalty", "max_length", "max_sequence_length",
    "min_length", "model_max_length", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_scores", "prefix",
    "problem_type", "remove_invalid_values", "repetition_penalty", "return_dict",
    "return_dict_in_generate", "sep_token_id", "suppress_tokens", "task_specific_params",
    "temperature", "tokenizer_class", "top_k", "top_p", "transformers.js_config",
    "transformers_version", "unsloth_fixed", "unsloth_version", "use_cache"};
static_assert(std::is_sorted(kHarmless.begin(), kHarmless.end()));

constexpr std::array<std::string_view, 5> kNeutralAtOne = {
    "full_attn_mod", "interpolate_factor", "partial_rotary_factor", "pretraining_tp", "typical_p"};

// True where it is not said: off, it changes the model.
constexpr std::string_view kCausal = "is_causal";

struct Known {
    std::string_view name;
    std::string_view why;
};

// Known to change the model, so the sentence can say how.
constexpr std::array<Known, 11> kRefused = {
    {{kCausal, "models that see what follows are not supported; take a causal language model"},
        {"auto_map", "models that bring their own program code are not run"},
        {"text_config", "this architecture has no text_config of its own"},
        {"partial_rotary_factor", "this architecture turns all of each head; remove the field if "
                                  "the model was made without"},
        {"sliding_window", "this architecture has no sliding window; remove the field if the model "
                           "was made without"},
        {"attention_dropout", "dropout is not supported; set it to 0"},
        {"residual_dropout", "dropout is not supported; set it to 0"},
        {"use_bidirectional_attention",
            "models that see what follows are not supported; take a causal language model"},
        {"hidden_dropout", "dropout is not supported; set it to 0"},
        {"resid_pdrop", "dropout is not supported; set it to 0"},
        {"embd_pdrop", "dropout is not supported; set it to 0"}}};

// Switched off: absent, false, zero or empty in any type.
bool isOff(const json& value)
{
    if (value.is_boolean())
        return !value.get<bool>();
    if (value.is_number())
        return value.get<double>() == 0.0;
    if (value.is_string())
        return value.get_ref<const std::string&>().empty();
    return value.is_null() || value.empty();
}

// Every layer attends to everything before it, as the Llama class does without the field.
bool isFullAttention(const json& types)
{
    return types.is_array() && std::all_of(types.begin(), types.end(), [](const json& type) {
        return type.is_string() && type.get_ref<const std::string&>() == "full_attention";
    });
}

// Four bits by bitsandbytes, of the kind whose files are read.
bool isNf4(const json& value)
{
    return value.is_object() && value.value("quant_method", json()) == "bitsandbytes" &&
           value.value("load_in_4bit", json()) == true &&
           value.value("bnb_4bit_quant_type", json()) == "nf4";
}

// Codes of E4M3, with factors of whole matrices or of blocks of 128 x 128.
bool isFp8(const json& value)
{
    if (!value.is_object() || value.value("quant_method", json()) != "fp8")
        return false;
    const json block = value.value("weight_block_size", json());
    return block.is_null() || block == json::array({128, 128});
}

} // namespace

Status checkOtherField(const std::string& key, const json& value, const std::string& source)
{
    if (key == "quantization_config" && !isOff(value) && !isNf4(value) && !isFp8(value))
        return Status::error(ErrorKind::InvalidArgument,
            source + ": field \"quantization_config\" is " + shown(value) +
                ": of quantised weights those of bitsandbytes in NF4 are read, and FP8 in one "
                "piece or in blocks of 128 x 128; use the unquantised model");
    if (key == "quantization_config")
        return {};
    const bool isDefault = key == kCausal ? value.is_null() || value == true : isOff(value);
    if (isDefault || std::binary_search(kHarmless.begin(), kHarmless.end(), key))
        return {};
    if (std::find(kNeutralAtOne.begin(), kNeutralAtOne.end(), key) != kNeutralAtOne.end() &&
        value.is_number() && value.get<double>() == 1.0)
        return {};
    if (key == "layer_types" && isFullAttention(value))
        return {};
    const std::string field = source + ": field " + shown(json(key)) + " is " + shown(value);
    for (const Known& known : kRefused)
        if (key == known.name)
            return Status::error(ErrorKind::InvalidArgument, field + ": " + std::string(known.why));
    return Status::error(ErrorKind::InvalidArgument,
        field + "; it is not understood and may change the mathematics. Remove it if it does not");
}

} // namespace mr
