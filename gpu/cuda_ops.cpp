#include "gpu/cuda_ops.h"

#include "core/device/op_checks.h"
#include "gpu/ops/launchers.h"
#include "gpu/stream_handle.h"
#include "gpu/trace_range.h"

namespace mr::gpu {

namespace {

class CudaOps final : public Ops
{
public:
    explicit CudaOps(Gemm& gemm)
        : m_gemm(gemm)
    {
    }

    Status embed(const EmbedArgs& args, Stream& stream) override
    {
        MR_TRY(checkEmbed(args));
        const TraceRange range("embed");
        return launchEmbed(args, streamHandle(stream));
    }

    Status embedBackward(const EmbedBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkEmbedBackward(args));
        const TraceRange range("embedBackward");
        return launchEmbedBackward(args, streamHandle(stream));
    }

    Status rmsNorm(const RmsNormArgs& args, Stream& stream) override
    {
        MR_TRY(checkRmsNorm(args));
        const TraceRange range("rmsNorm");
        return launchRmsNorm(args, streamHandle(stream));
    }

    Status rmsNormBackward(const RmsNormBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkRmsNormBackward(args));
        const TraceRange range("rmsNormBackward");
        return launchRmsNormBackward(args, streamHandle(stream));
    }

    Status linear(const LinearArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinear(args));
        const TraceRange range("linear");
        return m_gemm.run(
            {.a = args.x, .b = args.weight, .out = args.out, .bias = args.bias, .transposeB = true},
            streamHandle(stream));
    }

    Status linearBackwardInput(const LinearBackwardInputArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinearBackwardInput(args));
        const TraceRange range("linearBackwardInput");
        return m_gemm.run({.a = args.gradOut, .b = args.weight, .out = args.gradX, .bias = {}},
            streamHandle(stream));
    }

    // Needs no `product`: Gemm adds on the fly.
    Status linearBackwardWeight(const LinearBackwardWeightArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinearBackwardWeight(args));
        const TraceRange range("linearBackwardWeight");
        cudaStream_t handle = streamHandle(stream);
        MR_TRY(m_gemm.run({.a = args.gradOut,
                              .b = args.x,
                              .out = args.gradWeight,
                              .bias = {},
                              .transposeA = true,
                              .accumulate = args.accumulate},
            handle));
        return args.gradBias.data == nullptr ? Status{} : launchBiasGradient(args, handle);
    }

    Status rope(const RopeArgs& args, Stream& stream) override
    {
        MR_TRY(checkRope(args));
        const TraceRange range("rope");
        return launchRope(args, streamHandle(stream));
    }

    Status attention(const AttentionArgs& args, Stream& stream) override
    {
        MR_TRY(checkAttention(args));
        const TraceRange range("attention");
        return launchAttention(args, streamHandle(stream));
    }

    Status attentionBackward(const AttentionBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkAttentionBackward(args));
        const TraceRange range("attentionBackward");
        return launchAttentionBackward(args, streamHandle(stream));
    }

    Status swiglu(const SwigluArgs& args, Stream& stream) override
    {
        MR_TRY(checkSwiglu(args));
        const TraceRange range("swiglu");
        return launchSwiglu(args, streamHandle(stream));
    }

    Status swigluBackward(const SwigluBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkSwigluBackward(args));
        const TraceRange range("swigluBackward");
        return launchSwigluBackward(args, streamHandle(stream));
    }

    Status softcap(const SoftcapArgs& args, Stream& stream) override
    {
        MR_TRY(checkSoftcap(args));
        const TraceRange range("softcap");
        return launchSoftcap(args, streamHandle(stream));
    }

    Status crossEntropy(const CrossEntropyArgs& args, Stream& stream) override
    {
        MR_TRY(checkCrossEntropy(args));
        const TraceRange range("crossEntropy");
        return launchCrossEntropy(args, streamHandle(stream));
    }

    Status sum(const SumArgs& args, Stream& stream) override
    {
        MR_TRY(checkSum(args));
        const TraceRange range("sum");
        return launchSum(args, streamHandle(stream));
    }

    Status add(const AddArgs& args, Stream& stream) override
    {
        MR_TRY(checkAdd(args));
        const TraceRange range("add");
        return launchAdd(args, streamHandle(stream));
    }

    Status accumulate(const AccumulateArgs& args, Stream& stream) override
    {
        MR_TRY(checkAccumulate(args));
        const TraceRange range("accumulate");
        return launchAccumulate(args, streamHandle(stream));
    }

    Status finishGradient(const FinishGradientArgs& args, Stream& stream) override
    {
        MR_TRY(checkFinishGradient(args));
        const TraceRange range("finishGradient");
        return launchFinishGradient(args, streamHandle(stream));
    }

    Status normBlocks(const NormBlocksArgs& args, Stream& stream) override
    {
        MR_TRY(checkNormBlocks(args));
        const TraceRange range("normBlocks");
        return launchNormBlocks(args, streamHandle(stream));
    }

    Status normJoin(const NormJoinArgs& args, Stream& stream) override
    {
        MR_TRY(checkNormJoin(args));
        const TraceRange range("normJoin");
        return launchNormJoin(args, streamHandle(stream));
    }

    Status adamw(const AdamwArgs& args, Stream& stream) override
    {
        MR_TRY(checkAdamw(args));
        const TraceRange range("adamw");
        return launchAdamw(args, streamHandle(stream));
    }

    Status adamwCompact(const AdamwCompactArgs& args, Stream& stream) override
    {
        MR_TRY(checkAdamwCompact(args));
        const TraceRange range("adamwCompact");
        return launchAdamwCompact(args, streamHandle(stream));
    }

    Status join(const JoinArgs& args, Stream& stream) override
    {
        MR_TRY(checkJoin(args));
        const TraceRange range("join");
        return launchJoin(args, streamHandle(stream));
    }

    Status split(const SplitArgs& args, Stream& stream) override
    {
        MR_TRY(checkSplit(args));
        const TraceRange range("split");
        return launchSplit(args, streamHandle(stream));
    }

    Status cast(const CastArgs& args, Stream& stream) override
    {
        MR_TRY(checkCast(args));
        const TraceRange range("cast");
        return launchCast(args, streamHandle(stream));
    }

    Status fill(const FillArgs& args, Stream& stream) override
    {
        MR_TRY(checkFill(args));
        const TraceRange range("fill");
        return launchFill(args, streamHandle(stream));
    }

    Status columnEnergy(const ColumnEnergyArgs& args, Stream& stream) override
    {
        MR_TRY(checkColumnEnergy(args));
        const TraceRange range("columnEnergy");
        return launchColumnEnergy(args, streamHandle(stream));
    }

    Status gatherColumns(const GatherColumnsArgs& args, Stream& stream) override
    {
        MR_TRY(checkGatherColumns(args));
        const TraceRange range("gatherColumns");
        return launchGatherColumns(args, streamHandle(stream));
    }

    Status scatterColumns(const ScatterColumnsArgs& args, Stream& stream) override
    {
        MR_TRY(checkScatterColumns(args));
        const TraceRange range("scatterColumns");
        return launchScatterColumns(args, streamHandle(stream));
    }

private:
    Gemm& m_gemm;
};

} // namespace

std::unique_ptr<Ops> makeCudaOps(Gemm& gemm)
{
    return std::make_unique<CudaOps>(gemm);
}

} // namespace mr::gpu
