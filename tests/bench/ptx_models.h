// Shapes of the models whose kernels are counted.
//
// Source   config.json of Qwen/Qwen2.5-1.5B, meta-llama/Meta-Llama-3-8B, google/gemma-3-4b-pt
//          (text_config; its file leaves heads, kvHeads, headDim and vocab to the defaults of
//          Gemma3TextConfig) and Qwen/Qwen3.5-4B (tests/bench/configs/qwen3.5-4b.json).

#pragma once

#include <array>
#include <cstdint>

namespace mr::bench {

struct ModelShape {
    const char* name;
    std::int64_t hidden;
    std::int64_t intermediate;
    int layers;
    int heads;
    int kvHeads;
    int headDim;
    std::int64_t vocab;
    std::int64_t window; // of most layers; 0: none
    bool hasBias;        // of q, k and v
    bool isGemma;        // GELU, scaled embedding
    bool hasState;       // three of four layers have the gated delta rule, the fourth has gates

    // q and k, and the gain of every norm is 1 + weight.
    bool normsHeads() const { return isGemma || hasState; }
    std::int64_t projected() const
    {
        return (std::int64_t{heads} + 2 * std::int64_t{kvHeads}) * headDim;
    }
    // Weights of the matrices of a block.
    std::int64_t blockWeights() const
    {
        return hidden * (projected() + std::int64_t{heads} * headDim + 3 * intermediate);
    }
};

inline constexpr std::int64_t kTokens = 2048;

inline constexpr std::array kModels = {
    ModelShape{"Qwen2.5 1.5B", 1536, 8960, 28, 12, 2, 128, 151'936, 0, true, false, false},
    ModelShape{"Llama 3 8B", 4096, 14'336, 32, 32, 8, 128, 128'256, 0, false, false, false},
    ModelShape{"Gemma 3 4B", 2560, 10'240, 34, 8, 4, 256, 262'208, 1024, false, true, false},
    ModelShape{"Qwen3.5 4B", 2560, 9216, 32, 16, 4, 256, 248'320, 0, false, false, true}};

} // namespace mr::bench
