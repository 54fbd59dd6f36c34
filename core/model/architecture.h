// The table of architectures: the meaning of the class named in config.json, as data.
//
// The config's reader looks up a family's own features here, once: which products have a bias,
// whether queries and keys are normed, how tensors are named, which layers have a window. Layers
// and layout ask ModelConfig and know no names.
//
// Threads  Pure functions over constants.
// Source   reference: model_semantics sections 1.2 to 1.10; the defaults are those of the
//          transformers config class of each architecture.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mr {

enum class BiasRule : std::uint8_t {
    None,   // a field that asks for one is refused
    Field,  // attention_bias: q, k, v and o; mlp_bias: gate, up and down
    QkvOnly // q, k and v always, no field
};

enum class WindowRule : std::uint8_t {
    None,        // every layer sees everything before it
    AllLayers,   // sliding_window, in every layer
    UpperLayers, // sliding_window if use_sliding_window, in layers from max_window_layers on
    Pattern      // sliding_window, in all but every n-th layer
};

struct ArchitectureTraits {
    std::string_view name;      // architectures[0]
    std::string_view modelType; // model_type
    BiasRule attentionBias = BiasRule::None;
    BiasRule mlpBias = BiasRule::None;
    bool queryKeyNorm = false;     // RMSNorm of each head of q and k, before the rotation
    bool fusedProjections = false; // files hold qkv_proj and gate_up_proj
    bool ownCode = false;          // published with an auto_map to code this table replaces
    WindowRule window = WindowRule::None;
    std::int64_t missingWindow = 0;    // sliding_window where the field is missing; 0: none
    std::int64_t missingHeadDim = 0;   // head_dim where it is missing; 0: hidden / heads
    std::int64_t missingKvHeads = 0;   // num_key_value_heads; 0: as many as there are heads
    std::int64_t missingPad = -1;      // pad_token_id; -1: none
    std::int64_t missingOriginal = 0;  // original_max_position_embeddings of longrope; 0: none
    std::int64_t missingPattern = 0;   // n of WindowRule::Pattern
    bool patternField = false;         // sliding_window_pattern may say otherwise
    bool tiedByDefault = false;        // where tie_word_embeddings is missing
    bool partialRotary = false;        // partial_rotary_factor is understood
    bool geluGate = false;             // the tanh form of GELU; else silu
    bool onePlusNorms = false;         // norms multiply by 1 + weight
    bool branchNorms = false;          // attention's and the MLP's output are normed, too
    bool scaledEmbedding = false;      // times the root of hidden_size
    double missingTheta = 10000.0;     // rope_theta where it is missing
    double missingLocalTheta = 0.0;    // windowed layers; 0: as all others
    double missingQueryScalar = 0.0;   // query_pre_attn_scalar; 0: no such field, head_dim
    double missingAttentionCap = -1.0; // attn_logit_softcapping; 0: none, below: no such field
    double missingLogitCap = -1.0;     // final_logit_softcapping; the same
};

std::span<const ArchitectureTraits> architectures() noexcept;

// Null if there is no such row.
const ArchitectureTraits* findArchitecture(std::string_view name) noexcept;
const ArchitectureTraits* findModelType(std::string_view modelType) noexcept;

// Why an architecture without a row is not trained, and one to take instead. One sentence.
std::string unsupportedWords(std::string_view name);

} // namespace mr
