#include "support/wrapped_device.h"

namespace mr::test {
namespace {

class WrappedStream final : public Stream
{
public:
    WrappedStream(WrappedDevice& device, std::unique_ptr<Stream> inner)
        : m_device(device)
        , m_inner(std::move(inner))
    {
    }

    Stream& inner() noexcept { return *m_inner; }

    std::string_view name() const noexcept override { return m_inner->name(); }

    Status record(Event& event) override
    {
        MR_TRY(m_device.onCall({name(), "record", {}, 0, &event, nullptr}));
        return m_inner->record(event);
    }

    Status waitFor(Event& event) override
    {
        const DeviceCall call{name(), "wait", {}, 0, &event, nullptr};
        MR_TRY(m_device.onCall(call));
        return m_device.leavesOut(call) ? Status() : m_inner->waitFor(event);
    }

    Status waitFor(Gate& gate, std::uint64_t generation) override
    {
        const DeviceCall call{name(), "wait", {}, generation, nullptr, &gate};
        MR_TRY(m_device.onCall(call));
        return m_device.leavesOut(call) ? Status()
                                        : m_inner->waitFor(m_device.innerGate(gate), generation);
    }

    Status copy(std::byte* to, std::span<const std::byte> from) override
    {
        MR_TRY(m_device.onCall({name(), "copy", {}, from.size(), nullptr, nullptr}));
        return m_inner->copy(to, from);
    }

private:
    WrappedDevice& m_device;
    std::unique_ptr<Stream> m_inner;
};

// The ops of the wrapped device expect its own streams.
class WrappedOps final : public Ops
{
public:
    WrappedOps(WrappedDevice& device, Ops& inner)
        : m_device(device)
        , m_inner(inner)
    {
    }

    Status embed(const EmbedArgs& args, Stream& stream) override
    {
        return forward("embed", &Ops::embed, args, stream);
    }

    Status embedBackward(const EmbedBackwardArgs& args, Stream& stream) override
    {
        return forward("embedBackward", &Ops::embedBackward, args, stream);
    }

    Status rmsNorm(const RmsNormArgs& args, Stream& stream) override
    {
        return forward("rmsNorm", &Ops::rmsNorm, args, stream);
    }

    Status rmsNormBackward(const RmsNormBackwardArgs& args, Stream& stream) override
    {
        return forward("rmsNormBackward", &Ops::rmsNormBackward, args, stream);
    }

    Status linear(const LinearArgs& args, Stream& stream) override
    {
        MR_TRY(forward("linear", &Ops::linear, args, stream));
        m_device.onProduct(args);
        return {};
    }

    Status linearBackwardInput(const LinearBackwardInputArgs& args, Stream& stream) override
    {
        MR_TRY(forward("linearBackwardInput", &Ops::linearBackwardInput, args, stream));
        m_device.onProduct(args);
        return {};
    }

    Status linearBackwardWeight(const LinearBackwardWeightArgs& args, Stream& stream) override
    {
        MR_TRY(forward("linearBackwardWeight", &Ops::linearBackwardWeight, args, stream));
        m_device.onProduct(args);
        return {};
    }

    Status windowProduct(const WindowProductArgs& args, Stream& stream) override
    {
        MR_TRY(forward("windowProduct", &Ops::windowProduct, args, stream));
        m_device.onProduct(args);
        return {};
    }

    Status rope(const RopeArgs& args, Stream& stream) override
    {
        return forward("rope", &Ops::rope, args, stream);
    }

    Status headNormRope(const HeadNormRopeArgs& args, Stream& stream) override
    {
        return forward("headNormRope", &Ops::headNormRope, args, stream);
    }

    Status headNormRopeBackward(const HeadNormRopeBackwardArgs& args, Stream& stream) override
    {
        return forward("headNormRopeBackward", &Ops::headNormRopeBackward, args, stream);
    }

    Status attention(const AttentionArgs& args, Stream& stream) override
    {
        return forward("attention", &Ops::attention, args, stream);
    }

    Status attentionBackward(const AttentionBackwardArgs& args, Stream& stream) override
    {
        return forward("attentionBackward", &Ops::attentionBackward, args, stream);
    }

