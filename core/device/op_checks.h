// Argument checks shared by every backend. Each returns InvalidArgument with the op's name first,
// then the tensor, with its type and shape and those wanted: "linear: weight is F32 (8, 4), want
// F32 (8, 5)". Contents (ids, targets) are not seen here: callers that hold them in host memory use
// checkIds().
//
// Threads  Pure functions; nothing is allocated unless a check fails.

#pragma once

#include "core/device/ops.h"

#include <span>

namespace mr {

// Every id is a row of a table of `rows`, or not below `least` (targets: -1 is none). `what` names
// the ids in the message.
Status checkIds(
    const char* what, std::span<const std::int32_t> ids, std::int64_t rows, std::int32_t least = 0);

Status checkEmbed(const EmbedArgs& args);
Status checkEmbedBackward(const EmbedBackwardArgs& args);
Status checkRmsNorm(const RmsNormArgs& args);
Status checkRmsNormBackward(const RmsNormBackwardArgs& args);
Status checkLinear(const LinearArgs& args);
Status checkLinearBackwardInput(const LinearBackwardInputArgs& args);
Status checkLinearBackwardWeight(const LinearBackwardWeightArgs& args);
Status checkWindowProduct(const WindowProductArgs& a);
Status checkAdapterNorms(const AdapterNormsArgs& args);
Status checkScaleColumns(const ScaleColumnsArgs& args);
Status checkColumnDots(const ColumnDotsArgs& args);
Status checkBiasGradient(const BiasGradientArgs& args);
Status checkQuantize(const QuantizeArgs& args);
Status checkEncodeInputs(const EncodeInputsArgs& args);
Status checkDecodeInputs(const DecodeInputsArgs& args);
Status checkDequantizeNf4(const DequantizeNf4Args& args);
Status checkCodeProduct(const CodeProductArgs& args);
Status checkRope(const RopeArgs& args);
Status checkScale(const ScaleArgs& args);
Status checkHeadNormRope(const HeadNormRopeArgs& args);
Status checkHeadNormRopeBackward(const HeadNormRopeBackwardArgs& args);
Status checkAttention(const AttentionArgs& args);
Status checkAttentionBackward(const AttentionBackwardArgs& args);
Status checkCausalConv(const CausalConvArgs& args);
Status checkCausalConvBackward(const CausalConvBackwardArgs& args);
Status checkGatedDelta(const GatedDeltaArgs& args);
Status checkGatedDeltaBackward(const GatedDeltaBackwardArgs& args);
Status checkGatedNorm(const GatedNormArgs& args);
Status checkGatedNormBackward(const GatedNormBackwardArgs& args);
Status checkSplitQueries(const SplitQueriesArgs& args);
Status checkGateHeads(const GateHeadsArgs& args);
Status checkGateHeadsBackward(const GateHeadsBackwardArgs& args);
Status checkSwiglu(const SwigluArgs& args);
Status checkSwigluBackward(const SwigluBackwardArgs& args);
Status checkSoftcap(const SoftcapArgs& args);
Status checkCrossEntropy(const CrossEntropyArgs& args);
Status checkSoftmaxPart(const SoftmaxPartArgs& args);
Status checkJoinSoftmax(const JoinSoftmaxArgs& args);
Status checkSoftmaxGradient(const SoftmaxGradientArgs& args);
Status checkSum(const SumArgs& args);
Status checkAdd(const AddArgs& args);
Status checkDropout(const DropoutArgs& args);
Status checkAccumulate(const AccumulateArgs& args);
Status checkFinishGradient(const FinishGradientArgs& args);
Status checkNormBlocks(const NormBlocksArgs& args);
Status checkNormJoin(const NormJoinArgs& args);
Status checkAdamw(const AdamwArgs& args);
Status checkAdamwCompact(const AdamwCompactArgs& args);
Status checkRowSquares(const RowSquaresArgs& args);
Status checkColumnSquares(const ColumnSquaresArgs& args);
Status checkAverageSquares(const AverageSquaresArgs& args);
Status checkStepSize(const StepSizeArgs& args);
Status checkProjectionSigns(const ProjectionSignsArgs& args);
Status checkProjectGradient(const ProjectGradientArgs& args);
Status checkProjectedStep(const ProjectedStepArgs& args);
Status checkSelectRows(const SelectRowsArgs& args);
Status checkRowAdamw(const RowAdamwArgs& args);
Status checkLightUpdate(const LightUpdateArgs& args);
Status checkJoin(const JoinArgs& args);
Status checkSplit(const SplitArgs& args);
Status checkCast(const CastArgs& args);
Status checkFill(const FillArgs& args);
Status checkColumnEnergy(const ColumnEnergyArgs& args);
Status checkGatherColumns(const GatherColumnsArgs& args);
Status checkScatterColumns(const ScatterColumnsArgs& args);
Status checkCopyColumns(const CopyColumnsArgs& args);

} // namespace mr
