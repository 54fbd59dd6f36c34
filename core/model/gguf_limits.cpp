#include "core/model/gguf_limits.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace mr {
namespace {

constexpr std::string_view kWayOut = "; export it as safetensors, which programs for models of "
                                     "Hugging Face read";

Status cannotWrite(std::string_view what)
{
    return Status::error(ErrorKind::InvalidArgument,
        "cannot be written as GGUF: " + std::string(what) + std::string(kWayOut));
}

bool isGemma(const ModelConfig& c, int version)
{
    return c.family ==
           (version == 1 ? "GemmaForCausalLM" : fmt::format("Gemma{}ForCausalLM", version));
}

Status checkProducts(const ModelConfig& c, const GgufFamily& family)
{
    for (const BlockKind& kind : c.kinds()) {
        if (kind.attnOutBias && family.biases == GgufBiases::Qkv)
            return cannotWrite("llama.cpp has no bias of o_proj in architecture " +
                               std::string(family.architecture));
        if (kind.mlpBias && family.biases != GgufBiases::All)
            return cannotWrite("llama.cpp has no biases of the MLP in architecture " +
                               std::string(family.architecture));
        if (family.squareOut && kind.queryColumns() != c.hidden)
            return cannotWrite(fmt::format("heads of a token have {} elements together; llama.cpp "
                                           "takes hidden_size ({}) in architecture {}",
                kind.queryColumns(), c.hidden, family.architecture));
        if (kind.isDelta() && kind.delta.keyDim != kind.delta.valueDim)
            return cannotWrite("linear_key_head_dim and linear_value_head_dim differ");
    }
    return {};
}

// Windows where llama.cpp has none, or others.
Status checkWindows(const ModelConfig& c)
{
    if (c.window() == 0)
        return {};
    for (const std::string_view family :
        {"Qwen2ForCausalLM", "Qwen3ForCausalLM", "SmolLM3ForCausalLM"})
        if (c.family == family)
            return cannotWrite("llama.cpp has no sliding window in this architecture");
    constexpr std::int64_t kWindowedExaone = 64; // layers
    if (c.family == "Exaone4ForCausalLM" && c.layers != kWindowedExaone)
        return cannotWrite("llama.cpp has sliding windows of EXAONE 4 with 64 layers alone");
    if (isGemma(c, 2))
        for (std::int64_t block = 0; block < c.layers; ++block)
            if ((c.kindOf(block).window > 0) != (block % 2 == 0))
                return cannotWrite(
                    "llama.cpp gives a window to every other layer, the first included");
    return {};
}

// Layers that do not turn.
Status checkStillLayers(const ModelConfig& c, const GgufFamily& family)
{
    constexpr std::int64_t kStep = 4; // of SmolLM 3
    const bool first = c.kindOf(0).turns;
    for (std::int64_t block = 0; block < c.layers; ++block) {
        const bool turns = c.kindOf(block).turns;
        const bool expected =
            c.family == "SmolLM3ForCausalLM" ? (block + 1) % kStep != 0
            : family.architecture == "granite"
                ? first
                : c.family != "Exaone4ForCausalLM" || c.window() == 0 || c.kindOf(block).window > 0;
        if (turns != expected)
            return cannotWrite(fmt::format("layer {} {} positions, which llama.cpp does otherwise",
                block, turns ? "turns by" : "has no"));
    }
    return {};
}

// The scale of scores follows from the architecture.
Status checkScores(const ModelConfig& c)
{
    if (!isGemma(c, 2) && !isGemma(c, 3))
        return {};
    const bool isLargest = c.layers == (isGemma(c, 2) ? 46 : 62); // 27B
    const BlockKind& kind = c.kindOf(0);
    const std::int64_t length = isLargest ? c.hidden / kind.heads : kind.headDim;
    const double scale = 1.0 / std::sqrt(static_cast<double>(length));
    const double own = kind.scoreScale > 0.0 ? kind.scoreScale
                                             : 1.0 / std::sqrt(static_cast<double>(kind.headDim));
    if (std::abs(own - scale) <= 1e-6 * scale)
        return {};
    return cannotWrite(fmt::format("query_pre_attn_scalar is {}, but llama.cpp scales scores by {}",
        std::round(1.0 / (own * own)), length));
}

Status checkRope(const ModelConfig& c, const GgufFamily& family)
{
    const RopeScaling& scaling = c.ropes.front().scaling;
    switch (scaling.type) {
    case RopeType::Llama3:
        return family.ropeFactors ? Status()
                                  : cannotWrite("llama.cpp reads no rope_type \"llama3\" in "
                                                "architecture " +
                                                std::string(family.architecture));
    case RopeType::LongRope:
        return family.architecture == "phi3"
                   ? Status()
                   : cannotWrite("rope_type \"longrope\" is written for Phi-3 alone");
    case RopeType::Dynamic:
        return scaling.alpha > 0.0 ? Status()
                                   : cannotWrite("llama.cpp has no rope_type \"dynamic\"");
    case RopeType::Yarn:
        return scaling.truncate ? Status()
                                : cannotWrite("llama.cpp has no yarn without \"truncate\"");
    default:
        return {};
    }
}

} // namespace

Result<const GgufFamily*> checkGguf(const ModelConfig& config)
{
    const GgufFamily* family = ggufFamilyOf(config.family);
    if (family == nullptr)
        return cannotWrite("its architecture, " + config.family + ", has no name there");
    if ((isGemma(config, 1) || isGemma(config, 2)) && !config.tiedEmbedding)
        return cannotWrite("llama.cpp reads no head of its own in architecture " +
                           std::string(family->architecture));
    MR_TRY(checkProducts(config, *family));
    MR_TRY(checkWindows(config));
    MR_TRY(checkStillLayers(config, *family));
    MR_TRY(checkScores(config));
    MR_TRY(checkRope(config, *family));
    return family;
}

std::vector<std::string> ggufNotes(const ModelConfig& config)
{
    std::vector<std::string> notes;
    const bool ignores =
        config.family == "MistralForCausalLM" || config.family == "Phi3ForCausalLM";
    if (ignores && config.window() > 0)
        notes.push_back(fmt::format("llama.cpp ignores the sliding window of this architecture: "
                                    "answers differ in texts longer than {} tokens.",
            config.window()));
    if (config.ropes.front().scaling.type == RopeType::LongRope)
        notes.push_back("llama.cpp chooses the long factors by the size of its context, not by "
                        "the length of the text.");
    if (config.isWrapped)
        notes.push_back("The file has the text part of the model; its towers for pictures and "
                        "sound are in the folder alone.");
    return notes;
}

} // namespace mr
