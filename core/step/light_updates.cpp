#include "core/step/light_updates.h"

#include "core/model/layout.h"
#include "core/step/draw_counters.h"
#include "core/step/state_places.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace mr {

static_assert(kPartRows == kRowsOfPart);
static_assert(sizeof(StepScalars) <= kLightVector * sizeof(float));

LightUpdates::LightUpdates(Device& device, const RunMemory& memory, const ParamTable& table)
    : m_device(device)
    , m_memory(memory)
    , m_rule(infoOf(memory.optimizer()))
{
    std::uint64_t number = 0;
    for (const ParamGroup& from : table.groups) {
        const std::vector<WeightShape> shapes = weightShapes(from);
        Group& group = m_groups.emplace_back();
        const bool inBlock = m_groups.size() > 1 && m_groups.size() < table.groups.size();
        group.layout = lightLayout(m_rule.id, shapes, inBlock);
        for (std::size_t i = 0; i < group.layout.places.size(); ++i)
            group.weights.push_back({shapes[i], group.layout.places[i], from.paramSlots[i].decayed,
                ruleOf(m_rule.id, shapes[i], inBlock), number++});
    }
}

TensorView LightUpdates::scratch(std::int64_t first, std::int64_t count) const
{
    return vectorView(m_memory.updateScratch + static_cast<std::size_t>(first) * sizeof(float),
        DType::F32, count);
}

LightUpdates::Views LightUpdates::viewsOf(const Weight& weight) const
{
    const WeightShape& shape = weight.shape;
    Views views;
    if (m_rule.averages && weight.rule == WeightRule::Own) {
        views.rowRoots = scratch(weight.place.rows, shape.rows);
        views.columnRoots = scratch(weight.place.columns, shape.cols);
    }
    views.size = scratch(weight.place.size, 1);
    return views;
}

TensorView LightUpdates::keptOf(const Task& task, const Weight& weight, std::int64_t count) const
{
    std::byte* const kept = m_memory.group(task.group).averages.data();
    return vectorView(
        kept + static_cast<std::size_t>(weight.place.averages) * sizeof(float), DType::F32, count);
}

LightUpdates::ChosenRows LightUpdates::chosenRowsOf(const Task& task, const Weight& weight) const
{
    const std::int64_t chosen = chosenRows(weight.shape.rows);
    const std::int64_t each = chosen * weight.shape.cols;
    const TensorView all = keptOf(task, weight, 2 * each + chosen);
    return {all.rows(2 * each, chosen), matrixView(all.data, DType::F32, chosen, weight.shape.cols),
        matrixView(all.rows(each, each).data, DType::F32, chosen, weight.shape.cols)};
}

TensorView LightUpdates::gradientOf(const Task& task, const Weight& weight) const
{
    const TensorView flat = gradientOnDevice(m_memory, task, weight.shape.first, weight.count());
    return matrixView(flat.data, flat.dtype, weight.shape.rows, weight.shape.cols);
}

// The ops of a group read its own scalars, or a copy with the factor of ClipMode::PreviousNorm: the
// group's own are on their way to the host.
TensorView LightUpdates::scalarsOf(const StepInputs& inputs, const TensorView& ofGroup) const
{
    if (inputs.light.clipFactor == 1.0F)
        return ofGroup;
    TensorView own = ofGroup;
    own.data = scratch(LightLayout::kScalars, 1).data;
    return own;
}

Status LightUpdates::giveClipFactor(
    const StepInputs& inputs, const TensorView& ofGroup, Stream& stream)
{
    const TensorView own = scalarsOf(inputs, ofGroup);
    if (own.data == ofGroup.data)
        return {};
    MR_TRY(stream.copy(own.data, {ofGroup.data, sizeof(StepScalars)}));
    return m_device.ops().fill(
        {vectorView(own.data + offsetof(StepScalars, clipFactor), DType::F32, 1),
            inputs.light.clipFactor},
        stream);
}

Status LightUpdates::prepare(
    const Task& task, const StepInputs& inputs, const TensorView& ofGroup, Stream& stream)
{
    MR_TRY(giveClipFactor(inputs, ofGroup, stream));
    const TensorView scalars = scalarsOf(inputs, ofGroup);
    for (const Weight& weight : groupOf(task).weights) {
        switch (weight.rule) {
        case WeightRule::Projected:
            MR_TRY(project(task, weight, inputs, scalars, stream));
            break;
        case WeightRule::Rows:
            MR_TRY(chooseRows(task, weight, inputs, scalars, stream));
            break;
        case WeightRule::Own:
            if (m_rule.averages) {
                MR_TRY(average(task, weight, inputs, scalars, stream));
            }
            MR_TRY(findSize(task, weight, inputs, scalars, stream));
            break;
        }
    }
    return {};
}

Status LightUpdates::average(const Task& task, const Weight& weight, const StepInputs& inputs,
    const TensorView& scalars, Stream& stream)
{
    const LightLayout& layout = groupOf(task).layout;
    const TensorView gradient = gradientOf(task, weight);
    const Views views = viewsOf(weight);
    MR_TRY(m_device.ops().rowSquares({gradient, scalars, {}, {}, views.rowRoots}, stream));
    const TensorView parts = scratch(layout.parts, rowParts(weight.shape.rows) * weight.shape.cols);
    MR_TRY(m_device.ops().columnSquares(
        {gradient, scalars,
            matrixView(parts.data, DType::F32, rowParts(weight.shape.rows), weight.shape.cols),
            views.columnRoots},
        stream));
    const TensorView both = keptOf(task, weight, weight.shape.rows + weight.shape.cols);
    return m_device.ops().averageSquares(
        {views.rowRoots, views.columnRoots, both.rows(0, weight.shape.rows),
            both.rows(weight.shape.rows, weight.shape.cols), scalars, inputs.light.past,
            inputs.light.present},
        stream);
}

