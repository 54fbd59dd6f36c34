// A tiny model of each family, with the features that are its own.

#pragma once

#include "core/model/architecture.h"
#include "core/prove/exact_check.h"
#include "support/block_kinds.h"

#include <QString>

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace mr::test {

inline constexpr const char* kFamilies[] = {"llama3", "mistral", "qwen2", "qwen3", "phi3", "phi4",
    "gemma", "gemma2", "gemma3", "ministral3", "smollm3", "olmo3", "granite", "glm4", "exaone4",
    "hunyuan", "qwen3_5", "gemma4", "gemma4_e"};

inline bool isTied(const QString& family)
{
    return family.startsWith("qwen") || family.startsWith("gemma") || family == "smollm3" ||
           family == "granite";
}

inline void addGemma(const QString& family, ModelConfig& config)
{
    config.block.headDim = 10;
    config.block.geluGate = true;
    config.onePlusNorms = true;
    config.embeddingScale = std::sqrt(static_cast<double>(config.hidden));
    if (family == "gemma")
        return;
    config.block.branchNorms = true;
    config.names = findArchitecture("Gemma2ForCausalLM")->names;
    config.block.scoreScale = 1.0 / std::sqrt(7.0);
    if (family == "gemma2") {
        config.block.attentionCap = 0.05;
        config.logitCap = 2.0;
        setWindows(config, 6, {1, 0, 1});
    } else {
        config.block.queryKeyNorm = QueryKeyNorm::Heads;
        setWindows(config, 6, {1, 1, 0}, 1);
        config.ropes.push_back({100.0, 0, {}});
        config.ropes.front().scaling.type = RopeType::Linear;
        config.ropes.front().scaling.factor = 8.0;
    }
}

// Families of this year that are made of the parts of others.
inline void addNewer(const QString& family, ModelConfig& config)
{
    BlockKind& block = config.block;
    if (family == "ministral3") {
        config.ropes.front().scaling.originalPositions = 5.0;
        config.ropes.front().scaling.queryGrowth = 0.3;
    } else if (family == "smollm3") {
        setStill(config, {0, 1, 0});
    } else if (family == "olmo3" || family == "exaone4") {
        block.inputNorms = false;
        block.branchNorms = true;
        block.queryKeyNorm = family == "olmo3" ? QueryKeyNorm::Rows : QueryKeyNorm::Heads;
        setWindows(config, 6, {1, 0, 1}, family == "olmo3" ? 1 : 0);
        if (family == "exaone4")
            setStill(config, {0, 1, 0});
        else
            config.ropes.push_back({100.0, 0, {}});
    } else if (family == "granite") {
        block.branchScale = 0.3;
        block.scoreScale = 0.2;
        config.logitScale = 0.7;
        config.embeddingScale = 3.0;
    } else if (family == "glm4") {
        block.branchNorms = true;
        block.pairs = RopePairs::Neighbours;
        block.qkvBias = true;
        config.ropes.front().rotaryDim = 4;
        config.names = findArchitecture("Glm4ForCausalLM")->names;
    } else if (family == "hunyuan") {
        block.queryKeyNorm = QueryKeyNorm::TurnedHeads;
    } else if (family == "qwen3_5") {
        block.queryKeyNorm = QueryKeyNorm::Heads;
        block.headDim = 8;
        block.gatesAttention = true;
        config.onePlusNorms = true;
        config.ropes.front().rotaryDim = 4;
        BlockKind rule = block;
        rule.mixer = Mixer::GatedDelta;
        rule.gatesAttention = false;
        rule.delta = {2, 6, 7, 10};
        rule.taps = 4;
        config.blocks = {rule, block, rule};
    }
}

// As config.json says it: two head sizes, v that is k; or k and v of another block, and blocks with
// inputs of their own.
inline ModelConfig gemma4Config(bool hasInputs)
{
    const std::string text = fmt::format(
        R"({{"architectures": ["Gemma4ForCausalLM"], "hidden_size": 24, "intermediate_size": 40,
            "num_hidden_layers": {}, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 6, "global_head_dim": 10, "vocab_size": 64, "rms_norm_eps": 1e-6,
            "max_position_embeddings": 64, "sliding_window": 6, "pad_token_id": null,
            "final_logit_softcapping": 2.0, "layer_types": {}, {}}})",
        hasInputs ? 5 : 3,
        hasInputs ? R"(["sliding_attention", "full_attention", "sliding_attention",
                        "sliding_attention", "full_attention"])"
                  : R"(["full_attention", "sliding_attention", "full_attention"])",
        hasInputs ? R"("hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 70,
                       "num_kv_shared_layers": 3, "use_double_wide_mlp": true)"
                  : R"("hidden_size_per_layer_input": 0, "attention_k_eq_v": true,
                       "num_global_key_value_heads": 1)");
    ModelConfig config = std::move(parseModelConfig(text, "gemma4")).value();
    config.trainsInputs = true;
    for (std::int64_t block = 0; block < config.layers; ++block)
        config.outputScales.push_back(block % 2 == 0 ? 0.75F : 1.0F);
    return config;
}

// Three blocks or five, sequences of 20 tokens: the windows cut.
inline ModelConfig familyConfig(const QString& family)
{
    if (family.startsWith("gemma4"))
        return gemma4Config(family == "gemma4_e");
    ModelConfig config = tinyConfig(isTied(family));
    if (family.startsWith("gemma")) {
        addGemma(family, config);
    } else if (family == "llama3") {
        config.ropes.front().scaling.type = RopeType::Llama3;
        config.ropes.front().scaling.factor = 8.0;
        config.ropes.front().scaling.originalPositions = 64.0;
    } else if (family == "mistral") {
        config.block.window = 7;
    } else if (family == "qwen2") {
        config.block.qkvBias = true;
        setWindows(config, 5, {0, 1, 1});
    } else if (family == "qwen3") {
        config.block.queryKeyNorm = QueryKeyNorm::Heads;
        config.block.headDim = 8;
    } else if (family == "phi4") {
        config.names.qkv = "qkv_proj";
        config.names.gateUp = "gate_up_proj";
        config.ropes.front().rotaryDim = 4;
    } else if (family == "phi3") {
        config.names.qkv = "qkv_proj";
        config.names.gateUp = "gate_up_proj";
        config.block.window = 9;
        config.ropes.front().scaling.type = RopeType::LongRope;
        config.ropes.front().scaling.originalPositions = 16.0;
        config.ropes.front().scaling.factor = 2.0;
        config.ropes.front().scaling.shortFactors = {1.0F, 1.5F, 2.0F};
        config.ropes.front().scaling.longFactors = {2.0F, 3.0F, 5.0F};
    }
    addNewer(family, config);
    return config;
}

} // namespace mr::test
