#include "core/model/architecture.h"

#include <algorithm>
#include <array>

namespace mr {

namespace {

using Traits = ArchitectureTraits;

constexpr std::array<Traits, 8> kArchitectures = {{
    {.name = "GemmaForCausalLM",
        .modelType = "gemma",
        .attentionBias = BiasRule::Field,
        .missingHeadDim = 256,
        .missingKvHeads = 16,
        .missingPad = 0,
        .tiedByDefault = true,
        .geluGate = true,
        .onePlusNorms = true,
        .scaledEmbedding = true},
    {.name = "Gemma2ForCausalLM",
        .modelType = "gemma2",
        .attentionBias = BiasRule::Field,
        .window = WindowRule::Pattern,
        .missingWindow = 4096,
        .missingHeadDim = 256,
        .missingKvHeads = 4,
        .missingPad = 0,
        .missingPattern = 2,
        .tiedByDefault = true,
        .geluGate = true,
        .onePlusNorms = true,
        .branchNorms = true,
        .scaledEmbedding = true,
        .missingQueryScalar = 256.0,
        .missingAttentionCap = 50.0,
        .missingLogitCap = 30.0},
    {.name = "Gemma3ForCausalLM",
        .modelType = "gemma3_text",
        .attentionBias = BiasRule::Field,
        .queryKeyNorm = true,
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
        .branchNorms = true,
        .scaledEmbedding = true,
        .missingTheta = 1e6,
        .missingLocalTheta = 10000.0,
        .missingQueryScalar = 256.0,
        .missingLogitCap = 0.0},
    {.name = "LlamaForCausalLM",
        .modelType = "llama",
        .attentionBias = BiasRule::Field,
        .mlpBias = BiasRule::Field},
    {.name = "MistralForCausalLM",
        .modelType = "mistral",
        .window = WindowRule::AllLayers,
        .missingWindow = 4096,
        .missingKvHeads = 8},
    {.name = "Phi3ForCausalLM",
        .modelType = "phi3",
        .fusedProjections = true,
        .ownCode = true,
        .window = WindowRule::AllLayers,
        .missingPad = 32000,
        .missingOriginal = 4096,
        .partialRotary = true},
    {.name = "Qwen2ForCausalLM",
        .modelType = "qwen2",
        .attentionBias = BiasRule::QkvOnly,
        .window = WindowRule::UpperLayers,
        .missingWindow = 4096,
        .missingKvHeads = 32},
    {.name = "Qwen3ForCausalLM",
        .modelType = "qwen3",
        .attentionBias = BiasRule::Field,
        .queryKeyNorm = true,
        .window = WindowRule::UpperLayers,
        .missingWindow = 4096,
        .missingHeadDim = 128,
        .missingKvHeads = 32},
}};

// The first row of which a part stands in the name, in small letters, says why.
struct Kind {
    std::string_view part;
    std::string_view why;
};

constexpr std::string_view kExperts =
    "mixtures of experts are not supported; take a dense model of the family";

constexpr std::array<Kind, 13> kKinds = {{
    {"moe", kExperts},
    {"mixtral", "mixtures of experts are not supported; take a dense model such as Mistral 7B"},
    {"deepseekv", kExperts},
    {"deepseek_v", kExperts},
    {"gptoss", kExperts},
    {"gpt_oss", kExperts},
    {"llama4", "mixtures of experts are not supported; take Llama 3"},
    {"gpt2", "learned positions and LayerNorm are not supported; take a model with rotary "
             "positions and RMSNorm"},
    {"gemma3n", "layers of its own kind are not supported; take Gemma 3"},
    {"conditionalgeneration", "models of pictures and text are not supported; take the text "
                              "model they are built on"},
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

std::string unsupportedWords(std::string_view name)
{
    std::string small(name); // published names are spelled "Moe", "MoE" and "moe"
    std::transform(small.begin(), small.end(), small.begin(),
        [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    std::string words = "is not supported yet";
    for (const Kind& kind : kKinds)
        if (small.find(kind.part) != std::string::npos) {
            words += ": " + std::string(kind.why);
            break;
        }
    words += "; supported: ";
    for (const Traits& each : kArchitectures)
        words.append(&each == kArchitectures.data() ? "" : ", ").append(each.name);
    return words;
}

} // namespace mr
