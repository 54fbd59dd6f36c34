#include "core/exchange/gguf_config.h"

#include "core/base/shown_text.h"
#include "core/exchange/gguf_rope.h"
#include "core/model/architecture.h"
#include "core/model/gguf_family.h"
#include "core/model/gguf_layout.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::int64_t kMostLayers = 10'000;

class ConfigMaker
{
public:
    ConfigMaker(const GgufKeys& keys, const GgufFamily& family)
        : m_keys(keys)
        , m_family(family)
    {
    }

    Status addSizes()
    {
        MR_ASSIGN(m_layers, m_keys.count("block_count"));
        if (m_layers < 1 || m_layers > kMostLayers)
            return refuse("block_count is " + std::to_string(m_layers));
        // All that follows takes time and memory by the block.
        if (const std::int64_t tensors = std::ssize(m_keys.file().tensors()); m_layers > tensors)
            return refuse("block_count is " + std::to_string(m_layers) + ", but there are " +
                          std::to_string(tensors) + " tensors");
        MR_ASSIGN(const std::int64_t hidden, m_keys.count("embedding_length"));
        MR_ASSIGN(const std::int64_t heads, m_keys.count("attention.head_count"));
        MR_ASSIGN(const std::int64_t positions, m_keys.count("context_length"));
        if (hidden < 1 || heads < 1)
            return refuse("embedding_length or attention.head_count is 0");
        config["hidden_size"] = hidden;
        config["num_hidden_layers"] = m_layers;
        config["num_attention_heads"] = heads;
        config["max_position_embeddings"] = positions;
        config["rms_norm_eps"] = m_keys.number("attention.layer_norm_rms_epsilon", 1e-6);
        m_headDim = m_keys.count("attention.key_length", hidden / heads);
        config["head_dim"] = m_headDim;
        return addWidths(heads);
    }

    Status addVocabulary()
    {
        const GgufTensor* table = m_keys.file().tensor("token_embd.weight");
        if (table == nullptr || table->ne.size() != 2)
            return refuse("has no token_embd.weight");
        config["vocab_size"] = table->ne[1];
        config["tie_word_embeddings"] = m_keys.file().tensor("output.weight") == nullptr;
        if (const std::int64_t bos = m_keys.id("bos"); bos >= 0 && bos < table->ne[1])
            config["bos_token_id"] = bos;
        json ends = json::array();
        for (const char* name : {"eos", "eot", "eom"})
            if (const std::int64_t id = m_keys.id(name); id >= 0 && id < table->ne[1])
                ends.push_back(id);
        if (!ends.empty())
            config["eos_token_id"] = ends;
        if (const std::int64_t pad = m_keys.id("padding"); pad >= 0 && pad < table->ne[1])
            config["pad_token_id"] = pad;
        else
            config["pad_token_id"] = nullptr;
        return {};
    }

    void addBiases()
    {
        const bool hasQkv = has("blk.0.attn_q.bias");
        const bool hasOut = has("blk.0.attn_output.bias");
        const bool hasMlp = has("blk.0.ffn_down.bias");
        if (is("seed_oss")) {
            config["attention_bias"] = hasQkv;
            config["attention_out_bias"] = hasOut;
            config["mlp_bias"] = hasMlp;
        } else if (is("ernie4_5")) {
            config["use_bias"] = hasQkv;
        } else if (is("glm4")) {
            config["attention_bias"] = hasQkv;
        } else if (hasQkv && !is("qwen2")) {
            config["attention_bias"] = true;
            if (is("llama") || is("granite"))
                config["mlp_bias"] = hasMlp;
        }
    }

    Status addRope()
    {
        const double theta = m_keys.number("rope.freq_base", 10000.0);
        if (is("gemma3") || is("gemma4") || (is("olmo2") && hasWindow()))
            return addLayerRopes(theta);
        json rope = ggufRopeScaling(m_keys, positions());
        config["rope_theta"] = theta;
        if (is("glm4") || is("phi3") || is("qwen35"))
            config["partial_rotary_factor"] =
                static_cast<double>(m_keys.count("rope.dimension_count", m_headDim)) /
                static_cast<double>(m_headDim);
        if (is("phi3"))
            config["original_max_position_embeddings"] = m_keys.count(
                "rope.scaling.original_context_length", config["max_position_embeddings"]);
        if (is("mistral3"))
            rope["rope_theta"] = theta;
        if (!rope.empty())
            config[is("mistral3") ? "rope_parameters" : "rope_scaling"] = std::move(rope);
        return {};
    }

