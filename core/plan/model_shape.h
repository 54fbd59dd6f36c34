// Numbers that planning needs of a model, a machine and past steps.
//
// ModelShape is made by core/model (model_shape.cpp there) from a ParamTable; planning itself
// includes nothing of models, devices or files.
//
// Threads  Values.
// Units    Elements and bytes as named; rates per second.

#pragma once

#include "core/base/ids.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mr {

// One weight of a group.
struct WeightShape {
    std::int64_t first = 0; // element in the group
    std::int64_t rows = 0;  // 1-D: one row
    std::int64_t cols = 0;
    bool isVector = false; // 1-D
};

// Bytes of frozen elements [0, element) of a group as they are held: in the compute type, `each`
// bytes an element, or packed, where every part of the range has the same part of the bytes.
constexpr std::size_t frozenBytesBefore(
    std::int64_t element, std::int64_t elements, std::size_t packedBytes, std::size_t each) noexcept
{
    constexpr std::size_t kAlign = 256; // of copies to the device
    if (packedBytes == 0)
        return each * static_cast<std::size_t>(element);
    if (element >= elements)
        return packedBytes;
    const double share = static_cast<double>(element) / static_cast<double>(elements);
    const auto bytes = static_cast<std::size_t>(share * static_cast<double>(packedBytes));
    return bytes / kAlign * kAlign;
}

inline constexpr int kMostBlockKinds = 4; // with times of their own

struct GroupShape {
    std::string name;
    std::int64_t elements = 0;             // trained; padded, as stored
    double forwardFlops = 0.0;             // for one micro-batch
    double backwardFlops = 0.0;            // without recomputation
    std::vector<WeightShape> weights = {}; // ascending; for policies that split by columns
    // Besides `elements`, which are trained: weights that no step changes, in the compute type.
    // They have no gradient, no master and no state.
    std::int64_t frozenElements = 0;
    // Bytes of those where most of them are held in 4 bits; 0: all are in the compute type.
    std::size_t packedBytes = 0;
    int frozenTensors = 1; // they lie in a model's files apart, in any order
    int kind = 0;          // of a block: those of one kind take as long; below kMostBlockKinds

    bool isPacked() const noexcept { return packedBytes > 0; }
    bool isTrained() const noexcept { return elements > 0; }
    // Bytes of these frozen elements, as they are held.
    std::size_t frozenBytes(std::int64_t first, std::int64_t count, std::size_t each) const noexcept
    {
        return frozenBytesBefore(first + count, frozenElements, packedBytes, each) -
               frozenBytesBefore(first, frozenElements, packedBytes, each);
    }
};

// Rows of a part of the head's vocabulary, where its sums are formed in parts
// (MicroShape::headPart).
inline constexpr std::int64_t kHeadPart = 8192;

// The matrices of embedding and head, where these are two and the head's sums are formed in parts,
// so that neither need be on the device whole; rows 0 otherwise.
struct VocabularyShape {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t part = 0;      // rows of a part
    std::int64_t headFirst = 0; // the first element of the head's matrix in its group
};

// StepScalars: the bytes that SendScalars of a group copies.
inline constexpr std::size_t kGroupScalarBytes = 16;

// Sizes that a plan counts: of the model, and of one micro-batch of fixed size.
struct ModelShape {
    std::vector<GroupShape> groups; // embedding, blocks, head: one layer of the traversal each
    // Frozen weights lie in files that a run may read them from for every use: beside an adapter,
    // or where groups take turns. A run that trains layers can go on without the model it began
    // with.
    bool readsFrozen = false;
    // One group is trained at a time. It lies on the device with its state, whatever its home is in
    // other turns.
    bool inTurns = false;
    bool tiedHead = false;                      // the head adds to a second accumulator of group 0
    std::int64_t secondAccumulatorElements = 0; // those of it that are trained; 0 if not tied
    std::size_t boundaryBytes = 0;              // the activation between two layers
    // The input of a block as it waits for backward, in codes of 8 bits; 0: as it is.
    std::size_t keptBoundaryBytes = 0;
    std::size_t savedBytesPerBlock = 0;  // backward reads them, recompute=block recomputes them
    std::size_t remadeBytesPerBlock = 0; // the part of these that recompute=cheap recomputes
    // Gradients inside a block and of the stream, partial sums of norms.
    std::size_t backwardScratchBytes = 0;
    std::size_t headScratchBytes = 0;   // logits chunk, gradient of logits, losses
    std::size_t headInferenceBytes = 0; // without that gradient
    std::size_t headProductBytes = 0;   // fp32 sum of products of the head; 0: none needed
    int headProducts = 1;               // of a micro-batch, for the gradient of the head's matrix
    VocabularyShape vocabulary;
    std::size_t headRowsBytes = 0; // where the head's matrix comes by tiles: of a micro-batch in
                                   // flight, and scratch for all of them
    std::size_t headTileBytes = 0;
    std::size_t batchBytes = 0;      // ids, targets, positions, visibility, order of a micro-batch
    std::size_t sharedBytes = 0;     // of a micro-batch in flight: k and v that blocks share, and
                                     // inputs of blocks beside the stream
    std::size_t constantBytes = 0;   // rope tables
    std::size_t scalarBytes = 0;     // losses, norm blocks, StepScalars of the step and of groups
    std::size_t sentScalarBytes = 0; // the part that SendScalars of the step copies: losses and
                                     // StepScalars

