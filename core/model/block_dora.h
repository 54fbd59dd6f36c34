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
// Dropout  The product of the model reads x, the change reads d (block_adapter.h), as in PEFT:
//
//     forward    y = x W^T + bias + (k - 1) d W^T + k scale d A^T B^T
//     backward   dm = column sums of G (d V^T), over n
//                dX = G W + mask ((k - 1) G W + Q A) / (1 - p)
//                A and B as without dropout, with d in place of x
//
//          That is a product of the model more in each pass.
// Order    y has been rounded to the compute type, with bias and adapter, before it is scaled. With
//          dropout each of its three parts is rounded before it is added.
// Threads  Engine thread (it enqueues).
// Errors   Those of the ops, unchanged.

#pragma once

#include "core/model/block_adapter.h"

namespace mr {

// base.out = the product of base.x as the adapter changes it; it holds that of the model alone.
// Precondition: the adapter has magnitudes.
Status addDora(const LayerContext& context, const ProductAdapter& adapter,
    const BlockScratch& scratch, const LinearArgs& base);

struct DoraBackward {
    const ProductAdapter& gradients;
    TensorView x;       // (T, in)
    TensorView weight;  // (out, in), of the model
    TensorView gradOut; // (T, out): G
    TensorView gradX;   // (T, in): overwritten
    bool accumulate = false;
};

// The gradients of the product and of its adapter.
Status backwardDora(const LayerContext& context, const ProductAdapter& adapter,
    const BlockScratch& scratch, const DoraBackward& backward);

} // namespace mr
