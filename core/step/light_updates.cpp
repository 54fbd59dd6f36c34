#include "core/step/light_updates.h"

#include "core/device/light_update.h"
#include "core/step/state_places.h"

#include <algorithm>

namespace mr {

static_assert(kPartRows == kRowsOfPart);

LightUpdates::LightUpdates(Device& device, const RunMemory& memory, const ParamTable& table)
    : m_device(device)
    , m_memory(memory)
    , m_rule(infoOf(memory.optimizer()))
{
    std::int64_t number = 0;
    for (const ParamGroup& from : table.groups) {
        Group& group = m_groups.emplace_back();
        GroupShape shape;
        std::int64_t averages = 0;
        std::int64_t roots = 0;
        for (const ParamSlot& slot : from.paramSlots) {
            const bool isVector = slot.rank == 1; // one row
            const std::int64_t rows = isVector ? 1 : slot.rows;
            const std::int64_t cols = slot.count() / rows;
            group.weights.push_back(
                {slot.first, rows, cols, slot.decayed, number++, averages, roots});
            shape.weights.push_back({slot.first, rows, cols, isVector});
            const std::int64_t both = m_rule.averages ? rows + cols : 0;
            averages += both;
            roots += both + 1;
        }
        group.counts = lightCounts(m_rule.id, shape);
    }
}

TensorView LightUpdates::scratch(std::int64_t first, std::int64_t count) const
{
    return vectorView(m_memory.updateScratch + static_cast<std::size_t>(first) * sizeof(float),
        DType::F32, count);
}

LightUpdates::Views LightUpdates::viewsOf(const Weight& weight) const
{
    Views views;
    std::int64_t size = weight.roots;
    if (m_rule.averages) {
        views.rowRoots = scratch(weight.roots, weight.rows);
        views.columnRoots = scratch(weight.roots + weight.rows, weight.cols);
        size += weight.rows + weight.cols;
    }
    views.size = scratch(size, 1);
    return views;
}

TensorView LightUpdates::gradientOf(const Task& task, const Weight& weight) const
{
    const TensorView flat = gradientOnDevice(m_memory, task, weight.first, weight.count());
    return matrixView(flat.data, flat.dtype, weight.rows, weight.cols);
}

Status LightUpdates::prepare(
    const Task& task, const StepInputs& inputs, const TensorView& scalars, Stream& stream)
{
    for (const Weight& weight : m_groups[static_cast<std::size_t>(task.group.value)].weights) {
        if (m_rule.averages)
            MR_TRY(average(task, weight, inputs, scalars, stream));
        MR_TRY(findSize(task, weight, inputs, scalars, stream));
    }
    return {};
}

Status LightUpdates::average(const Task& task, const Weight& weight, const StepInputs& inputs,
    const TensorView& scalars, Stream& stream)
{
    const LightCounts& counts = m_groups[static_cast<std::size_t>(task.group.value)].counts;
    const TensorView gradient = gradientOf(task, weight);
    const Views views = viewsOf(weight);
    MR_TRY(m_device.ops().rowSquares({gradient, scalars, {}, {}, views.rowRoots}, stream));
    const TensorView parts = scratch(counts.parts, rowParts(weight.rows) * weight.cols);
    MR_TRY(m_device.ops().columnSquares(
        {gradient, scalars, matrixView(parts.data, DType::F32, rowParts(weight.rows), weight.cols),
            views.columnRoots},
        stream));
    std::byte* averages = m_memory.group(task.group).averages.data() +
                          static_cast<std::size_t>(weight.averages) * sizeof(float);
    const TensorView both = vectorView(averages, DType::F32, weight.rows + weight.cols);
    return m_device.ops().averageSquares(
        {views.rowRoots, views.columnRoots, both.rows(0, weight.rows),
            both.rows(weight.rows, weight.cols), scalars, inputs.light.past, inputs.light.present},
        stream);
}

Status LightUpdates::findSize(const Task& task, const Weight& weight, const StepInputs& inputs,
    const TensorView& scalars, Stream& stream)
{
    const LightCounts& counts = m_groups[static_cast<std::size_t>(task.group.value)].counts;
    const Views views = viewsOf(weight);
    StepSizeArgs size;
    size.updateSums = scratch(counts.rowSums, weight.rows);
    size.size = views.size;
    size.count = weight.count();
    size.rate = inputs.light.rate;
    MR_TRY(m_device.ops().rowSquares(
        {gradientOf(task, weight), scalars, views.rowRoots, views.columnRoots, size.updateSums},
        stream));
    size.rule = m_rule.isRelative ? StepRule::Relative
                : m_rule.averages ? StepRule::Limited
                                  : StepRule::Normalised;
    if (m_rule.isRelative) {
        size.weightSums = scratch(counts.rowSums + weight.rows, weight.rows);
        const DType type = m_memory.compute();
        std::byte* weights =
            m_memory.updatedWeights(task) + static_cast<std::size_t>(weight.first) * sizeOf(type);
        MR_TRY(m_device.ops().rowSquares(
            {matrixView(weights, type, weight.rows, weight.cols), {}, {}, {}, size.weightSums},
            stream));
    }
    return m_device.ops().lightStepSize(size, stream);
}

Status LightUpdates::update(
    const Task& task, const StepInputs& inputs, const TensorView& scalars, Stream& stream)
{
    constexpr unsigned kNumberBits = 24; // of a weight, below the number of the update
    const std::int64_t taskEnd = task.firstElement + task.elementCount;
    for (const Weight& weight : m_groups[static_cast<std::size_t>(task.group.value)].weights) {
        const std::int64_t first = std::max(weight.first, task.firstElement);
        const std::int64_t count = std::min(weight.first + weight.count(), taskEnd) - first;
        if (count <= 0)
            continue;
        const Views views = viewsOf(weight);
        const StateViews state = stateOnDevice(m_memory, task, first, count);
        LightUpdateArgs args;
        args.high = state.of(StatePart::High);
        args.low = state.of(StatePart::Low);
        args.grad = gradientOnDevice(m_memory, task, first, count);
        args.rowRoots = views.rowRoots;
        args.columnRoots = views.columnRoots;
        args.size = views.size;
        args.scalars = scalars;
        args.first = first - weight.first;
        args.cols = weight.cols;
        args.decay = inputs.light.decay;
        args.decayed = weight.decayed;
        args.key = inputs.seed;
        args.counter =
            inputs.light.update << kNumberBits | static_cast<std::uint64_t>(weight.number);
        MR_TRY(m_device.ops().lightUpdate(args, stream));
    }
    return {};
}

} // namespace mr