    Status causalConv(const CausalConvArgs& args, Stream& stream) override
    {
        return forward("causalConv", &Ops::causalConv, args, stream);
    }

    Status causalConvBackward(const CausalConvBackwardArgs& args, Stream& stream) override
    {
        return forward("causalConvBackward", &Ops::causalConvBackward, args, stream);
    }

    Status gatedDelta(const GatedDeltaArgs& args, Stream& stream) override
    {
        return forward("gatedDelta", &Ops::gatedDelta, args, stream);
    }

    Status gatedDeltaBackward(const GatedDeltaBackwardArgs& args, Stream& stream) override
    {
        return forward("gatedDeltaBackward", &Ops::gatedDeltaBackward, args, stream);
    }

    Status gatedNorm(const GatedNormArgs& args, Stream& stream) override
    {
        return forward("gatedNorm", &Ops::gatedNorm, args, stream);
    }

    Status gatedNormBackward(const GatedNormBackwardArgs& args, Stream& stream) override
    {
        return forward("gatedNormBackward", &Ops::gatedNormBackward, args, stream);
    }

    Status splitQueries(const SplitQueriesArgs& args, Stream& stream) override
    {
        return forward("splitQueries", &Ops::splitQueries, args, stream);
    }

    Status gateHeads(const GateHeadsArgs& args, Stream& stream) override
    {
        return forward("gateHeads", &Ops::gateHeads, args, stream);
    }

    Status gateHeadsBackward(const GateHeadsBackwardArgs& args, Stream& stream) override
    {
        return forward("gateHeadsBackward", &Ops::gateHeadsBackward, args, stream);
    }

    Status swiglu(const SwigluArgs& args, Stream& stream) override
    {
        return forward("swiglu", &Ops::swiglu, args, stream);
    }

    Status swigluBackward(const SwigluBackwardArgs& args, Stream& stream) override
    {
        return forward("swigluBackward", &Ops::swigluBackward, args, stream);
    }

    Status softcap(const SoftcapArgs& args, Stream& stream) override
    {
        return forward("softcap", &Ops::softcap, args, stream);
    }

    Status crossEntropy(const CrossEntropyArgs& args, Stream& stream) override
    {
        return forward("crossEntropy", &Ops::crossEntropy, args, stream);
    }
    Status softmaxPart(const SoftmaxPartArgs& args, Stream& stream) override
    {
        return forward("softmaxPart", &Ops::softmaxPart, args, stream);
    }
    Status joinSoftmax(const JoinSoftmaxArgs& args, Stream& stream) override
    {
        return forward("joinSoftmax", &Ops::joinSoftmax, args, stream);
    }
    Status softmaxGradient(const SoftmaxGradientArgs& args, Stream& stream) override
    {
        return forward("softmaxGradient", &Ops::softmaxGradient, args, stream);
    }

    Status sum(const SumArgs& args, Stream& stream) override
    {
        return forward("sum", &Ops::sum, args, stream);
    }

    Status scale(const ScaleArgs& args, Stream& stream) override
    {
        return forward("scale", &Ops::scale, args, stream);
    }

    Status add(const AddArgs& args, Stream& stream) override
    {
        return forward("add", &Ops::add, args, stream);
    }

    Status dropout(const DropoutArgs& args, Stream& stream) override
    {
        return forward("dropout", &Ops::dropout, args, stream);
    }

    Status accumulate(const AccumulateArgs& args, Stream& stream) override
    {
        return forward("accumulate", &Ops::accumulate, args, stream);
    }

    Status finishGradient(const FinishGradientArgs& args, Stream& stream) override
    {
        return forward("finishGradient", &Ops::finishGradient, args, stream);
    }

    Status normBlocks(const NormBlocksArgs& args, Stream& stream) override
    {
        return forward("normBlocks", &Ops::normBlocks, args, stream);
    }

    Status normJoin(const NormJoinArgs& args, Stream& stream) override
    {
        return forward("normJoin", &Ops::normJoin, args, stream);
    }

    Status adamw(const AdamwArgs& args, Stream& stream) override
    {
        return forward("adamw", &Ops::adamw, args, stream);
    }

