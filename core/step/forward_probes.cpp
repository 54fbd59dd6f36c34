#include "core/step/forward_probes.h"

#include "core/device/light_update.h"
#include "core/model/layout.h"
#include "core/plan/optimizer.h"
#include "core/step/draw_counters.h"
#include "core/step/state_places.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace mr {

namespace {

using P = ProbeLayout;

static_assert(sizeof(StepScalars) <= P::kEach * sizeof(float));

constexpr float kStep = 1e-3F; // eps

} // namespace

ForwardProbes::ForwardProbes(Device& device, const RunMemory& memory, const ParamTable& table)
    : m_device(device)
    , m_memory(memory)
{
    std::uint64_t number = 0;
    std::uint64_t chunk = 0;
    for (const ParamGroup& from : table.groups) {
        std::vector<Weight>& group = m_groups.emplace_back();
        const std::vector<WeightShape> shapes = weightShapes(from);
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            group.push_back({shapes[i], from.paramSlots[i].decayed, number++, chunk});
            chunk += static_cast<std::uint64_t>((group.back().count() + P::kChunk - 1) / P::kChunk);
        }
    }
}

TensorView ForwardProbes::scratch(std::int64_t first, std::int64_t count) const
{
    return vectorView(m_memory.updateScratch + static_cast<std::size_t>(first) * sizeof(float),
        DType::F32, count);
}

Status ForwardProbes::fill(std::int64_t place, std::int64_t count, float value, Stream& stream)
{
    return m_device.ops().fill({scratch(place, count), value}, stream);
}

// StepScalars that scale by the factor, and are finite.
Status ForwardProbes::scaled(std::int64_t place, float factor, Stream& stream)
{
    const TensorView to = scratch(place, P::kEach);
    MR_TRY(stream.copy(to.data, {scratch(P::kPlain, 1).data, sizeof(StepScalars)}));
    return m_device.ops().fill(
        {vectorView(to.data + offsetof(StepScalars, clipFactor), DType::F32, 1), factor}, stream);
}

// Constants of the step, on the device.
Status ForwardProbes::begin(const StepInputs& inputs, Stream& stream)
{
    if (m_memory.head.rows.losses.count() > P::kTokens ||
        static_cast<std::int64_t>(inputs.micros.size()) > P::kMicros)
        return Status::error(ErrorKind::InvalidArgument,
            "optimizer mezo: a micro-batch has at most " + std::to_string(P::kTokens) +
                " tokens, and a step " + std::to_string(P::kMicros) + " micro-batches");
    MR_TRY(fill(P::kZero, 1, 0.0F, stream));
    const TensorView zero = scratch(P::kZero, 1);
    const TensorView plain = vectorView(scratch(P::kPlain, 1).data, DType::U8, sizeof(StepScalars));
    MR_TRY(m_device.ops().normJoin({zero, m_memory.scalars.chunksFor(zero), plain, 0.0}, stream));
    MR_TRY(scaled(P::kOfLosses, inputs.lossScale / (2.0F * kStep), stream));
    MR_TRY(scaled(P::kOfRate, inputs.light.rate, stream));
    MR_TRY(fill(P::kPair, 1, 1.0F, stream));
    MR_TRY(fill(P::kPair + 1, 1, -1.0F, stream));
    MR_TRY(fill(P::kSteps, 1, -kStep, stream));
    return fill(P::kSteps + 1, 1, kStep, stream);
}

Status ForwardProbes::drawSigns(const Weight& weight, std::int64_t chunk, std::int64_t count,
    const StepInputs& inputs, Stream& stream)
{
    return m_device.ops().projectionSigns(
        {scratch(P::kSigns, count), inputs.seed,
            signCounter(inputs.light.update, weight.chunk + static_cast<std::uint64_t>(chunk))},
        stream);
}

Status ForwardProbes::move(const Task& task, const StepInputs& inputs, Stream& stream)
{
    if (m_moved == task.group)
        return {};
    if (m_moved.value < 0)
        MR_TRY(begin(inputs, stream));
    m_moved = task.group;
    for (const Weight& weight : weightsOf(task)) {
        for (std::int64_t first = 0; first < weight.count(); first += P::kChunk) {
            const std::int64_t count = std::min(P::kChunk, weight.count() - first);
            MR_TRY(drawSigns(weight, first / P::kChunk, count, inputs, stream));
            for (const int copy : {0, 1})
                MR_TRY(moveChunk(task, weight.shape.first + first, count, copy, stream));
        }
    }
    return {};
}