// To the longer side; the signs are drawn anew after some updates. Decay comes behind the step, as
// its authors do, so the step is decayed with the weight.
Status LightUpdates::project(const Task& task, const Weight& weight, const StepInputs& inputs,
    const TensorView& scalars, Stream& stream)
{
    constexpr std::uint64_t kRefresh = 200; // updates
    const auto& [rows, cols] = std::pair(weight.shape.rows, weight.shape.cols);
    const std::int64_t longer = std::max(rows, cols);
    const LightLayout& layout = groupOf(task).layout;
    const TensorView gradient = gradientOf(task, weight);
    const TensorView signs = scratch(weight.place.columns, std::min(rows, cols));
    const TensorView projected = scratch(weight.place.rows, longer);
    const TensorView squares = scratch(layout.rowSums, rows);
    MR_TRY(m_device.ops().projectionSigns(
        {signs, inputs.seed, signCounter((inputs.light.update - 1) / kRefresh, weight.number)},
        stream));
    ProjectGradientArgs project{gradient, signs, scalars, {}, projected, rows < cols};
    if (project.overRows)
        project.parts = matrixView(
            scratch(layout.parts, rowParts(rows) * cols).data, DType::F32, rowParts(rows), cols);
    MR_TRY(m_device.ops().projectGradient(project, stream));
    MR_TRY(m_device.ops().rowSquares({gradient, scalars, {}, {}, squares}, stream));
    const TensorView moments = keptOf(task, weight, 2 * longer + 1);
    const double decay = weight.decayed ? static_cast<double>(inputs.light.decay) : 1.0;
    const double scale = std::sqrt(static_cast<double>(std::min(rows, cols)));
    return m_device.ops().projectedStep(
        {projected, squares, moments.rows(0, longer), moments.rows(longer, longer),
            moments.rows(2 * longer, 1), viewsOf(weight).size, scalars,
            static_cast<float>(inputs.light.momentRate * scale * decay), inputs.light.update == 1},
        stream);
}

// The rows are kept until the next choice, so most updates have nothing to prepare.
Status LightUpdates::chooseRows(const Task& task, const Weight& weight, const StepInputs& inputs,
    const TensorView& scalars, Stream& stream)
{
    if (!inputs.light.choosesRows)
        return {};
    const std::int64_t rows = weight.shape.rows;
    const LightLayout& layout = groupOf(task).layout;
    const TensorView squares = scratch(layout.rowSums, rows);
    MR_TRY(m_device.ops().rowSquares({gradientOf(task, weight), scalars, {}, {}, squares}, stream));
    return m_device.ops().selectRows({squares, scratch(layout.rowSums + rows, chosenRows(rows)),
                                         chosenRowsOf(task, weight).numbers, scalars},
        stream);
}

Status LightUpdates::updateRows(const Task& task, const Weight& weight, const StepInputs& inputs,
    const LightUpdateArgs& range, Stream& stream)
{
    const ChosenRows chosen = chosenRowsOf(task, weight);
    RowAdamwArgs args;
    args.high = range.high;
    args.low = range.low;
    args.grad = range.grad;
    args.numbers = chosen.numbers;
    args.m = chosen.first;
    args.v = chosen.second;
    args.scalars = range.scalars;
    args.first = range.first;
    args.cols = range.cols;
    args.factors = inputs.light.ofRows;
    args.decayed = range.decayed;
    args.isFirst = inputs.light.choosesRows;
    args.key = range.key;
    args.counter = range.counter;
    return m_device.ops().rowAdamw(args, stream);
}

Status LightUpdates::findSize(const Task& task, const Weight& weight, const StepInputs& inputs,
    const TensorView& scalars, Stream& stream)
{
    const LightLayout& layout = groupOf(task).layout;
    const Views views = viewsOf(weight);
    StepSizeArgs size;
    size.updateSums = scratch(layout.rowSums, weight.shape.rows);
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
        size.weightSums = scratch(layout.rowSums + weight.shape.rows, weight.shape.rows);
        const DType type = m_memory.compute();
        std::byte* weights = m_memory.updatedWeights(task) +
                             static_cast<std::size_t>(weight.shape.first) * sizeOf(type);
        MR_TRY(m_device.ops().rowSquares(
            {matrixView(weights, type, weight.shape.rows, weight.shape.cols), {}, {}, {},
                size.weightSums},
            stream));
    }
    return m_device.ops().lightStepSize(size, stream);
}

Status LightUpdates::update(
    const Task& task, const StepInputs& inputs, const TensorView& ofGroup, Stream& stream)
{
    const std::int64_t taskEnd = task.firstElement + task.elementCount;
    for (const Weight& weight : groupOf(task).weights) {
        const std::int64_t first = std::max(weight.shape.first, task.firstElement);
        const std::int64_t count = std::min(weight.shape.first + weight.count(), taskEnd) - first;
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
        args.scalars = scalarsOf(inputs, ofGroup);
        args.first = first - weight.shape.first;
        args.cols = weight.shape.cols;
        args.decay = inputs.light.decay;
        args.decayed = weight.decayed;
        args.key = inputs.seed;
        args.counter = roundingCounter(inputs.light.update, weight.number);
        MR_TRY(weight.rule == WeightRule::Rows ? updateRows(task, weight, inputs, args, stream)
                                               : m_device.ops().lightUpdate(args, stream));
    }
    return {};
}

} // namespace mr
