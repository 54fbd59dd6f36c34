// A tiny model of each family, with the features that are its own.

#pragma once

#include "core/prove/exact_check.h"

#include <QString>

#include <cmath>

namespace mr::test {

inline constexpr const char* kFamilies[] = {
    "llama3", "mistral", "qwen2", "qwen3", "phi3", "phi4", "gemma", "gemma2", "gemma3"};

inline bool isTied(const QString& family)
{
    return family.startsWith("qwen") || family.startsWith("gemma");
}

inline void addGemma(const QString& family, ModelConfig& config)
{
    config.headDim = 10;
    config.geluGate = true;
    config.onePlusNorms = true;
    config.embeddingScale = std::sqrt(static_cast<double>(config.hidden));
    if (family == "gemma")
        return;
    config.branchNorms = true;
    config.queryScalar = 7.0;
    config.window = 6;
    if (family == "gemma2") {
        config.windowedBlocks = {1, 0, 1};
        config.attentionCap = 0.05;
        config.logitCap = 2.0;
    } else {
        config.windowedBlocks = {1, 1, 0};
        config.queryKeyNorm = true;
        config.localTheta = 100.0;
        config.ropeScaling.type = RopeType::Linear;
        config.ropeScaling.factor = 8.0;
    }
}

// Three blocks, sequences of 20 tokens: the windows cut.
inline ModelConfig familyConfig(const QString& family)
{
    ModelConfig config = tinyConfig(isTied(family));
    if (family.startsWith("gemma")) {
        addGemma(family, config);
    } else if (family == "llama3") {
        config.ropeScaling.type = RopeType::Llama3;
        config.ropeScaling.factor = 8.0;
        config.ropeScaling.originalPositions = 64.0;
    } else if (family == "mistral") {
        config.window = 7;
    } else if (family == "qwen2") {
        config.qkvBias = true;
        config.window = 5;
        config.windowedBlocks = {0, 1, 1};
    } else if (family == "qwen3") {
        config.queryKeyNorm = true;
        config.headDim = 8;
    } else if (family == "phi4") {
        config.fusedProjections = true;
        config.rotaryDim = 4;
    } else if (family == "phi3") {
        config.fusedProjections = true;
        config.window = 9;
        config.ropeScaling.type = RopeType::LongRope;
        config.ropeScaling.originalPositions = 16.0;
        config.ropeScaling.factor = 2.0;
        config.ropeScaling.shortFactors = {1.0F, 1.5F, 2.0F};
        config.ropeScaling.longFactors = {2.0F, 3.0F, 5.0F};
    }
    return config;
}

} // namespace mr::test