// The copy is a master of its own, which begins at the weights in the compute type.
Status ForwardProbes::moveChunk(
    const Task& task, std::int64_t first, std::int64_t count, int copy, Stream& stream)
{
    const DType type = m_memory.compute();
    const auto at = static_cast<std::size_t>(first) * sizeOf(type);
    const TensorView from = vectorView(m_memory.weightBytes(task) + at, type, count);
    const TensorView to = vectorView(m_memory.movedWeights(task.group, copy) + at, type, count);
    const bool isF32 = type == DType::F32;
    LightUpdateArgs step;
    step.high = vectorView(isF32 ? scratch(P::kHigh, 1).data : to.data, DType::U16, count);
    step.low = vectorView(scratch(P::kLow, 1).data, DType::I16, count);
    step.grad = scratch(P::kSigns, count);
    step.size = scratch(P::kSteps + copy, 1);
    step.scalars = vectorView(scratch(P::kPlain, 1).data, DType::U8, sizeof(StepScalars));
    step.cols = count;
    step.decayed = false;
    if (isF32) {
        MR_TRY(m_device.ops().split({from, step.high, step.low}, stream));
    } else {
        MR_TRY(stream.copy(to.data, {from.data, from.bytes()}));
        MR_TRY(fill(P::kLow, (count + 1) / 2, 0.0F, stream));
    }
    MR_TRY(m_device.ops().lightUpdate(step, stream));
    return isF32 ? m_device.ops().join({step.high, step.low, to}, stream) : Status();
}

// Token by token, because the sums of both copies differ little.
Status ForwardProbes::keepLosses(const Task& task, int copy, Stream& stream)
{
    const TensorView losses = m_memory.head.rows.losses;
    const std::int64_t tokens = losses.count();
    const std::int64_t first = P::kSigns;
    const std::int64_t each = (tokens + P::kEach - 1) / P::kEach * P::kEach;
    const TensorView own = scratch(first + copy * tokens, tokens);
    MR_TRY(stream.copy(own.data, {losses.data, losses.bytes()}));
    if (copy == 0)
        return {};
    const auto view = [&](std::int64_t place, std::int64_t rows, std::int64_t cols) {
        return matrixView(scratch(place, 1).data, DType::F32, rows, cols);
    };
    const auto scalars = [&](std::int64_t place) {
        return vectorView(scratch(place, 1).data, DType::U8, sizeof(StepScalars));
    };
    const TensorView apart = scratch(first + 2 * each, tokens);
    const TensorView ones = scratch(first + 3 * each, tokens);
    MR_TRY(m_device.ops().fill({ones, 1.0F}, stream));
    MR_TRY(m_device.ops().projectGradient(
        {view(first, 2, tokens), scratch(P::kPair, 2), scalars(P::kOfLosses),
            view(first + 4 * each, 1, tokens), apart, true},
        stream));
    return m_device.ops().projectGradient(
        {view(first + 2 * each, 1, tokens), ones, scalars(P::kPlain), {},
            scratch(P::kSlopes + task.micro.value, 1), false},
        stream);
}

Status ForwardProbes::join(const StepInputs& inputs, Stream& stream)
{
    const auto micros = static_cast<std::int64_t>(inputs.micros.size());
    const auto row = [&](std::int64_t place, std::int64_t count) {
        return matrixView(scratch(place, 1).data, DType::F32, 1, count);
    };
    const auto scalars = [&](std::int64_t place) {
        return vectorView(scratch(place, 1).data, DType::U8, sizeof(StepScalars));
    };
    const TensorView slope = scratch(P::kSlope, 1);
    const TensorView norm = scratch(P::kNorm, 1);
    MR_TRY(fill(P::kSigns, micros, 1.0F, stream));
    MR_TRY(m_device.ops().projectGradient(
        {row(P::kSlopes, micros), scratch(P::kSigns, micros), scalars(P::kPlain), {}, slope, false},
        stream));
    MR_TRY(m_device.ops().normBlocks({slope, norm}, stream));
    MR_TRY(m_device.ops().normJoin(
        {norm, m_memory.scalars.chunksFor(norm), m_memory.scalars.scalars, 0.0}, stream));
    return m_device.ops().projectGradient({row(P::kSlope, 1), scratch(P::kSigns, 1),
                                              scalars(P::kOfRate), {}, scratch(P::kSize, 1), false},
        stream);
}

Status ForwardProbes::update(const Task& task, const StepInputs& inputs, Stream& stream)
{
    const std::int64_t taskEnd = task.firstElement + task.elementCount;
    for (const Weight& weight : weightsOf(task)) {
        for (std::int64_t chunk = 0; chunk * P::kChunk < weight.count(); ++chunk) {
            const std::int64_t begin = weight.shape.first + chunk * P::kChunk;
            const std::int64_t all = std::min(P::kChunk, weight.count() - chunk * P::kChunk);
            const std::int64_t first = std::max(begin, task.firstElement);
            const std::int64_t count = std::min(begin + all, taskEnd) - first;
            if (count <= 0)
                continue;
            MR_TRY(drawSigns(weight, chunk, all, inputs, stream));
            const StateViews state = stateOnDevice(m_memory, task, first, count);
            LightUpdateArgs args;
            args.high = state.of(StatePart::High);
            args.low = state.of(StatePart::Low);
            args.grad = scratch(P::kSigns, all).rows(first - begin, count);
            args.size = scratch(P::kSize, 1);
            args.scalars = m_memory.scalars.scalars;
            args.first = first - weight.shape.first;
            args.cols = weight.shape.cols;
            args.decay = inputs.light.decay;
            args.decayed = weight.decayed;
            args.key = inputs.seed;
            args.counter = roundingCounter(inputs.light.update, weight.number);
            MR_TRY(m_device.ops().lightUpdate(args, stream));
        }
    }
    return {};
}

} // namespace mr