    Status adamwCompact(const AdamwCompactArgs& args, Stream& stream) override
    {
        return forward("adamwCompact", &Ops::adamwCompact, args, stream);
    }

    Status rowSquares(const RowSquaresArgs& args, Stream& stream) override
    {
        return forward("rowSquares", &Ops::rowSquares, args, stream);
    }

    Status columnSquares(const ColumnSquaresArgs& args, Stream& stream) override
    {
        return forward("columnSquares", &Ops::columnSquares, args, stream);
    }

    Status averageSquares(const AverageSquaresArgs& args, Stream& stream) override
    {
        return forward("averageSquares", &Ops::averageSquares, args, stream);
    }

    Status lightStepSize(const StepSizeArgs& args, Stream& stream) override
    {
        return forward("lightStepSize", &Ops::lightStepSize, args, stream);
    }

    Status projectionSigns(const ProjectionSignsArgs& args, Stream& stream) override
    {
        return forward("projectionSigns", &Ops::projectionSigns, args, stream);
    }

    Status projectGradient(const ProjectGradientArgs& args, Stream& stream) override
    {
        return forward("projectGradient", &Ops::projectGradient, args, stream);
    }

    Status projectedStep(const ProjectedStepArgs& args, Stream& stream) override
    {
        return forward("projectedStep", &Ops::projectedStep, args, stream);
    }

    Status selectRows(const SelectRowsArgs& args, Stream& stream) override
    {
        return forward("selectRows", &Ops::selectRows, args, stream);
    }

    Status rowAdamw(const RowAdamwArgs& args, Stream& stream) override
    {
        return forward("rowAdamw", &Ops::rowAdamw, args, stream);
    }

    Status lightUpdate(const LightUpdateArgs& args, Stream& stream) override
    {
        return forward("lightUpdate", &Ops::lightUpdate, args, stream);
    }

    Status join(const JoinArgs& args, Stream& stream) override
    {
        return forward("join", &Ops::join, args, stream);
    }

    Status split(const SplitArgs& args, Stream& stream) override
    {
        return forward("split", &Ops::split, args, stream);
    }

    Status cast(const CastArgs& args, Stream& stream) override
    {
        return forward("cast", &Ops::cast, args, stream);
    }

    Status fill(const FillArgs& args, Stream& stream) override
    {
        return forward("fill", &Ops::fill, args, stream);
    }

    Status columnEnergy(const ColumnEnergyArgs& args, Stream& stream) override
    {
        return forward("columnEnergy", &Ops::columnEnergy, args, stream);
    }

    Status gatherColumns(const GatherColumnsArgs& args, Stream& stream) override
    {
        return forward("gatherColumns", &Ops::gatherColumns, args, stream);
    }

    Status adapterNorms(const AdapterNormsArgs& args, Stream& stream) override
    {
        return forward("adapterNorms", &Ops::adapterNorms, args, stream);
    }

    Status scaleColumns(const ScaleColumnsArgs& args, Stream& stream) override
    {
        return forward("scaleColumns", &Ops::scaleColumns, args, stream);
    }

    Status columnDots(const ColumnDotsArgs& args, Stream& stream) override
    {
        return forward("columnDots", &Ops::columnDots, args, stream);
    }

    Status biasGradient(const BiasGradientArgs& args, Stream& stream) override
    {
        return forward("biasGradient", &Ops::biasGradient, args, stream);
    }

    Status encodeInputs(const EncodeInputsArgs& args, Stream& stream) override
    {
        return forward("encodeInputs", &Ops::encodeInputs, args, stream);
    }

    Status decodeInputs(const DecodeInputsArgs& args, Stream& stream) override
    {
        return forward("decodeInputs", &Ops::decodeInputs, args, stream);
    }

    Status dequantizeNf4(const DequantizeNf4Args& args, Stream& stream) override
    {
        return forward("dequantizeNf4", &Ops::dequantizeNf4, args, stream);
    }

    Status quantize(const QuantizeArgs& args, Stream& stream) override
    {
        return forward("quantize", &Ops::quantize, args, stream);
    }