    std::int64_t elements() const noexcept
    {
        std::int64_t n = 0;
        for (const GroupShape& g : groups)
            n += g.elements;
        return n;
    }
    int layers() const noexcept { return static_cast<int>(groups.size()); }
    // Do inputs of blocks wait for backward in codes?
    bool codesInputs() const noexcept { return keptBoundaryBytes > 0; }
    std::size_t keptBytes() const noexcept
    {
        return codesInputs() ? keptBoundaryBytes : boundaryBytes;
    }
    bool hasFrozen() const noexcept
    {
        return std::any_of(groups.begin(), groups.end(),
            [](const GroupShape& group) { return group.frozenElements > 0; });
    }
    // Backward ends with this layer: nothing below it is trained. layers() if nothing is.
    int firstTrained() const noexcept
    {
        const auto first = std::find_if(groups.begin(), groups.end(),
            [](const GroupShape& group) { return group.isTrained(); });
        return static_cast<int>(first - groups.begin());
    }
};

// Bytes a run may use on each tier.
struct Budget {
    std::size_t deviceBytes = 0;
    std::size_t hostBytes = 0;
    std::size_t diskBytes = 0;
};

// Seconds of one micro-batch through one layer. 0: not measured, flops and their rate serve.
struct LayerSeconds {
    double forward = 0.0;
    double backward = 0.0;  // without recomputation
    double recompute = 0.0; // added to backward by recompute=block
    double cheap = 0.0;     // added to backward by recompute=cheap
};

// Measurements of the last step, or the machine's rates before the first. 0: not known.
struct Feedback {
    double hostToDeviceBytesPerSecond = 0.0;
    double deviceToHostBytesPerSecond = 0.0;
    double hostAdamwElementsPerSecond = 0.0;
    double deviceAdamwElementsPerSecond = 0.0;
    double deviceFlopsPerSecond = 0.0;
    double deviceGradientElementsPerSecond = 0.0; // rounding and norm; 0: taken to be free
    double packedElementsPerSecond = 0.0;      // into a slot, in the compute type; 0: as their copy
    double diskReadBytesPerSecond = 0.0;       // while as much is written
    double diskWriteBytesPerSecond = 0.0;      // while as much is read
    double diskReadAloneBytesPerSecond = 0.0;  // while nothing is written; 0: as above
    double diskWriteAloneBytesPerSecond = 0.0; // while nothing is read; 0: as above
    LayerSeconds embedding;
    LayerSeconds block;                                        // of kind 0
    std::array<LayerSeconds, kMostBlockKinds - 1> otherBlocks; // of the kinds from 1 on
    LayerSeconds head; // backward includes its losses, as in a step

    LayerSeconds& blockOf(int kind) noexcept
    {
        return kind == 0 ? block : otherBlocks[static_cast<std::size_t>(kind) - 1];
    }
    // The seconds of kind 0 where the kind was not measured.
    const LayerSeconds& knownBlock(int kind) const noexcept
    {
        if (kind == 0 || otherBlocks[static_cast<std::size_t>(kind) - 1].forward == 0.0)
            return block;
        return otherBlocks[static_cast<std::size_t>(kind) - 1];
    }
    void forgetLayers() noexcept
    {
        embedding = block = head = {};
        otherBlocks = {};
    }
};

} // namespace mr
