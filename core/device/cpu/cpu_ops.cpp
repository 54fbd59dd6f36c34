#include "core/device/cpu/cpu_ops.h"

#include "core/base/parallel.h"
#include "core/device/cpu/cpu_stream.h"
#include "core/device/cpu/ops/attention.h"
#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/matmul.h"
#include "core/device/op_checks.h"

namespace mr {

namespace {

// y = x weight^T + bias
cpu::Product forwardProduct(const LinearArgs& a) noexcept
{
    cpu::Product p;
    p.a = a.x.data;
    p.aRow = a.x.dims[1];
    p.aCol = 1;
    p.b = a.weight.data;
    p.bRow = 1;
    p.bCol = a.weight.dims[1];
    p.c = a.out.data;
    p.bias = a.bias.data;
    p.rows = a.x.dims[0];
    p.cols = a.weight.dims[0];
    p.depth = a.x.dims[1];
    p.type = a.x.dtype;
    p.cType = a.out.dtype;
    return p;
}

// gradX = gradOut weight
cpu::Product inputProduct(const LinearBackwardInputArgs& a) noexcept
{
    cpu::Product p;
    p.a = a.gradOut.data;
    p.aRow = a.gradOut.dims[1];
    p.aCol = 1;
    p.b = a.weight.data;
    p.bRow = a.weight.dims[1];
    p.bCol = 1;
    p.c = a.gradX.data;
    p.rows = a.gradOut.dims[0];
    p.cols = a.weight.dims[1];
    p.depth = a.gradOut.dims[1];
    p.type = a.gradOut.dtype;
    p.cType = a.gradX.dtype;
    return p;
}

// gradWeight (+)= gradOut^T x
cpu::Product weightProduct(const LinearBackwardWeightArgs& a) noexcept
{
    cpu::Product p;
    p.a = a.gradOut.data;
    p.aRow = 1;
    p.aCol = a.gradOut.dims[1];
    p.b = a.x.data;
    p.bRow = a.x.dims[1];
    p.bCol = 1;
    p.c = a.gradWeight.data;
    p.rows = a.gradOut.dims[1];
    p.cols = a.x.dims[1];
    p.depth = a.gradOut.dims[0];
    p.type = a.gradOut.dtype;
    p.cType = a.gradWeight.dtype;
    p.accumulate = a.accumulate;
    return p;
}

// out (+)= scale op(a) op(b)
cpu::Product windowProductOf(const WindowProductArgs& w) noexcept
{
    const auto at = [](const ColumnWindow& window) {
        return window.matrix.data +
               static_cast<std::size_t>(window.first) * sizeOf(window.matrix.dtype);
    };
    const std::int64_t aRow = w.a.matrix.dims[1];
    const std::int64_t bRow = w.b.matrix.dims[1];
    cpu::Product p;
    p.a = at(w.a);
    p.aRow = w.transposeA ? 1 : aRow;
    p.aCol = w.transposeA ? aRow : 1;
    p.b = at(w.b);
    p.bRow = w.transposeB ? 1 : bRow;
    p.bCol = w.transposeB ? bRow : 1;
    p.c = at(w.out);
    p.cRow = w.out.matrix.dims[1];
    p.rows = w.out.matrix.dims[0];
    p.cols = w.out.count;
    p.depth = w.transposeA ? w.a.matrix.dims[0] : w.a.count;
    p.type = w.a.matrix.dtype;
    p.cType = w.out.matrix.dtype;
    p.accumulate = w.accumulate;
    p.factor = w.scale;
    return p;
}

// product = gradOut^T x
cpu::Product productAlone(LinearBackwardWeightArgs a) noexcept
{
    a.gradWeight = a.product;
    a.accumulate = false;
    return weightProduct(a);
}

class CpuOps final : public Ops
{
public:
    explicit CpuOps(ThreadPool& pool)
        : m_pool(pool)
        , m_scratch(pool.threads())
        , m_matmul(pool, m_scratch)
    {
    }

    Status embed(const EmbedArgs& args, Stream& stream) override
    {
        MR_TRY(checkEmbed(args));
        return on(stream).enqueue([this, args] { return cpu::embed(args, m_pool); });
    }

    Status embedBackward(const EmbedBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkEmbedBackward(args));
        return on(stream).enqueue([this, args] { cpu::embedBackward(args, m_pool, m_scratch); });
    }