    Status codeProduct(const CodeProductArgs& args, Stream& stream) override
    {
        MR_TRY(forward("codeProduct", &Ops::codeProduct, args, stream));
        m_device.onProduct(args);
        return {};
    }

    Status scatterColumns(const ScatterColumnsArgs& args, Stream& stream) override
    {
        return forward("scatterColumns", &Ops::scatterColumns, args, stream);
    }

    Status copyColumns(const CopyColumnsArgs& args, Stream& stream) override
    {
        return forward("copyColumns", &Ops::copyColumns, args, stream);
    }

private:
    template <typename Args>
    Status forward(std::string_view name, Status (Ops::*op)(const Args&, Stream&), const Args& args,
        Stream& stream)
    {
        auto& wrapped = static_cast<WrappedStream&>(stream);
        MR_TRY(m_device.onCall({wrapped.name(), name, {}, 0, nullptr, nullptr}));
        return (m_inner.*op)(args, wrapped.inner());
    }

    WrappedDevice& m_device;
    Ops& m_inner;
};

} // namespace

WrappedDevice::WrappedDevice(Device& inner)
    : m_inner(inner)
    , m_ops(std::make_unique<WrappedOps>(*this, inner.ops()))
{
}

WrappedDevice::~WrappedDevice() = default;

Ops& WrappedDevice::ops() noexcept
{
    return *m_ops;
}

Result<Buffer> WrappedDevice::allocate(std::size_t bytes, MemoryKind kind, std::string_view tag)
{
    MR_TRY(onCall({{}, "allocate", tag, bytes, nullptr, nullptr}));
    return m_inner.allocate(bytes, kind, tag);
}

Result<std::unique_ptr<Stream>> WrappedDevice::createStream(std::string_view name)
{
    MR_TRY(onCall({{}, "create stream", name, 0, nullptr, nullptr}));
    auto stream = m_inner.createStream(name);
    if (!stream.ok())
        return stream;
    return std::unique_ptr<Stream>(new WrappedStream(*this, std::move(stream).value()));
}

Result<std::unique_ptr<Event>> WrappedDevice::createEvent()
{
    MR_TRY(onCall({{}, "create event", {}, 0, nullptr, nullptr}));
    auto event = m_inner.createEvent();
    if (event.ok())
        onEvent(*event.value());
    return event;
}

Result<std::unique_ptr<Gate>> WrappedDevice::createGate(std::string_view name)
{
    MR_TRY(onCall({{}, "create gate", name, 0, nullptr, nullptr}));
    auto gate = m_inner.createGate(name);
    if (gate.ok())
        onGate(*gate.value(), name);
    return gate;
}

void WrappedDevice::submit() noexcept
{
    // Cannot fail, so the hook's status is dropped.
    (void)onCall({{}, "submit", {}, 0, nullptr, nullptr}).ok();
    m_inner.submit();
}

Status RecordingDevice::onCall(const DeviceCall& call)
{
    std::string line;
    if (!call.stream.empty())
        line = std::string(call.stream) + ": ";
    line += call.what;
    if (call.event)
        line += " " + m_events[call.event];
    if (call.gate)
        line += " " + m_gates[call.gate] + " " + std::to_string(call.number);
    if (call.what == "allocate" || call.what == "copy")
        line += " " + std::to_string(call.number) + " bytes";
    if (!call.tag.empty())
        line += (call.what == "allocate" ? " of " : " ") + std::string(call.tag);
    m_lines.push_back(std::move(line));
    return {};
}

void RecordingDevice::onEvent(const Event& event)
{
    m_events[&event] = std::string(1, 'e').append(std::to_string(m_events.size()));
}

void RecordingDevice::onGate(const Gate& gate, std::string_view name)
{
    m_gates[&gate] = name;
}

Status CountingDevice::onCall(const DeviceCall& call)
{
    if (call.what == "allocate")
        ++m_allocations;
    else if (!call.stream.empty())
        ++m_enqueued;
    return {};
}

Status FailingDevice::onCall(const DeviceCall& call)
{
    if (call.what == "submit" || ++m_calls != m_failingCall)
        return {};
    return Status::error(m_kind, "refused on purpose: " + std::string(call.what));
}

} // namespace mr::test
