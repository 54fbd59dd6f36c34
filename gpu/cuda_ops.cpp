#include "gpu/cuda_ops.h"

#include "core/device/op_checks.h"
#include "gpu/ops/launchers.h"
#include "gpu/stream_handle.h"
#include "gpu/trace_range.h"

#include <utility>

namespace mr::gpu {

namespace {

TensorView viewOf(const ColumnWindow& window) noexcept
{
    TensorView view = window.matrix;
    view.data += static_cast<std::size_t>(window.first) * sizeOf(view.dtype);
    view.dims[1] = window.count;
    return view;
}

class CudaOps final : public Ops
{
public:
    CudaOps(Gemm& gemm, const AttentionChoice& attention, FailureHook onFailure)
        : m_gemm(gemm)
        , m_attention(attention)
        , m_onFailure(std::move(onFailure))
    {
    }

    Status embed(const EmbedArgs& args, Stream& stream) override
    {
        MR_TRY(checkEmbed(args));
        const TraceRange range("embed");
        return noted(launchEmbed(args, streamHandle(stream)));
    }

    Status embedBackward(const EmbedBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkEmbedBackward(args));
        const TraceRange range("embedBackward");
        return noted(launchEmbedBackward(args, streamHandle(stream)));
    }

    Status rmsNorm(const RmsNormArgs& args, Stream& stream) override
    {
        MR_TRY(checkRmsNorm(args));
        const TraceRange range("rmsNorm");
        return noted(launchRmsNorm(args, streamHandle(stream)));
    }

    Status rmsNormBackward(const RmsNormBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkRmsNormBackward(args));
        const TraceRange range("rmsNormBackward");
        return noted(launchRmsNormBackward(args, streamHandle(stream)));
    }

