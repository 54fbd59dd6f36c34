#include "core/model/gguf_family.h"

#include <algorithm>
#include <array>

namespace mr {
namespace {

using enum GgufBiases;

constexpr std::array<GgufFamily, 22> kFamilies = {{
    {.family = "LlamaForCausalLM",
        .architecture = "llama",
        .biases = All,
        .turnsNeighbours = true,
        .ropeFactors = true},
    {.family = "MistralForCausalLM",
        .architecture = "llama",
        .biases = All,
        .turnsNeighbours = true,
        .ropeFactors = true},
    {.family = "Ministral3ForCausalLM",
        .architecture = "mistral3",
        .biases = All,
        .turnsNeighbours = true,
        .ropeFactors = true},
    {.family = "Qwen2ForCausalLM", .architecture = "qwen2"},
    {.family = "Qwen3ForCausalLM", .architecture = "qwen3"},
    {.family = "Qwen3_5ForCausalLM", .architecture = "qwen35", .mlpNorm = "post_attention_norm"},
    {.family = "GemmaForCausalLM", .architecture = "gemma"},
    {.family = "Gemma2ForCausalLM", .architecture = "gemma2"},
    {.family = "Gemma3ForCausalLM", .architecture = "gemma3"},
    {.family = "Gemma4ForCausalLM", .architecture = "gemma4"},
    {.family = "Gemma4UnifiedForCausalLM", .architecture = "gemma4"},
    {.family = "Phi3ForCausalLM", .architecture = "phi3"},
    {.family = "Ernie4_5ForCausalLM", .architecture = "ernie4_5", .biases = Attention},
    {.family = "Exaone4ForCausalLM",
        .architecture = "exaone4",
        .ropeFactors = true,
        .squareOut = true},
    {.family = "Glm4ForCausalLM", .architecture = "glm4"},
    {.family = "GraniteForCausalLM",
        .architecture = "granite",
        .biases = All,
        .turnsNeighbours = true,
        .ropeFactors = true},
    {.family = "GraniteMoeHybridForCausalLM",
        .architecture = "granite",
        .biases = All,
        .turnsNeighbours = true,
        .splitsGateUp = true,
        .ropeFactors = true},
    {.family = "HunYuanDenseV1ForCausalLM", .architecture = "hunyuan-dense"},
    {.family = "Olmo2ForCausalLM", .architecture = "olmo2", .squareOut = true, .ownHead = true},
    {.family = "Olmo3ForCausalLM", .architecture = "olmo2", .squareOut = true, .ownHead = true},
    {.family = "SeedOssForCausalLM", .architecture = "seed_oss", .mlpNorm = "post_attention_norm"},
    {.family = "SmolLM3ForCausalLM", .architecture = "smollm3", .turnsNeighbours = true},
}};

template <typename Match>
const GgufFamily* find(Match match) noexcept
{
    const auto row = std::ranges::find_if(kFamilies, match);
    return row == kFamilies.end() ? nullptr : &*row;
}

} // namespace

std::span<const GgufFamily> ggufFamilies() noexcept
{
    return kFamilies;
}

const GgufFamily* ggufFamilyOf(std::string_view family) noexcept
{
    return find([family](const GgufFamily& row) { return row.family == family; });
}

const GgufFamily* ggufFamilyOfArchitecture(std::string_view architecture) noexcept
{
    return find([architecture](const GgufFamily& row) { return row.architecture == architecture; });
}

} // namespace mr
