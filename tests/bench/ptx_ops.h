// The ops of a training step at the shapes of a model.
//
// Matrix products are not among them: the kernels of cuBLASLt have no PTX here.

#pragma once

#include "bench/ptx_models.h"
#include "bench/ptx_rig.h"

#include <millrace/status.h>

#include <span>

namespace mr::bench {

struct CountedOp {
    const char* name; // as in `millrace bench`
    BlockSample sample;
    // Enqueues it once.
    Status (*run)(OpRig& rig, const ModelShape& model);
    bool (*exists)(const ModelShape& model); // null: every model has it
};

// Forward and backward of a block, embedding, a chunk of the head.
std::span<const CountedOp> modelOps();
// Gradients, state and codes of weights.
std::span<const CountedOp> weightOps();
// An adapter beside frozen weights, which may be in 4 bits.
std::span<const CountedOp> adapterOps();
// Layers with a state and gates, at the sizes of one model.
std::span<const CountedOp> recurrentOps();

} // namespace mr::bench
