// The row and element kernels of the CPU device, one function per op of core/device/ops.h; the
// formulas stand there. Arguments were checked.
//
// Threads  Each forks into `pool` over fixed pieces, so bits do not depend on its size.
// Errors   none; those with Scratch may throw std::bad_alloc.

#pragma once

#include "core/base/parallel.h"
#include "core/device/cpu/ops/scratch.h"
#include "core/device/ops.h"

#include <algorithm>

namespace mr::cpu {

// Elements per item of elementwise work: enough to hide the hand-out, a multiple of 1024.
inline constexpr std::int64_t kElementBlock = 16384;

// fn(first, end) over [0, count) in blocks.
template <typename F>
void forBlocks(ThreadPool& pool, std::int64_t count, std::int64_t block, F&& fn)
{
    if (count <= block) { // not worth waking anyone
        if (count > 0)
            fn(std::int64_t{0}, count);
        return;
    }
    pool.parallelFor((count + block - 1) / block,
        [&](std::int64_t index) { fn(index * block, std::min(count, (index + 1) * block)); });
}

// Rows per item, for rows of `cols` elements.
inline std::int64_t rowsPerItem(std::int64_t cols) noexcept
{
    return std::max<std::int64_t>(1, kElementBlock / std::max<std::int64_t>(1, cols));
}

// lookup.cpp
Status embed(const EmbedArgs& args, ThreadPool& pool); // InvalidArgument: an id without a row
void embedBackward(const EmbedBackwardArgs& args, ThreadPool& pool, Scratch& scratch);
void gatherColumns(const GatherColumnsArgs& args, ThreadPool& pool);
void scatterColumns(const ScatterColumnsArgs& args, ThreadPool& pool);

// norm.cpp
void rmsNorm(const RmsNormArgs& args, ThreadPool& pool);
void rmsNormBackward(const RmsNormBackwardArgs& args, ThreadPool& pool);

// head_norm.cpp
void headNormRope(const HeadNormRopeArgs& args, ThreadPool& pool);
void headNormRopeBackward(const HeadNormRopeBackwardArgs& args, ThreadPool& pool);

// activation.cpp
void rope(const RopeArgs& args, ThreadPool& pool);
void scale(const ScaleArgs& args, ThreadPool& pool);
void swiglu(const SwigluArgs& args, ThreadPool& pool);
void swigluBackward(const SwigluBackwardArgs& args, ThreadPool& pool);

// causal_conv.cpp
void causalConv(const CausalConvArgs& args, ThreadPool& pool);
void causalConvBackward(const CausalConvBackwardArgs& args, ThreadPool& pool);

// copy_columns.cpp
void copyColumns(const CopyColumnsArgs& args, ThreadPool& pool);

// gated_delta.cpp
void gatedDelta(const GatedDeltaArgs& args, ThreadPool& pool, Scratch& scratch);

// gated_delta_backward.cpp
void gatedDeltaBackward(const GatedDeltaBackwardArgs& args, ThreadPool& pool, Scratch& scratch);

// gated_heads.cpp
void gatedNorm(const GatedNormArgs& args, ThreadPool& pool);
void gatedNormBackward(const GatedNormBackwardArgs& args, ThreadPool& pool);
void splitQueries(const SplitQueriesArgs& args, ThreadPool& pool);
void gateHeads(const GateHeadsArgs& args, ThreadPool& pool);
void gateHeadsBackward(const GateHeadsBackwardArgs& args, ThreadPool& pool);

// loss.cpp
void softcap(const SoftcapArgs& args, ThreadPool& pool);
void crossEntropy(const CrossEntropyArgs& args, ThreadPool& pool);
void softmaxPart(const SoftmaxPartArgs& args, ThreadPool& pool);
void joinSoftmax(const JoinSoftmaxArgs& args, ThreadPool& pool);
void softmaxGradient(const SoftmaxGradientArgs& args, ThreadPool& pool);
void sumValues(const SumArgs& args);

// elementwise.cpp
void add(const AddArgs& args, ThreadPool& pool);
void dropout(const DropoutArgs& args, ThreadPool& pool);
void accumulate(const AccumulateArgs& args, ThreadPool& pool);
void finishGradient(const FinishGradientArgs& args, ThreadPool& pool);
void adamw(const AdamwArgs& args, ThreadPool& pool);
void adamwCompact(const AdamwCompactArgs& args, ThreadPool& pool);
void join(const JoinArgs& args, ThreadPool& pool);
void split(const SplitArgs& args, ThreadPool& pool);
void cast(const CastArgs& args, ThreadPool& pool);
void fill(const FillArgs& args, ThreadPool& pool);

// reduction.cpp
void normBlocks(const NormBlocksArgs& args, ThreadPool& pool);
void normJoin(const NormJoinArgs& args);
void columnEnergy(const ColumnEnergyArgs& args, ThreadPool& pool);
void biasGradient(const BiasGradientArgs& args, ThreadPool& pool);

// dora.cpp
void adapterNorms(const AdapterNormsArgs& args, ThreadPool& pool);
void scaleColumns(const ScaleColumnsArgs& args, ThreadPool& pool);
void columnDots(const ColumnDotsArgs& args, ThreadPool& pool);

// square_sums.cpp
void rowSquares(const RowSquaresArgs& args, ThreadPool& pool);
void columnSquares(const ColumnSquaresArgs& args, ThreadPool& pool);
void projectGradient(const ProjectGradientArgs& args, ThreadPool& pool);

// light_update.cpp
void averageSquares(const AverageSquaresArgs& args);
void lightStepSize(const StepSizeArgs& args);
void lightUpdate(const LightUpdateArgs& args, ThreadPool& pool);

// chosen_rows.cpp
void selectRows(const SelectRowsArgs& args);
void rowAdamw(const RowAdamwArgs& args, ThreadPool& pool);

// projected_step.cpp
void projectionSigns(const ProjectionSignsArgs& args);
void projectedStep(const ProjectedStepArgs& args);

// input_codes.cpp
void encodeInputs(const EncodeInputsArgs& args, ThreadPool& pool);
void decodeInputs(const DecodeInputsArgs& args, ThreadPool& pool);

// quantize.cpp
void quantize(const QuantizeArgs& args, ThreadPool& pool);
void dequantizeNf4(const DequantizeNf4Args& args, ThreadPool& pool);

} // namespace mr::cpu
