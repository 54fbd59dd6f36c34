#include "core/model/architecture.h"

#include "core/model/wrapper.h"

#include <algorithm>
#include <array>

namespace mr {

namespace {

using Traits = ArchitectureTraits;

constexpr BlockNames kGemmaNames = {.mlpNorm = "pre_feedforward_layernorm"};
constexpr BlockNames kGlmNames = {.attnBranchNorm = "post_self_attn_layernorm",
    .mlpBranchNorm = "post_mlp_layernorm",
    .gateUp = "gate_up_proj"};
constexpr BlockNames kPhiNames = {.qkv = "qkv_proj", .gateUp = "gate_up_proj"};
constexpr BlockNames kSharedMlpNames = {
    .mlp = "shared_mlp", .gateUp = "input_linear", .down = "output_linear"};
constexpr BlockNames kHunyuanNames = {.queryNorm = "query_layernorm", .keyNorm = "key_layernorm"};

// Heads for several tokens at once.
constexpr std::array<std::string_view, 1> kSpareHeads = {"mtp."};

// Fields of Gemma 4: the number that a block's output is multiplied by, which no step changes; and
// the table of its inputs, where that stays as it is.
constexpr std::array<std::string_view, 2> kGemma4Carried = {
    "*.layer_scalar", "*.embed_tokens_per_layer.weight"};

constexpr std::string_view kGemma4Rope =
    R"({"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0})";

constexpr std::string_view kMinistralRope =
    R"({"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,
        "original_max_position_embeddings": 16384, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1})";

// Gemma 4's two classes: with pictures and sound through towers, or without.
constexpr Traits gemma4(std::string_view name, std::string_view modelType,
    std::int64_t missingWindow, std::int64_t missingLayerInput)
{
    return {.name = name,
        .modelType = modelType,
        .names = kGemmaNames,
        .bias = BiasRule::Attention,
        .queryKeyNorm = QueryKeyNorm::Heads,
        .norms = NormPlace::Around,
        .window = WindowRule::Pattern,
        .missingWindow = missingWindow,
        .missingHeadDim = 256,
        .missingKvHeads = 4,
        .missingPad = 0,
        .missingPattern = 6,
        .fullLast = true,
        .missingGlobalHeadDim = 512,
        .missingLayerInput = missingLayerInput,
        .tiedByDefault = true,
        .missingRope = kGemma4Rope,
        .geluGate = true,
        .scaledEmbedding = true,
        .normsValues = true,
        .plainScores = true,
        .layerScalars = "layer_scalar",
        .carried = kGemma4Carried,
        .missingTheta = 1e6,
        .missingLocalTheta = 10000.0,
        .missingLogitCap = 0.0};
}