    Status linear(const LinearArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinear(args));
        const TraceRange range("linear");
        return noted(m_gemm.run(
            {.a = args.x, .b = args.weight, .out = args.out, .bias = args.bias, .transposeB = true},
            streamHandle(stream)));
    }

    Status linearBackwardInput(const LinearBackwardInputArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinearBackwardInput(args));
        const TraceRange range("linearBackwardInput");
        return noted(
            m_gemm.run({.a = args.gradOut, .b = args.weight, .out = args.gradX, .bias = {}},
                streamHandle(stream)));
    }

    Status linearBackwardWeight(const LinearBackwardWeightArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinearBackwardWeight(args));
        const TraceRange range("linearBackwardWeight");
        cudaStream_t handle = streamHandle(stream);
        const bool isApart = args.accumulate && args.product.data != nullptr;
        MR_TRY(noted(m_gemm.run({.a = args.gradOut,
                                    .b = args.x,
                                    .out = isApart ? args.product : args.gradWeight,
                                    .bias = {},
                                    .transposeA = true,
                                    .accumulate = args.accumulate && !isApart},
            handle)));
        if (isApart)
            MR_TRY(noted(launchAdd({args.gradWeight, args.product, args.gradWeight}, handle)));
        if (args.gradBias.data == nullptr)
            return {};
        return noted(launchBiasGradient({args.gradOut, args.gradBias, args.accumulate}, handle));
    }

    Status windowProduct(const WindowProductArgs& args, Stream& stream) override
    {
        MR_TRY(checkWindowProduct(args));
        const TraceRange range("windowProduct");
        return noted(m_gemm.run({.a = viewOf(args.a),
                                    .b = viewOf(args.b),
                                    .out = viewOf(args.out),
                                    .bias = {},
                                    .transposeA = args.transposeA,
                                    .transposeB = args.transposeB,
                                    .accumulate = args.accumulate,
                                    .factor = args.scale,
                                    .rowOfA = args.a.matrix.dims[1],
                                    .rowOfB = args.b.matrix.dims[1],
                                    .rowOfOut = args.out.matrix.dims[1]},
            streamHandle(stream)));
    }

    Status adapterNorms(const AdapterNormsArgs& args, Stream& stream) override
    {
        MR_TRY(checkAdapterNorms(args));
        const TraceRange range("adapterNorms");
        return noted(launchAdapterNorms(args, streamHandle(stream)));
    }

    Status scaleColumns(const ScaleColumnsArgs& args, Stream& stream) override
    {
        MR_TRY(checkScaleColumns(args));
        const TraceRange range("scaleColumns");
        return noted(launchScaleColumns(args, streamHandle(stream)));
    }

    Status columnDots(const ColumnDotsArgs& args, Stream& stream) override
    {
        MR_TRY(checkColumnDots(args));
        const TraceRange range("columnDots");
        return noted(launchColumnDots(args, streamHandle(stream)));
    }

    Status biasGradient(const BiasGradientArgs& args, Stream& stream) override
    {
        MR_TRY(checkBiasGradient(args));
        const TraceRange range("biasGradient");
        return noted(launchBiasGradient(args, streamHandle(stream)));
    }

    Status encodeInputs(const EncodeInputsArgs& args, Stream& stream) override
    {
        MR_TRY(checkEncodeInputs(args));
        const TraceRange range("encodeInputs");
        return noted(launchEncodeInputs(args, streamHandle(stream)));
    }

    Status decodeInputs(const DecodeInputsArgs& args, Stream& stream) override
    {
        MR_TRY(checkDecodeInputs(args));
        const TraceRange range("decodeInputs");
        return noted(launchDecodeInputs(args, streamHandle(stream)));
    }

    Status dequantizeNf4(const DequantizeNf4Args& args, Stream& stream) override
    {
        MR_TRY(checkDequantizeNf4(args));
        const TraceRange range("dequantizeNf4");
        return noted(launchDequantizeNf4(args, streamHandle(stream)));
    }

    Status quantize(const QuantizeArgs& args, Stream& stream) override
    {
        MR_TRY(checkQuantize(args));
        const TraceRange range("quantize");
        return noted(launchQuantize(args, streamHandle(stream)));
    }

    Status codeProduct(const CodeProductArgs& args, Stream& stream) override
    {
        MR_TRY(checkCodeProduct(args));
        const TraceRange range("codeProduct");
        return noted(m_gemm.run({.a = args.a,
                                    .b = args.b,
                                    .out = args.out,
                                    .bias = args.bias,
                                    .transposeB = true,
                                    .accumulate = args.accumulate,
                                    .scaleA = args.scaleA.as<const float>(),
                                    .scaleB = args.scaleB.as<const float>()},
            streamHandle(stream)));
    }

    Status rope(const RopeArgs& args, Stream& stream) override
    {
        MR_TRY(checkRope(args));
        const TraceRange range("rope");
        return noted(launchRope(args, streamHandle(stream)));
    }

    Status headNormRope(const HeadNormRopeArgs& args, Stream& stream) override
    {
        MR_TRY(checkHeadNormRope(args));
        const TraceRange range("headNormRope");
        return noted(launchHeadNormRope(args, streamHandle(stream)));
    }

    Status headNormRopeBackward(const HeadNormRopeBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkHeadNormRopeBackward(args));
        const TraceRange range("headNormRopeBackward");
        return noted(launchHeadNormRopeBackward(args, streamHandle(stream)));
    }

    Status attention(const AttentionArgs& args, Stream& stream) override
    {
        MR_TRY(checkAttention(args));
        const TraceRange range("attention");
        return noted(launchAttention(args, m_attention, streamHandle(stream)));
    }

    Status attentionBackward(const AttentionBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkAttentionBackward(args));
        const TraceRange range("attentionBackward");
        return noted(launchAttentionBackward(args, m_attention, streamHandle(stream)));
    }

    Status causalConv(const CausalConvArgs& args, Stream& stream) override
    {
        MR_TRY(checkCausalConv(args));
        const TraceRange range("causalConv");
        return noted(launchCausalConv(args, streamHandle(stream)));
    }

    Status causalConvBackward(const CausalConvBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkCausalConvBackward(args));
        const TraceRange range("causalConvBackward");
        return noted(launchCausalConvBackward(args, streamHandle(stream)));
    }

    Status gatedDelta(const GatedDeltaArgs& args, Stream& stream) override
    {
        MR_TRY(checkGatedDelta(args));
        const TraceRange range("gatedDelta");
        return noted(launchGatedDelta(args, streamHandle(stream)));
    }

    Status gatedDeltaBackward(const GatedDeltaBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkGatedDeltaBackward(args));
        const TraceRange range("gatedDeltaBackward");
        return noted(launchGatedDeltaBackward(args, streamHandle(stream)));
    }

    Status gatedNorm(const GatedNormArgs& args, Stream& stream) override
    {
        MR_TRY(checkGatedNorm(args));
        const TraceRange range("gatedNorm");
        return noted(launchGatedNorm(args, streamHandle(stream)));
    }

    Status gatedNormBackward(const GatedNormBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkGatedNormBackward(args));
        const TraceRange range("gatedNormBackward");
        return noted(launchGatedNormBackward(args, streamHandle(stream)));
    }

    Status splitQueries(const SplitQueriesArgs& args, Stream& stream) override
    {
        MR_TRY(checkSplitQueries(args));
        const TraceRange range("splitQueries");
        return noted(launchSplitQueries(args, streamHandle(stream)));
    }

    Status gateHeads(const GateHeadsArgs& args, Stream& stream) override
    {
        MR_TRY(checkGateHeads(args));
        const TraceRange range("gateHeads");
        return noted(launchGateHeads(args, streamHandle(stream)));
    }

    Status gateHeadsBackward(const GateHeadsBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkGateHeadsBackward(args));
        const TraceRange range("gateHeadsBackward");
        return noted(launchGateHeadsBackward(args, streamHandle(stream)));
    }

    Status swiglu(const SwigluArgs& args, Stream& stream) override
    {
        MR_TRY(checkSwiglu(args));
        const TraceRange range("swiglu");
        return noted(launchSwiglu(args, streamHandle(stream)));
    }

    Status swigluBackward(const SwigluBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkSwigluBackward(args));
        const TraceRange range("swigluBackward");
        return noted(launchSwigluBackward(args, streamHandle(stream)));
    }

    Status softcap(const SoftcapArgs& args, Stream& stream) override
    {
        MR_TRY(checkSoftcap(args));
        const TraceRange range("softcap");
        return noted(launchSoftcap(args, streamHandle(stream)));
    }

    Status crossEntropy(const CrossEntropyArgs& args, Stream& stream) override
    {
        MR_TRY(checkCrossEntropy(args));
        const TraceRange range("crossEntropy");
        return noted(launchCrossEntropy(args, streamHandle(stream)));
    }
    Status softmaxPart(const SoftmaxPartArgs& args, Stream& stream) override
    {
        MR_TRY(checkSoftmaxPart(args));
        const TraceRange range("softmaxPart");
        return noted(launchSoftmaxPart(args, streamHandle(stream)));
    }
    Status joinSoftmax(const JoinSoftmaxArgs& args, Stream& stream) override
    {
        MR_TRY(checkJoinSoftmax(args));
        const TraceRange range("joinSoftmax");
        return noted(launchJoinSoftmax(args, streamHandle(stream)));
    }
    Status softmaxGradient(const SoftmaxGradientArgs& args, Stream& stream) override
    {
        MR_TRY(checkSoftmaxGradient(args));
        const TraceRange range("softmaxGradient");
        return noted(launchSoftmaxGradient(args, streamHandle(stream)));
    }

    Status sum(const SumArgs& args, Stream& stream) override
    {
        MR_TRY(checkSum(args));
        const TraceRange range("sum");
        return noted(launchSum(args, streamHandle(stream)));
    }

    Status scale(const ScaleArgs& args, Stream& stream) override
    {
        MR_TRY(checkScale(args));
        const TraceRange range("scale");
        return noted(launchScale(args, streamHandle(stream)));
    }

    Status add(const AddArgs& args, Stream& stream) override
    {
        MR_TRY(checkAdd(args));
        const TraceRange range("add");
        return noted(launchAdd(args, streamHandle(stream)));
    }

    Status dropout(const DropoutArgs& args, Stream& stream) override
    {
        MR_TRY(checkDropout(args));
        const TraceRange range("dropout");
        return noted(launchDropout(args, streamHandle(stream)));
    }

    Status accumulate(const AccumulateArgs& args, Stream& stream) override
    {
        MR_TRY(checkAccumulate(args));
        const TraceRange range("accumulate");
        return noted(launchAccumulate(args, streamHandle(stream)));
    }

    Status finishGradient(const FinishGradientArgs& args, Stream& stream) override
    {
        MR_TRY(checkFinishGradient(args));
        const TraceRange range("finishGradient");
        return noted(launchFinishGradient(args, streamHandle(stream)));
    }

    Status normBlocks(const NormBlocksArgs& args, Stream& stream) override
    {
        MR_TRY(checkNormBlocks(args));
        const TraceRange range("normBlocks");
        return noted(launchNormBlocks(args, streamHandle(stream)));
    }

    Status normJoin(const NormJoinArgs& args, Stream& stream) override
    {
        MR_TRY(checkNormJoin(args));
        const TraceRange range("normJoin");
        return noted(launchNormJoin(args, streamHandle(stream)));
    }

    Status adamw(const AdamwArgs& args, Stream& stream) override
    {
        MR_TRY(checkAdamw(args));
        const TraceRange range("adamw");
        return noted(launchAdamw(args, streamHandle(stream)));
    }

    Status adamwCompact(const AdamwCompactArgs& args, Stream& stream) override
    {
        MR_TRY(checkAdamwCompact(args));
        const TraceRange range("adamwCompact");
        return noted(launchAdamwCompact(args, streamHandle(stream)));
    }

    Status rowSquares(const RowSquaresArgs& args, Stream& stream) override
    {
        MR_TRY(checkRowSquares(args));
        const TraceRange range("rowSquares");
        return noted(launchRowSquares(args, streamHandle(stream)));
    }

    Status columnSquares(const ColumnSquaresArgs& args, Stream& stream) override
    {
        MR_TRY(checkColumnSquares(args));
        const TraceRange range("columnSquares");
        return noted(launchColumnSquares(args, streamHandle(stream)));
    }

    Status averageSquares(const AverageSquaresArgs& args, Stream& stream) override
    {
        MR_TRY(checkAverageSquares(args));
        const TraceRange range("averageSquares");
        return noted(launchAverageSquares(args, streamHandle(stream)));
    }

    Status lightStepSize(const StepSizeArgs& args, Stream& stream) override
    {
        MR_TRY(checkStepSize(args));
        const TraceRange range("lightStepSize");
        return noted(launchStepSize(args, streamHandle(stream)));
    }

    Status projectionSigns(const ProjectionSignsArgs& args, Stream& stream) override
    {
        MR_TRY(checkProjectionSigns(args));
        const TraceRange range("projectionSigns");
        return noted(launchProjectionSigns(args, streamHandle(stream)));
    }

    Status projectGradient(const ProjectGradientArgs& args, Stream& stream) override
    {
        MR_TRY(checkProjectGradient(args));
        const TraceRange range("projectGradient");
        return noted(launchProjectGradient(args, streamHandle(stream)));
    }

    Status projectedStep(const ProjectedStepArgs& args, Stream& stream) override
    {
        MR_TRY(checkProjectedStep(args));
        const TraceRange range("projectedStep");
        return noted(launchProjectedStep(args, streamHandle(stream)));
    }

    Status selectRows(const SelectRowsArgs& args, Stream& stream) override
    {
        MR_TRY(checkSelectRows(args));
        const TraceRange range("selectRows");
        return noted(launchSelectRows(args, streamHandle(stream)));
    }

    Status rowAdamw(const RowAdamwArgs& args, Stream& stream) override
    {
        MR_TRY(checkRowAdamw(args));
        const TraceRange range("rowAdamw");
        return noted(launchRowAdamw(args, streamHandle(stream)));
    }

    Status lightUpdate(const LightUpdateArgs& args, Stream& stream) override
    {
        MR_TRY(checkLightUpdate(args));
        const TraceRange range("lightUpdate");
        return noted(launchLightUpdate(args, streamHandle(stream)));
    }

    Status join(const JoinArgs& args, Stream& stream) override
    {
        MR_TRY(checkJoin(args));
        const TraceRange range("join");
        return noted(launchJoin(args, streamHandle(stream)));
    }

    Status split(const SplitArgs& args, Stream& stream) override
    {
        MR_TRY(checkSplit(args));
        const TraceRange range("split");
        return noted(launchSplit(args, streamHandle(stream)));
    }

    Status cast(const CastArgs& args, Stream& stream) override
    {
        MR_TRY(checkCast(args));
        const TraceRange range("cast");
        return noted(launchCast(args, streamHandle(stream)));
    }

    Status fill(const FillArgs& args, Stream& stream) override
    {
        MR_TRY(checkFill(args));
        const TraceRange range("fill");
        return noted(launchFill(args, streamHandle(stream)));
    }

    Status columnEnergy(const ColumnEnergyArgs& args, Stream& stream) override
    {
        MR_TRY(checkColumnEnergy(args));
        const TraceRange range("columnEnergy");
        return noted(launchColumnEnergy(args, streamHandle(stream)));
    }

    Status gatherColumns(const GatherColumnsArgs& args, Stream& stream) override
    {
        MR_TRY(checkGatherColumns(args));
        const TraceRange range("gatherColumns");
        return noted(launchGatherColumns(args, streamHandle(stream)));
    }

    Status scatterColumns(const ScatterColumnsArgs& args, Stream& stream) override
    {
        MR_TRY(checkScatterColumns(args));
        const TraceRange range("scatterColumns");
        return noted(launchScatterColumns(args, streamHandle(stream)));
    }

    Status copyColumns(const CopyColumnsArgs& args, Stream& stream) override
    {
        MR_TRY(checkCopyColumns(args));
        const TraceRange range("copyColumns");
        return noted(launchCopyColumns(args, streamHandle(stream)));
    }

private:
    Status noted(Status status) const
    {
        if (!status.ok() && m_onFailure)
            m_onFailure(status);
        return status;
    }

    Gemm& m_gemm;
    AttentionChoice m_attention;
    const FailureHook m_onFailure;
};

} // namespace

std::unique_ptr<Ops> makeCudaOps(
    Gemm& gemm, const AttentionChoice& attention, FailureHook onFailure)
{
    return std::make_unique<CudaOps>(gemm, attention, std::move(onFailure));
}

} // namespace mr::gpu
