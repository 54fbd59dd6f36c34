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
        .missingWindow = 4096},
    {.name = "Phi3ForCausalLM",
        .modelType = "phi3",
        .fusedProjections = true,
        .ownCode = true,
        .window = WindowRule::AllLayers,
        .partialRotary = true},
    {.name = "Qwen2ForCausalLM",
        .modelType = "qwen2",
        .attentionBias = BiasRule::QkvOnly,
        .window = WindowRule::UpperLayers,
        .missingWindow = 4096},
    {.name = "Qwen3ForCausalLM",
        .modelType = "qwen3",
        .attentionBias = BiasRule::Field,
        .queryKeyNorm = true,
        .window = WindowRule::UpperLayers,
        .missingWindow = 4096,
        .missingHeadDim = 128},
}};

// The first row of which a part stands in the name says why.
struct Kind {
    std::string_view part;
    std::string_view why;
};

constexpr std::array<Kind, 5> kKinds = {{
    {"Moe", "mixtures of experts are not supported; take a dense model of the family"},
    {"Mixtral", "mixtures of experts are not supported; take a dense model such as Mistral 7B"},
    {"GPT2", "learned positions and LayerNorm are not supported; take a model with rotary "
             "positions and RMSNorm"},
    {"ConditionalGeneration", "models of pictures and text are not supported; take the text "
                              "model they are built on"},
    {"SequenceClassification", "classifiers are not supported; take the causal language model"},
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
    std::string words = "is not supported yet";
    for (const Kind& kind : kKinds)
        if (name.find(kind.part) != std::string_view::npos) {
            words += ": " + std::string(kind.why);
            break;
        }
    words += "; supported: ";
    for (const Traits& each : kArchitectures)
        words.append(&each == kArchitectures.data() ? "" : ", ").append(each.name);
    return words;
}

} // namespace mr