constexpr std::array<Traits, 22> kArchitectures = {{
    {.name = "Ernie4_5ForCausalLM",
        .modelType = "ernie4_5",
        .bias = BiasRule::Whole,
        .pairs = RopePairs::Neighbours,
        .missingHeadDim = 128,
        .missingKvHeads = 2,
        .missingPad = 0,
        .tiedByDefault = true,
        .missingTheta = 500000.0},
    {.name = "Exaone4ForCausalLM",
        .modelType = "exaone4",
        .queryKeyNorm = QueryKeyNorm::Heads,
        .norms = NormPlace::After,
        .still = StillRule::FullLayers,
        .window = WindowRule::Pattern,
        .missingWindow = 4096,
        .missingKvHeads = 32,
        .missingPattern = 4,
        .patternField = true,
        .optionalWindow = true},
    {.name = "GemmaForCausalLM",
        .modelType = "gemma",
        .bias = BiasRule::Attention,
        .missingHeadDim = 256,
        .missingKvHeads = 16,
        .missingPad = 0,
        .tiedByDefault = true,
        .geluGate = true,
        .onePlusNorms = true,
        .scaledEmbedding = true},
    {.name = "Gemma2ForCausalLM",
        .modelType = "gemma2",
        .names = kGemmaNames,
        .bias = BiasRule::Attention,
        .norms = NormPlace::Around,
        .window = WindowRule::Pattern,
        .missingWindow = 4096,
        .missingHeadDim = 256,
        .missingKvHeads = 4,
        .missingPad = 0,
        .missingPattern = 2,
        .tiedByDefault = true,
        .geluGate = true,
        .onePlusNorms = true,
        .scaledEmbedding = true,
        .missingQueryScalar = 256.0,
        .missingAttentionCap = 50.0,
        .missingLogitCap = 30.0},
    {.name = "Gemma3ForCausalLM",
        .modelType = "gemma3_text",
        .names = kGemmaNames,
        .bias = BiasRule::Attention,
        .queryKeyNorm = QueryKeyNorm::Heads,
        .norms = NormPlace::Around,
        .window = WindowRule::Pattern,
        .missingWindow = 4096,
        .missingHeadDim = 256,
        .missingKvHeads = 4,
        .missingPad = 0,
        .missingPattern = 6,
        .patternField = true,
        .tiedByDefault = true,
        .geluGate = true,
        .onePlusNorms = true,
        .scaledEmbedding = true,
        .missingTheta = 1e6,
        .missingLocalTheta = 10000.0,
        .missingQueryScalar = 256.0,
        .missingLogitCap = 0.0},
    gemma4("Gemma4ForCausalLM", "gemma4_text", 512, 256),
    gemma4("Gemma4UnifiedForCausalLM", "gemma4_unified_text", 1024, 0),
    {.name = "Glm4ForCausalLM",
        .modelType = "glm4",
        .names = kGlmNames,
        .bias = BiasRule::QkvField,
        .norms = NormPlace::Around,
        .pairs = RopePairs::Neighbours,
        .missingHeadDim = 128,
        .missingKvHeads = 2,
        .missingPad = 151329,
        .partialRotary = true,
        .missingRotaryShare = 0.5},
    {.name = "GraniteForCausalLM",
        .modelType = "granite",
        .bias = BiasRule::All,
        .multipliers = true},
    {.name = "GraniteMoeHybridForCausalLM",
        .modelType = "granitemoehybrid",
        .names = kSharedMlpNames,
        .mlpWidth = "shared_intermediate_size",
        .bias = BiasRule::Attention,
        .still = StillRule::All,
        .multipliers = true,
        .attentionOnly = true},
    {.name = "HunYuanDenseV1ForCausalLM",
        .modelType = "hunyuan_v1_dense",
        .names = kHunyuanNames,
        .bias = BiasRule::Attention,
        .queryKeyNorm = QueryKeyNorm::TurnedHeads,
        .missingPad = 0,
        .rope = {.alpha = true}},
    {.name = "LlamaForCausalLM", .modelType = "llama", .bias = BiasRule::All},
    {.name = "Ministral3ForCausalLM",
        .modelType = "ministral3",
        .missingHeadDim = 128,
        .missingKvHeads = 8,
        .missingPad = 11,
        .rope = {.queryGrowth = true},
        .missingRope = kMinistralRope},
    {.name = "MistralForCausalLM",
        .modelType = "mistral",
        .window = WindowRule::AllLayers,
        .missingWindow = 4096,
        .missingKvHeads = 8},
    {.name = "Olmo2ForCausalLM",
        .modelType = "olmo2",
        .bias = BiasRule::Attention,
        .queryKeyNorm = QueryKeyNorm::Rows,
        .norms = NormPlace::After,
        .missingPad = 1},
    {.name = "Olmo3ForCausalLM",
        .modelType = "olmo3",
        .bias = BiasRule::Attention,
        .queryKeyNorm = QueryKeyNorm::Rows,
        .norms = NormPlace::After,
        .window = WindowRule::Pattern,
        .missingWindow = 4096,
        .missingPad = 1,
        .missingPattern = 4,
        .missingTheta = 500000.0,
        .missingLocalTheta = 500000.0},
    {.name = "Phi3ForCausalLM",
        .modelType = "phi3",
        .names = kPhiNames,
        .ownCode = true,
        .window = WindowRule::AllLayers,
        .missingPad = 32000,
        .missingOriginal = 4096,
        .partialRotary = true},
    {.name = "Qwen2ForCausalLM",
        .modelType = "qwen2",
        .bias = BiasRule::Qkv,
        .window = WindowRule::UpperLayers,
        .missingWindow = 4096,
        .missingKvHeads = 32},
    {.name = "Qwen3ForCausalLM",
        .modelType = "qwen3",
        .bias = BiasRule::Attention,
        .queryKeyNorm = QueryKeyNorm::Heads,
        .window = WindowRule::UpperLayers,
        .missingWindow = 4096,
        .missingHeadDim = 128,
        .missingKvHeads = 32},
    {.name = "Qwen3_5ForCausalLM",
        .modelType = "qwen3_5_text",
        .queryKeyNorm = QueryKeyNorm::Heads,
        .missingHeadDim = 256,
        .missingKvHeads = 4,
        .partialRotary = true,
        .missingRotaryShare = 0.25,
        .rope = {.mrope = true},
        .onePlusNorms = true,
        .deltaLayers = true,
        .gatesAttention = true,
        .carried = kSpareHeads},
    {.name = "SeedOssForCausalLM",
        .modelType = "seed_oss",
        .bias = BiasRule::Apart,
        .missingHeadDim = 128,
        .missingKvHeads = 8,
        .missingPad = 1,
        .leavesDropoutOut = true},
    {.name = "SmolLM3ForCausalLM",
        .modelType = "smollm3",
        .bias = BiasRule::All,
        .still = StillRule::Listed,
        .window = WindowRule::StillLayers,
        .missingKvHeads = 4,
        .missingPad = 128004,
        .tiedByDefault = true,
        .missingTheta = 2e6},
}};

