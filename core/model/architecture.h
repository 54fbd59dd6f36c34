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

#include "core/model/block_kind.h"
#include "core/model/rope_scaling.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mr {

// The products that have a bias.
enum class BiasRule : std::uint8_t {
    None,      // none; a field that asks for one is refused
    Attention, // attention_bias: q, k, v and o
    All,       // attention_bias as above; mlp_bias: gate, up and down
    Qkv,       // q, k and v always, no field
    QkvField,  // attention_bias, on where it is missing: q, k and v
    Apart,     // as QkvField; attention_out_bias: o; mlp_bias: gate, up and down
    Whole      // use_bias: every one of these
};

enum class WindowRule : std::uint8_t {
    None,        // every layer sees everything before it
    AllLayers,   // sliding_window, in every layer
    UpperLayers, // sliding_window if use_sliding_window, in layers from max_window_layers on
    Pattern,     // sliding_window, in all but every n-th layer
    StillLayers  // sliding_window if use_sliding_window, in layers that do not turn
};

// Which layers have no rotary positions.
enum class StillRule : std::uint8_t {
    None,       // every layer turns
    Listed,     // those with 0 in no_rope_layers, or every no_rope_layer_interval-th
    FullLayers, // those without a window, where sliding_window is not null
    All         // every layer, unless position_embedding_type is "rope"
};

// A block norms what a branch reads, what it adds, or both.
enum class NormPlace : std::uint8_t { Before, After, Around };

struct ArchitectureTraits {
    std::string_view name;      // architectures[0]
    std::string_view modelType; // model_type
    BlockNames names = {};
    std::string_view mlpWidth = "intermediate_size"; // the field that has it
    BiasRule bias = BiasRule::None;
    QueryKeyNorm queryKeyNorm = QueryKeyNorm::None;
    NormPlace norms = NormPlace::Before;
    RopePairs pairs = RopePairs::Halves;
    StillRule still = StillRule::None;
    bool ownCode = false; // published with an auto_map to code this table replaces
    WindowRule window = WindowRule::None;
    std::int64_t missingWindow = 0;        // sliding_window where the field is missing; 0: none
    std::int64_t missingHeadDim = 0;       // head_dim where it is missing; 0: hidden / heads
    std::int64_t missingKvHeads = 0;       // num_key_value_heads; 0: as many as there are heads
    std::int64_t missingPad = -1;          // pad_token_id; -1: none
    std::int64_t missingOriginal = 0;      // original_max_position_embeddings of longrope; 0: none
    std::int64_t missingPattern = 0;       // n of WindowRule::Pattern
    bool patternField = false;             // sliding_window_pattern may say otherwise
    bool optionalWindow = false;           // no layer has one where sliding_window is null
    bool fullLast = false;                 // the last layer has no window, whatever is said
    std::int64_t missingGlobalHeadDim = 0; // global_head_dim of layers without one; 0: such fields
                                           // (readLayerSizes()) are not understood
    std::int64_t missingLayerInput = 0;    // hidden_size_per_layer_input; 0: no such field
    bool tiedByDefault = false;            // where tie_word_embeddings is missing
    bool partialRotary = false;            // partial_rotary_factor is understood
    double missingRotaryShare = 1.0;       // ... where it is missing
    RopeExtras rope = {};                  // fields of scaled positions that it understands
    std::string_view missingRope = {};     // rope_parameters where they are missing, as JSON
    bool geluGate = false;                 // the tanh form of GELU; else silu
    bool onePlusNorms = false;             // norms multiply by 1 + weight
    bool scaledEmbedding = false;          // times the root of hidden_size
    bool multipliers = false;    // embedding_, attention_, residual_multiplier, logits_scaling
    bool attentionOnly = false;  // other mixers and experts of the class are refused
    bool deltaLayers = false;    // layers with a state by the gated delta rule, but every n-th
    bool gatesAttention = false; // q_proj holds a gate of each head behind its rows
    bool normsValues = false;    // v is normed without a weight
    bool plainScores = false;    // scores are not scaled
    std::string_view layerScalars = {}; // tensors of what the output of a block is multiplied by
    std::span<const std::string_view> carried = {}; // names of carried tensors: isCarried()
    bool leavesDropoutOut = false;     // published with dropout, which is not trained with
    double missingTheta = 10000.0;     // rope_theta where it is missing
    double missingLocalTheta = 0.0;    // windowed layers, unscaled; 0: they turn as all others
    double missingQueryScalar = 0.0;   // query_pre_attn_scalar; 0: no such field, head_dim
    double missingAttentionCap = -1.0; // attn_logit_softcapping; 0: none, below: no such field
    double missingLogitCap = -1.0;     // final_logit_softcapping; the same
};

std::span<const ArchitectureTraits> architectures() noexcept;

// Null if there is no such row.
const ArchitectureTraits* findArchitecture(std::string_view name) noexcept;
const ArchitectureTraits* findModelType(std::string_view modelType) noexcept;

// Why an architecture without a row is not trained, and one to take instead: "is not supported
// yet: ...".
std::string unsupportedReason(std::string_view name);
// As above, with all that are supported. One sentence.
std::string unsupportedWords(std::string_view name);

} // namespace mr
