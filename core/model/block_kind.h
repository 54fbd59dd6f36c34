// BlockKind: how one transformer block computes. A model is a list of them (ModelConfig::kindOf).
//
// Loader, parameter table, layout, layers, planning, export and generation ask the kind of each
// block and know no names of families; core/model/architecture.h says which family has which.
//
// Threads  Values.
// Units    Elements.
// Source   reference: model_semantics sections 1.2 to 1.10, families_2026 section 2.1.

#pragma once

#include "core/device/ops.h"

#include <cstdint>
#include <string_view>

namespace mr {

// RMSNorm of q and k: of each head before or after it is rotated, or of the whole row of all heads,
// with a weight of its length, before it is.
enum class QueryKeyNorm : std::uint8_t { None, Heads, TurnedHeads, Rows };

// Sources of k and v: the block's first product; the same, and v is k before its norm; or an
// earlier block has both.
enum class KeyValueSource : std::uint8_t { Projected, KeysAreValues, Earlier };

// How tokens reach those behind them: by attention, or by a state with the gated delta rule.
enum class Mixer : std::uint8_t { Attention, GatedDelta };

// Fields from `heads` to `attentionCap` are attention's; those of the delta rule stand at the end.
struct BlockKind {
    Mixer mixer = Mixer::Attention;
    std::int64_t heads = 0;
    std::int64_t kvHeads = 0;
    std::int64_t headDim = 0;
    std::int64_t intermediate = 0; // width of the MLP
    bool inputNorms = true;        // of what attention and the MLP read
    bool branchNorms = false;      // of what they add to the residual stream
    QueryKeyNorm queryKeyNorm = QueryKeyNorm::None;
    bool normsValues = false; // each head of v, without a weight
    KeyValueSource keyValues = KeyValueSource::Projected;
    int sharedKeys = -1;    // into SharedViews::keyValues: k and v that later blocks read, or that
                            // come from an earlier one; -1: neither
    bool readsLast = false; // no later block reads these, so its backward is the first to add
    bool qkvBias = false;   // q, k and v have one
    bool attnOutBias = false; // o has one
    bool mlpBias = false;     // gate, up and down have one
    bool geluGate = false;    // GateActivation::GeluTanh; else silu
    bool turns = true;        // q and k are rotated by their positions
    int rope = 0;             // into ModelConfig::ropes
    RopePairs pairs = RopePairs::Halves;
    std::int64_t window = 0;     // keys a query sees, itself included; 0: all before it
    double scoreScale = 0.0;     // of q k^T; 0: 1 / sqrt(headDim)
    double attentionCap = 0.0;   // soft-cap of scores; 0: none
    bool gatesAttention = false; // q comes with a gate of what attention gives
    double branchScale = 1.0;    // of what the mixer and the MLP add
    std::int64_t layerInput = 0; // columns of what the block has of each token beside the stream
    DeltaShape delta;
    std::int64_t taps = 0; // of the convolution before the rule

    bool operator==(const BlockKind&) const = default;

    bool isDelta() const noexcept { return mixer == Mixer::GatedDelta; }
    // Is what the mixer gives gated before the block's second product?
    bool gatesMixer() const noexcept { return isDelta() || gatesAttention; }
    bool readsKeys() const noexcept { return keyValues == KeyValueSource::Earlier; }
    bool givesKeys() const noexcept { return sharedKeys >= 0 && !readsKeys(); }
    // Is the first product something else than the packed rows of attention?
    bool joinsProduct() const noexcept
    {
        return gatesMixer() || keyValues != KeyValueSource::Projected;
    }
    // Columns of k and v in the first product.
    std::int64_t projectedKeyColumns() const noexcept { return readsKeys() ? 0 : keyColumns(); }
    std::int64_t projectedValueColumns() const noexcept
    {
        return keyValues == KeyValueSource::Projected ? keyColumns() : 0;
    }
    // Columns of the block's first product: packed rows, or as many of them as it makes; with gates
    // of attention those of SplitQueriesArgs; with a state [what is convolved | gate of the norm |
    // b | a].
    std::int64_t projectedColumns() const noexcept
    {
        if (isDelta())
            return delta.columns() + delta.valueColumns() + 2 * std::int64_t{delta.valueHeads};
        return (gatesAttention ? 2 : 1) * queryColumns() + projectedKeyColumns() +
               projectedValueColumns();
    }
    // Columns that its second product reads.
    std::int64_t mixedColumns() const noexcept
    {
        return isDelta() ? delta.valueColumns() : queryColumns();
    }
    std::int64_t normGateColumn() const noexcept { return delta.columns(); }
    std::int64_t ruleGateColumn() const noexcept { return delta.columns() + delta.valueColumns(); }

    std::int64_t queryColumns() const noexcept { return heads * headDim; }
    std::int64_t keyColumns() const noexcept { return kvHeads * headDim; }
    std::int64_t qkvColumns() const noexcept { return queryColumns() + 2 * keyColumns(); }

    bool normsQueries() const noexcept { return queryKeyNorm != QueryKeyNorm::None; }
    bool normsKeys() const noexcept { return normsQueries() && !readsKeys(); }
    bool normsOwnValues() const noexcept { return normsValues && !readsKeys(); }
    // Rows of a token in the norm of q, or of k, and their length.
    std::int64_t queryNormRows() const noexcept { return normsWholeRows() ? 1 : heads; }
    std::int64_t keyNormRows() const noexcept { return normsWholeRows() ? 1 : kvHeads; }
    std::int64_t queryNormLength() const noexcept { return queryColumns() / queryNormRows(); }
    std::int64_t keyNormLength() const noexcept { return keyColumns() / keyNormRows(); }
    bool normsWholeRows() const noexcept { return queryKeyNorm == QueryKeyNorm::Rows; }
};

// Names of a block's modules in files.
struct BlockNames {
    std::string_view attnNorm = "input_layernorm";
    std::string_view attnBranchNorm = "post_attention_layernorm";
    std::string_view mlpNorm = "post_attention_layernorm";
    std::string_view mlpBranchNorm = "post_feedforward_layernorm";
    std::string_view queryNorm = "q_norm";
    std::string_view keyNorm = "k_norm";
    std::string_view qkv = {}; // q, k and v in one; empty: apart
    std::string_view mlp = "mlp";
    std::string_view gateUp = {}; // gate and up in one; empty: apart
    std::string_view down = "down_proj";
};

} // namespace mr
