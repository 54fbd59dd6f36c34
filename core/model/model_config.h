// ModelConfig: the content of config.json, checked, in the terms the engine uses.
//
// Fields that would change the mathematics and are not understood are refused by name, never
// ignored; neutral ones (dropout 0, use_cache, ...) pass. The text as it was read is kept, so a
// saved model carries its own config unchanged.
//
// The reader resolves the features of an architecture (core/model/architecture.h): layers and
// layout ask these fields and know no names.
//
// Threads  Values.
// Errors   InvalidArgument names the file, the field, its value and the supported ones; DataCorrupt
//          for text that is not JSON.
// Source   reference: model_semantics sections 1.1 to 1.5, 1.7 to 1.11.

#pragma once

#include "core/model/rope_scaling.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct ModelConfig {
    std::string architecture; // "LlamaForCausalLM"
    std::string dtype;        // as written: "float32", "bfloat16"; may be empty
    std::int64_t hidden = 0;
    std::int64_t intermediate = 0;
    std::int64_t layers = 0;
    std::int64_t heads = 0;
    std::int64_t kvHeads = 0;
    std::int64_t headDim = 0;
    std::int64_t vocab = 0;
    std::int64_t maxPositions = 0;
    double rmsNormEps = 0.0;
    double ropeTheta = 10000.0;
    double localTheta = 0.0;    // windowed blocks, unscaled; 0: as the others
    std::int64_t rotaryDim = 0; // elements of a head that turn; 0: all
    RopeScaling ropeScaling;
    double initializerRange = 0.02;
    bool tiedEmbedding = false;
    bool qkvBias = false;          // q, k and v have one
    bool attnOutBias = false;      // o has one
    bool mlpBias = false;          // gate, up and down have one
    bool queryKeyNorm = false;     // RMSNorm of each head of q and k, before the rotation
    bool fusedProjections = false; // files hold qkv_proj and gate_up_proj
    bool geluGate = false;         // GateActivation::GeluTanh; else silu
    bool onePlusNorms = false;     // NormGain::OnePlusWeight
    bool branchNorms = false; // attention's and the MLP's output are normed before they are added
    double embeddingScale = 1.0;
    double queryScalar = 0.0;  // scores are scaled by 1 / its root; 0: headDim
    double attentionCap = 0.0; // soft-cap of scores; 0: none
    double logitCap = 0.0;     // and of logits
    std::int64_t window = 0;   // keys a query sees, itself included; 0: all before it
    std::vector<std::uint8_t> windowedBlocks; // (layers): 1 where `window` holds; empty: in all
    std::int64_t bosToken = -1;               // -1: none
    std::int64_t padToken = -1; // its row of the embedding is not trained by lookups; -1: none
    std::vector<std::int64_t> eosTokens;
    bool isNf4 = false; // matrices of the blocks are quantised by bitsandbytes (nf4_tensor.h)
    std::string text;   // config.json as read

    std::int64_t qkvColumns() const noexcept { return (heads + 2 * kvHeads) * headDim; }
    std::int64_t attentionColumns() const noexcept { return heads * headDim; }

    std::int64_t turnedColumns() const noexcept { return rotaryDim > 0 ? rotaryDim : headDim; }

    RopeShape ropeShape() const noexcept { return {ropeTheta, turnedColumns(), maxPositions}; }

    RopeShape localRopeShape() const noexcept
    {
        return {localTheta, turnedColumns(), maxPositions};
    }

    // Tokens of the longest sequence the positions are made for: scaling that stretches them as
    // far as its factor says goes beyond max_position_embeddings.
    std::int64_t longestSequence() const noexcept;

    // False for any other group, too: embedding and head see no keys.
    bool isWindowed(std::int64_t block) const noexcept;
};

// `source` names the text in messages ("/models/x/config.json").
Result<ModelConfig> parseModelConfig(std::string_view text, const std::string& source);

// `path` is a model folder or a config.json.
Result<ModelConfig> readModelConfig(const std::filesystem::path& path);

} // namespace mr
