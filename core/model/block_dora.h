// DoRA in the products of a block (Liu et al., arXiv 2402.09353): each row of V = W + scale B A is
// scaled to its magnitude m.
//
//     forward    y = k x V^T + bias             with k = m / n, n the norms of the rows of V
//     backward   dm = column sums of G (x V^T), over n        with G = dL/dy
//                everything else as without magnitudes, with G k in place of G
//
// n counts as a constant (section 4.3 of the paper), as in PEFT. It is made again in every pass
// from the weights that the pass reads, so it needs no memory between passes, also where these
// stream: 2 rank multiply-adds an element of W, which are 2 rank / tokens of the product. dm takes
// the base's product once more, because no pass keeps x V^T.
//
// Order    y has been rounded to the compute type, with bias and adapter, before it is scaled.
// Threads  Engine thread (it enqueues).
// Errors   Those of the ops, unchanged.

#pragma once

#include "core/model/block_adapter.h"

namespace mr {

// base.out = what magnitudes make of it: base's product with what the adapter adds.
Status scaleByMagnitudes(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const LinearArgs& base);

struct MagnitudeBackward {
    const ProductAdapter& gradients;
    LinearArgs base;    // x and weight
    TensorView gradOut; // (T, out): G
    bool accumulate = false;
};

// The gradients of magnitudes. `scaled` = G k, in scratch that addAdapter() and backwardAdapter()
// leave alone.
Status backwardMagnitudes(const LayerContext& context, const ProductAdapter& adapter,
    const BlockScratch& scratch, const MagnitudeBackward& backward, TensorView& scaled);

} // namespace mr
