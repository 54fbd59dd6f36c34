// CUDA form of every op of core/device/ops.h that is not a matrix product. That header defines the
// result, shapes and order of operations of each; the file ops/<family>.cu has the kernel.
//
// Each enqueues its kernels on `stream`, copies nothing, needs no memory beyond its arguments.
// Arguments were checked by op_checks (CudaOps does); an empty tensor enqueues nothing.
//
// Threads  Engine thread.
// Errors   Those of launchKernel().

#pragma once

#include "core/device/ops.h"
#include "gpu/ops/attention_choice.h"

#include <cuda_runtime_api.h>

namespace mr::gpu {

// lookup.cu
Status launchEmbed(const EmbedArgs& args, cudaStream_t stream);
Status launchEmbedBackward(const EmbedBackwardArgs& args, cudaStream_t stream);

// rms_norm.cu, rms_norm_backward.cu
Status launchRmsNorm(const RmsNormArgs& args, cudaStream_t stream);
Status launchRmsNormBackward(const RmsNormBackwardArgs& args, cudaStream_t stream);

// bias_gradient.cu, also the gradBias half of linearBackwardWeight
Status launchBiasGradient(const BiasGradientArgs& args, cudaStream_t stream);

// dequantize_nf4.cu
Status launchDequantizeNf4(const DequantizeNf4Args& args, cudaStream_t stream);

// input_codes.cu
Status launchEncodeInputs(const EncodeInputsArgs& args, cudaStream_t stream);
Status launchDecodeInputs(const DecodeInputsArgs& args, cudaStream_t stream);

// quantize.cu
Status launchQuantize(const QuantizeArgs& args, cudaStream_t stream);

// rope.cu
Status launchRope(const RopeArgs& args, cudaStream_t stream);

// head_norm_rope.cu, head_norm_rope_backward.cu
Status launchHeadNormRope(const HeadNormRopeArgs& args, cudaStream_t stream);
Status launchHeadNormRopeBackward(const HeadNormRopeBackwardArgs& args, cudaStream_t stream);

// attention.cu chooses; attention_fma.cu takes every head_dim and both types,
// attention_mma_forward.cu and attention_mma_backward.cu BF16 and the usual ones
Status launchAttention(const AttentionArgs& args, AttentionChoice& choice, cudaStream_t stream);
Status launchAttentionBackward(
    const AttentionBackwardArgs& args, AttentionChoice& choice, cudaStream_t stream);

// causal_conv.cu
Status launchCausalConv(const CausalConvArgs& args, cudaStream_t stream);
Status launchCausalConvBackward(const CausalConvBackwardArgs& args, cudaStream_t stream);

// copy_columns.cu
Status launchCopyColumns(const CopyColumnsArgs& args, cudaStream_t stream);

// gated_delta.cu, gated_delta_pairs.cu
Status launchGatedDelta(const GatedDeltaArgs& args, cudaStream_t stream);

// gated_delta_backward.cu, with gated_delta_{pairs,states,chunks}.cu
Status launchGatedDeltaBackward(const GatedDeltaBackwardArgs& args, cudaStream_t stream);

// gated_norm.cu
Status launchGatedNorm(const GatedNormArgs& args, cudaStream_t stream);
Status launchGatedNormBackward(const GatedNormBackwardArgs& args, cudaStream_t stream);

// gate_heads.cu
Status launchSplitQueries(const SplitQueriesArgs& args, cudaStream_t stream);
Status launchGateHeads(const GateHeadsArgs& args, cudaStream_t stream);
Status launchGateHeadsBackward(const GateHeadsBackwardArgs& args, cudaStream_t stream);

// swiglu.cu
Status launchSwiglu(const SwigluArgs& args, cudaStream_t stream);
Status launchSwigluBackward(const SwigluBackwardArgs& args, cudaStream_t stream);

// softcap.cu
Status launchSoftcap(const SoftcapArgs& args, cudaStream_t stream);

// cross_entropy.cu
Status launchCrossEntropy(const CrossEntropyArgs& args, cudaStream_t stream);
Status launchSoftmaxPart(const SoftmaxPartArgs& args, cudaStream_t stream);
Status launchJoinSoftmax(const JoinSoftmaxArgs& args, cudaStream_t stream);
Status launchSoftmaxGradient(const SoftmaxGradientArgs& args, cudaStream_t stream);

// reductions.cu
Status launchSum(const SumArgs& args, cudaStream_t stream);
Status launchNormBlocks(const NormBlocksArgs& args, cudaStream_t stream);
Status launchNormJoin(const NormJoinArgs& args, cudaStream_t stream);

// adapter_norms.cu
Status launchAdapterNorms(const AdapterNormsArgs& args, cudaStream_t stream);

// scale_columns.cu
Status launchScaleColumns(const ScaleColumnsArgs& args, cudaStream_t stream);

// column_dots.cu
Status launchColumnDots(const ColumnDotsArgs& args, cudaStream_t stream);

// dropout.cu
Status launchDropout(const DropoutArgs& args, cudaStream_t stream);

// elementwise.cu
Status launchAdd(const AddArgs& args, cudaStream_t stream);
Status launchScale(const ScaleArgs& args, cudaStream_t stream);
Status launchFinishGradient(const FinishGradientArgs& args, cudaStream_t stream);
Status launchJoin(const JoinArgs& args, cudaStream_t stream);
Status launchSplit(const SplitArgs& args, cudaStream_t stream);
Status launchCast(const CastArgs& args, cudaStream_t stream);
Status launchFill(const FillArgs& args, cudaStream_t stream);

// accumulate.cu
Status launchAccumulate(const AccumulateArgs& args, cudaStream_t stream);

// adamw.cu
Status launchAdamw(const AdamwArgs& args, cudaStream_t stream);

// adamw_compact.cu
Status launchAdamwCompact(const AdamwCompactArgs& args, cudaStream_t stream);

// square_sums.cu
Status launchRowSquares(const RowSquaresArgs& args, cudaStream_t stream);
Status launchColumnSquares(const ColumnSquaresArgs& args, cudaStream_t stream);

// light_update.cu
Status launchAverageSquares(const AverageSquaresArgs& args, cudaStream_t stream);
Status launchStepSize(const StepSizeArgs& args, cudaStream_t stream);
Status launchProjectionSigns(const ProjectionSignsArgs& args, cudaStream_t stream);
Status launchProjectGradient(const ProjectGradientArgs& args, cudaStream_t stream);
Status launchProjectedStep(const ProjectedStepArgs& args, cudaStream_t stream);
Status launchLightUpdate(const LightUpdateArgs& args, cudaStream_t stream);

// chosen_rows.cu
Status launchSelectRows(const SelectRowsArgs& args, cudaStream_t stream);
Status launchRowAdamw(const RowAdamwArgs& args, cudaStream_t stream);

// columns.cu
Status launchColumnEnergy(const ColumnEnergyArgs& args, cudaStream_t stream);
Status launchGatherColumns(const GatherColumnsArgs& args, cudaStream_t stream);
Status launchScatterColumns(const ScatterColumnsArgs& args, cudaStream_t stream);

} // namespace mr::gpu
