// The mixer of a block, between its first product and its second: attention, or a state by the
// gated delta rule; and the gate of either.
//
// Threads  Engine thread (it enqueues).
// Errors   Those of the ops, unchanged.
// Source   reference: model_semantics 1.3 to 1.5, families_2026 section 2.2.

#pragma once

#include "core/model/block.h"

namespace mr {

// The output of the first product, the input of the second one, and the gradient of the former.
inline TensorView projectedOf(
    const BlockKind& kind, const BlockActivations& kept, const BlockScratch& scratch)
{
    if (!kind.joinsProduct())
        return kept.qkv;
    return kind.gatesMixer() ? kept.joined : scratch.gradJoined.rows(0, kept.qkv.dims[0]);
}

inline const TensorView& mixedOf(const BlockActivations& kept)
{
    return kept.gated.data ? kept.gated : kept.attention;
}

inline const TensorView& gradProjectedOf(const BlockScratch& scratch)
{
    return scratch.gradJoined.data ? scratch.gradJoined : scratch.gradQkv;
}

// projectedOf() -> kept.attention.
Status mixTokens(const LayerContext& context, const BlockTensors& weights,
    const BlockActivations& kept, const BlockScratch& scratch);

// kept.attention -> kept.gated, in blocks that gate it.
Status gateMixer(
    const LayerContext& context, const BlockTensors& weights, const BlockActivations& kept);

// scratch.gradAttention, the gradient of mixedOf() -> gradProjectedOf().
Status mixTokensBack(const LayerContext& context, const BlockTensors& weights,
    const BlockActivations& kept, const BlockScratch& scratch, const BlockBackward& backward);

} // namespace mr