// The first row of which a part stands in the name, in small letters without '_', says why.
struct Kind {
    std::string_view part;
    std::string_view why;
};

constexpr std::string_view kExperts =
    "mixtures of experts are not supported; take a dense model of the family";

constexpr std::string_view kMamba =
    "Mamba layers are not supported; take a model of attention alone, such as Granite 4.0 1B";

constexpr std::array<Kind, 20> kKinds = {{
    {"qwen35moe", "mixtures of experts are not supported; take a dense edition, such as Qwen 3.5 "
                  "9B or 27B"},
    {"qwen3moe", "mixtures of experts are not supported; take a dense edition, such as Qwen 3 14B "
                 "or 32B"},
    {"glm4moe", "mixtures of experts are not supported; take a dense edition, such as GLM-4 9B or "
                "32B"},
    {"gptoss", "mixtures of experts are not supported, and gpt-oss has no dense edition; take a "
               "dense model of such a size, such as Ministral 3 14B"},
    {"lfm2moe", "mixtures of experts and layers of convolutions are not supported; take a dense "
                "model of attention, such as Qwen 3.5 4B"},
    {"lfm2", "layers of convolutions are not supported; take a model of such a size, such as "
             "Qwen 3.5 0.8B or 2B"},
    {"moe", kExperts},
    {"mixtral", "mixtures of experts are not supported; take a dense model such as Mistral 7B"},
    {"deepseekv", kExperts},
    {"llama4", "mixtures of experts are not supported; take Llama 3"},
    {"gpt2", "learned positions and LayerNorm are not supported; take a model with rotary "
             "positions and RMSNorm"},
    {"gemma3n", "layers of its own kind are not supported; take Gemma 3"},
    {"qwen4", "hyper-connections, tables of word groups and indexed attention are not supported; "
              "take Qwen 3.5"},
    {"mamba", kMamba},
    {"nemotronh", kMamba},
    {"falconh1", kMamba},
    {"conditionalgeneration",
        "of models of pictures and text, Gemma 3 and 4, Mistral 3 and Qwen 3.5 are read; take "
        "one of these, or the text model"},
    {"sequenceclassification", "classifiers are not supported; take the causal language model"},
    {"rewardmodel", "classifiers are not supported; take the causal language model"},
    {"textmodel", "models without a head are not supported; take the causal language model"},
}};

} // namespace

std::span<const ArchitectureTraits> architectures() noexcept
{
    return kArchitectures;
}

const ArchitectureTraits* findArchitecture(std::string_view name) noexcept
{
    const auto row = std::find_if(kArchitectures.begin(), kArchitectures.end(),
        [name](const Traits& each) { return each.name == name; });
    return row == kArchitectures.end() ? nullptr : &*row;
}

const ArchitectureTraits* findModelType(std::string_view modelType) noexcept
{
    const auto row = std::find_if(kArchitectures.begin(), kArchitectures.end(),
        [modelType](const Traits& each) { return each.modelType == modelType; });
    return row == kArchitectures.end() ? nullptr : &*row;
}

std::string unsupportedReason(std::string_view name)
{
    std::string small(name); // published names are spelled "Moe", "MoE" and "moe"
    std::transform(small.begin(), small.end(), small.begin(),
        [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    std::erase(small, '_');
    std::string words = "is not supported yet";
    for (const Kind& kind : kKinds)
        if (small.find(kind.part) != std::string::npos) {
            words += ": " + std::string(kind.why);
            break;
        }
    return words;
}

std::string unsupportedWords(std::string_view name)
{
    std::string words = unsupportedReason(name) + "; supported: ";
    for (const Traits& each : kArchitectures)
        words.append(&each == kArchitectures.data() ? "" : ", ").append(each.name);
    for (const WrapperTraits& each : wrappers())
        words.append(", ").append(each.name);
    return words;
}

} // namespace mr