    Status rmsNorm(const RmsNormArgs& args, Stream& stream) override
    {
        return pooled<checkRmsNorm, cpu::rmsNorm>(args, stream);
    }

    Status rmsNormBackward(const RmsNormBackwardArgs& args, Stream& stream) override
    {
        return pooled<checkRmsNormBackward, cpu::rmsNormBackward>(args, stream);
    }

    Status linear(const LinearArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinear(args));
        return on(stream).enqueue([this, args] { return m_matmul.run(forwardProduct(args)); });
    }

    Status linearBackwardInput(const LinearBackwardInputArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinearBackwardInput(args));
        return on(stream).enqueue([this, args] { return m_matmul.run(inputProduct(args)); });
    }

    Status linearBackwardWeight(const LinearBackwardWeightArgs& args, Stream& stream) override
    {
        MR_TRY(checkLinearBackwardWeight(args));
        return on(stream).enqueue([this, args]() -> Status {
            if (args.gradBias.data)
                cpu::biasGradient({args.gradOut, args.gradBias, args.accumulate}, m_pool);
            if (!args.accumulate || !args.product.data)
                return m_matmul.run(weightProduct(args));
            MR_TRY(m_matmul.run(productAlone(args)));
            cpu::add({args.gradWeight, args.product, args.gradWeight}, m_pool);
            return {};
        });
    }

    Status windowProduct(const WindowProductArgs& args, Stream& stream) override
    {
        MR_TRY(checkWindowProduct(args));
        return on(stream).enqueue([this, args] { return m_matmul.run(windowProductOf(args)); });
    }

    Status adapterNorms(const AdapterNormsArgs& args, Stream& stream) override
    {
        return pooled<checkAdapterNorms, cpu::adapterNorms>(args, stream);
    }

    Status scaleColumns(const ScaleColumnsArgs& args, Stream& stream) override
    {
        return pooled<checkScaleColumns, cpu::scaleColumns>(args, stream);
    }

    Status columnDots(const ColumnDotsArgs& args, Stream& stream) override
    {
        return pooled<checkColumnDots, cpu::columnDots>(args, stream);
    }

    Status biasGradient(const BiasGradientArgs& args, Stream& stream) override
    {
        return pooled<checkBiasGradient, cpu::biasGradient>(args, stream);
    }

    Status encodeInputs(const EncodeInputsArgs& args, Stream& stream) override
    {
        return pooled<checkEncodeInputs, cpu::encodeInputs>(args, stream);
    }

    Status decodeInputs(const DecodeInputsArgs& args, Stream& stream) override
    {
        return pooled<checkDecodeInputs, cpu::decodeInputs>(args, stream);
    }

    Status dequantizeNf4(const DequantizeNf4Args& args, Stream& stream) override
    {
        return pooled<checkDequantizeNf4, cpu::dequantizeNf4>(args, stream);
    }

    Status quantize(const QuantizeArgs& args, Stream& stream) override
    {
        return pooled<checkQuantize, cpu::quantize>(args, stream);
    }

    Status codeProduct(const CodeProductArgs& args, Stream& stream) override
    {
        MR_TRY(checkCodeProduct(args));
        return on(stream).enqueue([this, args] { return m_matmul.runCodes(args); });
    }

    Status rope(const RopeArgs& args, Stream& stream) override
    {
        return pooled<checkRope, cpu::rope>(args, stream);
    }

    Status headNormRope(const HeadNormRopeArgs& args, Stream& stream) override
    {
        return pooled<checkHeadNormRope, cpu::headNormRope>(args, stream);
    }

    Status headNormRopeBackward(const HeadNormRopeBackwardArgs& args, Stream& stream) override
    {
        return pooled<checkHeadNormRopeBackward, cpu::headNormRopeBackward>(args, stream);
    }

    Status attention(const AttentionArgs& args, Stream& stream) override
    {
        MR_TRY(checkAttention(args));
        return on(stream).enqueue([this, args] { cpu::attention(args, m_pool, m_scratch); });
    }

    Status attentionBackward(const AttentionBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkAttentionBackward(args));
        return on(stream).enqueue(
            [this, args] { cpu::attentionBackward(args, m_pool, m_scratch); });
    }

    Status causalConv(const CausalConvArgs& args, Stream& stream) override
    {
        return pooled<checkCausalConv, cpu::causalConv>(args, stream);
    }

    Status causalConvBackward(const CausalConvBackwardArgs& args, Stream& stream) override
    {
        return pooled<checkCausalConvBackward, cpu::causalConvBackward>(args, stream);
    }

    Status gatedDelta(const GatedDeltaArgs& args, Stream& stream) override
    {
        MR_TRY(checkGatedDelta(args));
        return on(stream).enqueue([this, args] { cpu::gatedDelta(args, m_pool, m_scratch); });
    }

    Status gatedDeltaBackward(const GatedDeltaBackwardArgs& args, Stream& stream) override
    {
        MR_TRY(checkGatedDeltaBackward(args));
        return on(stream).enqueue(
            [this, args] { cpu::gatedDeltaBackward(args, m_pool, m_scratch); });
    }

    Status gatedNorm(const GatedNormArgs& args, Stream& stream) override
    {
        return pooled<checkGatedNorm, cpu::gatedNorm>(args, stream);
    }

    Status gatedNormBackward(const GatedNormBackwardArgs& args, Stream& stream) override
    {
        return pooled<checkGatedNormBackward, cpu::gatedNormBackward>(args, stream);
    }

    Status splitQueries(const SplitQueriesArgs& args, Stream& stream) override
    {
        return pooled<checkSplitQueries, cpu::splitQueries>(args, stream);
    }

    Status gateHeads(const GateHeadsArgs& args, Stream& stream) override
    {
        return pooled<checkGateHeads, cpu::gateHeads>(args, stream);
    }

    Status gateHeadsBackward(const GateHeadsBackwardArgs& args, Stream& stream) override
    {
        return pooled<checkGateHeadsBackward, cpu::gateHeadsBackward>(args, stream);
    }

    Status swiglu(const SwigluArgs& args, Stream& stream) override
    {
        return pooled<checkSwiglu, cpu::swiglu>(args, stream);
    }

    Status swigluBackward(const SwigluBackwardArgs& args, Stream& stream) override
    {
        return pooled<checkSwigluBackward, cpu::swigluBackward>(args, stream);
    }

    Status softcap(const SoftcapArgs& args, Stream& stream) override
    {
        return pooled<checkSoftcap, cpu::softcap>(args, stream);
    }

    Status crossEntropy(const CrossEntropyArgs& args, Stream& stream) override
    {
        return pooled<checkCrossEntropy, cpu::crossEntropy>(args, stream);
    }
    Status softmaxPart(const SoftmaxPartArgs& args, Stream& stream) override
    {
        return pooled<checkSoftmaxPart, cpu::softmaxPart>(args, stream);
    }
    Status joinSoftmax(const JoinSoftmaxArgs& args, Stream& stream) override
    {
        return pooled<checkJoinSoftmax, cpu::joinSoftmax>(args, stream);
    }
    Status softmaxGradient(const SoftmaxGradientArgs& args, Stream& stream) override
    {
        return pooled<checkSoftmaxGradient, cpu::softmaxGradient>(args, stream);
    }

    Status sum(const SumArgs& args, Stream& stream) override
    {
        MR_TRY(checkSum(args));
        return on(stream).enqueue([args] { cpu::sumValues(args); });
    }

    Status scale(const ScaleArgs& args, Stream& stream) override
    {
        return pooled<checkScale, cpu::scale>(args, stream);
    }

    Status add(const AddArgs& args, Stream& stream) override
    {
        return pooled<checkAdd, cpu::add>(args, stream);
    }

    Status dropout(const DropoutArgs& args, Stream& stream) override
    {
        return pooled<checkDropout, cpu::dropout>(args, stream);
    }

    Status accumulate(const AccumulateArgs& args, Stream& stream) override
    {
        return pooled<checkAccumulate, cpu::accumulate>(args, stream);
    }

    Status finishGradient(const FinishGradientArgs& args, Stream& stream) override
    {
        return pooled<checkFinishGradient, cpu::finishGradient>(args, stream);
    }

    Status normBlocks(const NormBlocksArgs& args, Stream& stream) override
    {
        return pooled<checkNormBlocks, cpu::normBlocks>(args, stream);
    }

    Status normJoin(const NormJoinArgs& args, Stream& stream) override
    {
        MR_TRY(checkNormJoin(args));
        return on(stream).enqueue([args] { cpu::normJoin(args); });
    }

    Status adamw(const AdamwArgs& args, Stream& stream) override
    {
        return pooled<checkAdamw, cpu::adamw>(args, stream);
    }

    Status adamwCompact(const AdamwCompactArgs& args, Stream& stream) override
    {
        return pooled<checkAdamwCompact, cpu::adamwCompact>(args, stream);
    }

    Status rowSquares(const RowSquaresArgs& args, Stream& stream) override
    {
        return pooled<checkRowSquares, cpu::rowSquares>(args, stream);
    }

    Status columnSquares(const ColumnSquaresArgs& args, Stream& stream) override
    {
        return pooled<checkColumnSquares, cpu::columnSquares>(args, stream);
    }

    Status averageSquares(const AverageSquaresArgs& args, Stream& stream) override
    {
        MR_TRY(checkAverageSquares(args));
        return on(stream).enqueue([args] { cpu::averageSquares(args); });
    }

    Status lightStepSize(const StepSizeArgs& args, Stream& stream) override
    {
        MR_TRY(checkStepSize(args));
        return on(stream).enqueue([args] { cpu::lightStepSize(args); });
    }

    Status projectionSigns(const ProjectionSignsArgs& args, Stream& stream) override
    {
        MR_TRY(checkProjectionSigns(args));
        return on(stream).enqueue([args] { cpu::projectionSigns(args); });
    }

    Status projectGradient(const ProjectGradientArgs& args, Stream& stream) override
    {
        return pooled<checkProjectGradient, cpu::projectGradient>(args, stream);
    }

    Status projectedStep(const ProjectedStepArgs& args, Stream& stream) override
    {
        MR_TRY(checkProjectedStep(args));
        return on(stream).enqueue([args] { cpu::projectedStep(args); });
    }

    Status selectRows(const SelectRowsArgs& args, Stream& stream) override
    {
        MR_TRY(checkSelectRows(args));
        return on(stream).enqueue([args] { cpu::selectRows(args); });
    }

    Status rowAdamw(const RowAdamwArgs& args, Stream& stream) override
    {
        return pooled<checkRowAdamw, cpu::rowAdamw>(args, stream);
    }

    Status lightUpdate(const LightUpdateArgs& args, Stream& stream) override
    {
        return pooled<checkLightUpdate, cpu::lightUpdate>(args, stream);
    }

    Status join(const JoinArgs& args, Stream& stream) override
    {
        return pooled<checkJoin, cpu::join>(args, stream);
    }

    Status split(const SplitArgs& args, Stream& stream) override
    {
        return pooled<checkSplit, cpu::split>(args, stream);
    }

    Status cast(const CastArgs& args, Stream& stream) override
    {
        return pooled<checkCast, cpu::cast>(args, stream);
    }

    Status fill(const FillArgs& args, Stream& stream) override
    {
        return pooled<checkFill, cpu::fill>(args, stream);
    }

    Status columnEnergy(const ColumnEnergyArgs& args, Stream& stream) override
    {
        return pooled<checkColumnEnergy, cpu::columnEnergy>(args, stream);
    }

    Status gatherColumns(const GatherColumnsArgs& args, Stream& stream) override
    {
        return pooled<checkGatherColumns, cpu::gatherColumns>(args, stream);
    }

    Status scatterColumns(const ScatterColumnsArgs& args, Stream& stream) override
    {
        return pooled<checkScatterColumns, cpu::scatterColumns>(args, stream);
    }

    Status copyColumns(const CopyColumnsArgs& args, Stream& stream) override
    {
        return pooled<checkCopyColumns, cpu::copyColumns>(args, stream);
    }

private:
    // Checks the call, and runs the kernel when the stream comes to it.
    template <auto kCheck, auto kKernel, typename Args>
    Status pooled(const Args& args, Stream& stream)
    {
        MR_TRY(kCheck(args));
        return on(stream).enqueue([this, args] { kKernel(args, m_pool); });
    }

    // Every stream a CpuDevice makes is one.
    static CpuStream& on(Stream& stream) noexcept { return static_cast<CpuStream&>(stream); }

    ThreadPool& m_pool;
    cpu::Scratch m_scratch;
    cpu::Matmul m_matmul;
};

} // namespace

std::unique_ptr<Ops> makeCpuOps(ThreadPool& pool)
{
    return std::make_unique<CpuOps>(pool);
}

} // namespace mr
