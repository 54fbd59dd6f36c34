// An adapter in the products of a block (frozen_model.h): what it adds to them, and its gradients.
//
//     forward    H = x A^T           y[rows] += scale H[ranks] B^T      for each module
//     backward   Q[ranks] = scale G[rows] B       dB = scale G[rows]^T H[ranks]
//                dA = Q^T x                       dX += Q A             with G = dL/dy
//
// H is made again in backward: it costs rank / rows of the product.
//
// Dropout  With probability p, forward and dA read d = mask * x / (1 - p) in place of x, and
//          dX += mask * (Q A) / (1 - p). The base's product reads x. A product has one mask, so q,
//          k and v share one, and gate and up: their x is read once. (PEFT draws one a module.)
//
// Order    y has been rounded to the compute type before the adapter is added, which rounds once
//          more; so has dX. H and Q are of the compute type.
// Threads  Engine thread (it enqueues).
// Errors   Those of the ops, unchanged.
// Source   Hu et al., "LoRA", arXiv 2106.09685, section 4.1.

#pragma once

#include "core/device/ops.h"
#include "core/model/frozen_model.h"
#include "core/model/layout.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mr {

struct LayerContext;

// Dropout of the adapters of a block, in one pass of one micro-batch. A mask depends on these and
// on the product alone, so the passes of a micro-batch have the same masks.
struct AdapterDropout {
    double probability = 0.0; // 0: none
    std::uint64_t seed = 0;   // of the run
    std::int64_t step = 0;    // optimizer step
    std::int64_t micro = 0;   // of the step's micro-batches
    std::int64_t group = 0;

    // The mask of a product's input. The element is its place in the micro-batch's (T, in).
    DropoutDraw drawFor(SlotKind product) const noexcept;
};

struct ModuleAdapter {
    TensorView b;         // (rows, rank), c, or its gradient
    TensorView magnitude; // (rows), likewise; data null: no DoRA
    std::int64_t firstRow = 0;
    std::int64_t firstRank = 0;
    float scale = 0.0F;
};

// The adapter of one product, or its gradients. Without modules there is none.
struct ProductAdapter {
    SlotKind product{};
    TensorView a;                         // (ranks, in), c, or its gradient
    std::array<ModuleAdapter, 4> modules; // q, k, v; or the four of a block with a state
    std::size_t count = 0;                // of modules

    std::span<const ModuleAdapter> used() const noexcept { return std::span(modules).first(count); }
    bool hasMagnitudes() const noexcept { return count > 0 && modules[0].magnitude.data; }
};

struct BlockAdapter {
    ProductAdapter qkv;
    ProductAdapter attnOut;
    ProductAdapter gateUp;
    ProductAdapter down;
};

// Views of the adapter of a group, or of its gradients, in the group's trained memory.
BlockAdapter blockAdapter(
    const ParamTable& trained, GroupId group, std::byte* groupData, DType dtype);

// x becomes the input that the adapter reads: itself, or in scratch itself with dropout. Once in a
// pass; addAdapter() and backwardAdapter() take it.
Status dropInput(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, TensorView& x);

// y += what the adapter makes of its input.
Status addAdapter(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const TensorView& input, const TensorView& y);

struct AdapterBackward {
    const ProductAdapter& gradients;
    TensorView gradOut; // (T, out)
    TensorView input;   // (T, in); in scratch, nobody reads it afterwards
    TensorView gradX;   // (T, in): added to
    bool accumulate = false;
};

Status backwardAdapter(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const AdapterBackward& backward);

} // namespace mr