    Status addWindows()
    {
        const std::int64_t window = m_keys.count("attention.sliding_window", 0);
        if (is("phi3"))
            config["sliding_window"] = window > 0 ? json(window) : json();
        if (!is("gemma2") && !is("gemma3") && !is("gemma4") && !is("olmo2") && !is("exaone4"))
            return {};
        if (window == 0 && (is("olmo2") || is("exaone4") || is("gemma3"))) {
            if (is("exaone4"))
                config["sliding_window"] = nullptr;
            return is("gemma3") ? windowLess() : Status();
        }
        config["sliding_window"] = window;
        if (!is("gemma2"))
            config["layer_types"] = layerTypes();
        return {};
    }

    void addFactors()
    {
        const auto positive = [&](const char* field, const char* key) {
            const double value = m_keys.number(key, 0.0);
            config[field] = value > 0.0 ? json(value) : json();
        };
        if (is("gemma2"))
            positive("attn_logit_softcapping", "attn_logit_softcapping");
        if (is("gemma2") || is("gemma3") || is("gemma4"))
            positive("final_logit_softcapping", "final_logit_softcapping");
        if (is("gemma2") || is("gemma3"))
            config["query_pre_attn_scalar"] = scoreScalar();
        if (is("granite")) {
            config["attention_multiplier"] =
                m_keys.number("attention.scale", 1.0 / std::sqrt(static_cast<double>(m_headDim)));
            config["embedding_multiplier"] = m_keys.number("embedding_scale", 1.0);
            config["residual_multiplier"] = m_keys.number("residual_scale", 1.0);
            config["logits_scaling"] = m_keys.number("logit_scale", 1.0);
        }
        if (is("gemma4"))
            addGemma4();
        if (is("qwen35"))
            addStates();
    }

    json config = json::object();

private:
    bool is(std::string_view architecture) const { return m_family.architecture == architecture; }
    bool has(const char* tensor) const { return m_keys.file().tensor(tensor) != nullptr; }
    std::int64_t positions() const { return config["max_position_embeddings"].get<std::int64_t>(); }
    bool hasWindow() const { return m_keys.count("attention.sliding_window", 0) > 0; }

    Status refuse(const std::string& what) const
    {
        return Status::error(ErrorKind::InvalidArgument, m_keys.file().path().string() + ": " +
                                                             what +
                                                             "; the file is no model that can be "
                                                             "read, fetch or export it again");
    }

    Status addWidths(std::int64_t heads)
    {
        const auto widths = m_keys.each("feed_forward_length", m_layers);
        if (widths.empty())
            return refuse("feed_forward_length is missing or too short");
        config["intermediate_size"] = widths.front();
        if (widths.back() != widths.front())
            config["use_double_wide_mlp"] = true; // read where the architecture has it
        const auto kv = m_keys.each("attention.head_count_kv", m_layers);
        // Layers with windows, which come first in every family whose layers differ.
        config["num_key_value_heads"] = kv.empty() ? heads : kv.front();
        if (!kv.empty() && kv.back() != kv.front())
            config["num_global_key_value_heads"] = kv.back();
        return {};
    }

    Status addLayerRopes(double theta)
    {
        json full = is("gemma4") ? json{{"rope_type", "proportional"},
                                       {"partial_rotary_factor", ggufTurningShare(m_keys)}}
                                 : ggufRopeScaling(m_keys, positions());
        if (full.empty())
            full["rope_type"] = "default";
        full["rope_theta"] = theta;
        const double local = m_keys.number("rope.freq_base_swa", is("olmo2") ? theta : 10000.0);
        config["rope_parameters"] = {{"full_attention", std::move(full)},
            {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", local}}}};
        return {};
    }

    json layerTypes() const
    {
        constexpr std::int64_t kGemma = 6;
        constexpr std::int64_t kOthers = 4;
        const std::int64_t step = is("gemma3") ? kGemma : kOthers;
        const auto marks = m_keys.each("attention.sliding_window_pattern", m_layers);
        const GgufValue* pattern =
            m_keys.find(m_keys.architecture() + ".attention.sliding_window_pattern");
        const bool isList =
            pattern != nullptr && std::holds_alternative<std::vector<std::int64_t>>(pattern->data);
        json types = json::array();
        for (std::int64_t block = 0; block < m_layers; ++block) {
            const bool windowed =
                isList ? !marks.empty() && marks[static_cast<std::size_t>(block)] != 0
                       : (block + 1) % (marks.empty() ? step
                                                      : std::max<std::int64_t>(1, marks.front())) !=
                             0;
            types.push_back(windowed ? "sliding_attention" : "full_attention");
        }
        return types;
    }

    Status windowLess()
    {
        config["sliding_window"] = config["max_position_embeddings"];
        config["layer_types"] =
            std::vector<std::string>(static_cast<std::size_t>(m_layers), "full_attention");
        return {};
    }

    std::int64_t scoreScalar() const
    {
        const bool isLargest = m_layers == (is("gemma2") ? 46 : 62);
        return isLargest ? config["hidden_size"].get<std::int64_t>() /
                               config["num_attention_heads"].get<std::int64_t>()
                         : m_headDim;
    }

    void addGemma4()
    {
        config["global_head_dim"] = m_headDim;
        config["head_dim"] = m_keys.count("attention.key_length_swa", m_headDim);
        config["num_kv_shared_layers"] = m_keys.count("attention.shared_kv_layers", 0);
        const std::int64_t inputs = m_keys.count("embedding_length_per_layer_input", 0);
        config["hidden_size_per_layer_input"] = inputs;
        if (const GgufTensor* table = m_keys.file().tensor(kGgufInputTable))
            config["vocab_size_per_layer_input"] = table->ne.back();
        bool areKeys = false; // layers that see everything, without v
        for (std::int64_t block = 0; block < m_layers; ++block) {
            const std::string prefix = "blk." + std::to_string(block) + ".";
            areKeys = areKeys || (has((prefix + "attn_k.weight").c_str()) &&
                                     !has((prefix + "attn_v.weight").c_str()));
        }
        config["attention_k_eq_v"] = areKeys;
    }

    void addStates()
    {
        const std::int64_t heads = m_keys.count("ssm.time_step_rank", 0);
        config["linear_conv_kernel_dim"] = m_keys.count("ssm.conv_kernel", 4);
        config["linear_key_head_dim"] = m_keys.count("ssm.state_size", 0);
        config["linear_value_head_dim"] = m_keys.count("ssm.state_size", 0);
        config["linear_num_key_heads"] = m_keys.count("ssm.group_count", 0);
        config["linear_num_value_heads"] = heads;
        const auto states = m_keys.each("attention.recurrent_layers", m_layers);
        const std::int64_t interval =
            std::max<std::int64_t>(1, m_keys.count("full_attention_interval", 4));
        json types = json::array();
        for (std::int64_t block = 0; block < m_layers; ++block) {
            const bool isState = states.empty() ? (block + 1) % interval != 0
                                                : states[static_cast<std::size_t>(block)] != 0;
            types.push_back(isState ? "linear_attention" : "full_attention");
        }
        config["layer_types"] = std::move(types);
    }

    const GgufKeys& m_keys;
    const GgufFamily& m_family;
    std::int64_t m_layers = 0;
    std::int64_t m_headDim = 0;
};

// JSON has no such numbers: one would be read as a number that is missing, and a default stand for
// it.
Status checkNumbers(const GgufKeys& keys)
{
    const std::string prefix = keys.architecture() + ".";
    for (const auto& [key, value] : keys.file().values())
        if (const auto* number = std::get_if<double>(&value.data);
            number != nullptr && !std::isfinite(*number) && key.starts_with(prefix))
            return Status::error(ErrorKind::InvalidArgument,
                keys.file().path().string() + ": " + shownName(key) +
                    " is no finite number; the file is no model that can be read, fetch or export "
                    "it again");
    return {};
}

// Families that share an architecture differ in what the file has.
std::string_view familyOf(const GgufKeys& keys, const GgufFamily& first)
{
    if (keys.architecture() == "olmo2" && keys.count("attention.sliding_window", 0) > 0)
        return "Olmo3ForCausalLM";
    return first.family;
}

void addGranite(const GgufKeys& keys, json& config)
{
    if (keys.architecture() == "granite" && !keys.flag("rope.scaling.finetuned", true)) {
        config["architectures"] = {"GraniteMoeHybridForCausalLM"};
        config["model_type"] = "granitemoehybrid";
        config["shared_intermediate_size"] = config["intermediate_size"];
        config["position_embedding_type"] = "nope";
    }
}

} // namespace

Result<std::string> ggufConfigText(const GgufKeys& keys)
{
    const GgufFamily* family = ggufFamilyOfArchitecture(keys.architecture());
    if (family == nullptr) {
        std::string known;
        for (const GgufFamily& each : ggufFamilies())
            if (known.find(each.architecture) == std::string::npos)
                known.append(known.empty() ? "" : ", ").append(each.architecture);
        return Status::error(ErrorKind::InvalidArgument,
            keys.file().path().string() + ": architecture " + shownName(keys.architecture()) +
                " is not supported; supported: " + known);
    }
    const ArchitectureTraits* traits = findArchitecture(familyOf(keys, *family));
    ConfigMaker maker(keys, *family);
    maker.config["architectures"] = {traits->name};
    maker.config["model_type"] = traits->modelType;
    MR_TRY(checkNumbers(keys));
    MR_TRY(maker.addSizes());
    MR_TRY(maker.addVocabulary());
    maker.addBiases();
    MR_TRY(maker.addRope());
    MR_TRY(maker.addWindows());
    maker.addFactors();
    addGranite(keys, maker.config);
    return maker.config.dump(2) + "\n";
}

} // namespace mr
