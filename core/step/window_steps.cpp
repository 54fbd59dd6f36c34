#include "core/step/window_steps.h"

#include "core/step/step_executor.h"

#include <algorithm>

namespace mr {
namespace {

// How much of a column's energy a step leaves to the next.
constexpr float kEnergyKept = 0.9F;

TensorView asBf16(TensorView view, std::int64_t rows, std::int64_t cols)
{
    return matrixView(view.data, DType::BF16, rows, cols);
}

} // namespace

WindowTasks::WindowTasks(
    Device& device, RunMemory& memory, const ParamTable& table, DiskTasks* disk)
    : m_device(device)
    , m_memory(memory)
    , m_window(*memory.window)
    , m_table(table)
    , m_disk(disk)
{
}

bool WindowTasks::handles(const Task& task) noexcept
{
    return task.part != Part::All;
}

Status WindowTasks::enqueue(const Task& task, const StepInputs& inputs, Stream& stream)
{
    switch (task.kind) {
    case TaskKind::PackComplement:
        return pack(task, stream);
    case TaskKind::AccumulateOnDevice:
        return m_device.ops().accumulate(
            {m_window.deviceSums(task.group), m_window.packed(task.group), m_memory.scalars.scalars,
                task.micro.value == 0 ? 0.0F : 1.0F},
            stream);
    case TaskKind::FinishGradient:
        return roundSum(task.group, stream);
    case TaskKind::SendGradient:
        return send(task, stream);
    case TaskKind::UpdateOnDevice:
        return updateUrgent(task, inputs, stream);
    case TaskKind::JoinNorm:
        return joinUrgent(stream);
    case TaskKind::SendScalars:
        return sendUrgentScalars(stream);
    case TaskKind::SelectColumns:
        return sendEnergies(stream);
    case TaskKind::UploadComplement:
        return upload(task, stream);
    case TaskKind::ScatterComplement:
        return scatter(task, stream);
    default:
        return Status::error(ErrorKind::Internal, "window tasks: task kind " +
                                                      std::to_string(static_cast<int>(task.kind)) +
                                                      " has no part of a gradient");
    }
}

TensorView WindowTasks::weightOf(GroupId id, const WeightCut& slot) const
{
    return matrixView(m_memory.group(id).weights +
                          static_cast<std::size_t>(slot.first) * sizeOf(m_memory.compute()),
        m_memory.compute(), slot.rows, slot.cols);
}

bool WindowTasks::isDecayed(GroupId id, const WeightCut& slot) const
{
    const auto& slots = m_table.groups[static_cast<std::size_t>(id.value)].paramSlots;
    return std::find_if(slots.begin(), slots.end(), [&](const ParamSlot& param) {
        return param.first == slot.first;
    })->decayed;
}

Status WindowTasks::pack(const Task& task, Stream& stream)
{
    Ops& ops = m_device.ops();
    const GroupId id = task.group;
    const bool absolute = m_window.layout().columnEnergy == ColumnEnergy::Absolutes;
    for (const WeightCut& slot : m_window.cut(id).weights) {
        TensorView gradient =
            m_memory.group(id).finished(m_memory.gradientType(), slot.first, slot.rows * slot.cols);
        gradient = matrixView(gradient.data, gradient.dtype, slot.rows, slot.cols);
        if (slot.urgent > 0)
            MR_TRY(ops.gatherColumns(
                {gradient, m_window.urgentColumns(id, slot), m_window.urgentGradient(id, slot)},
                stream));
        if (slot.complement() > 0)
            MR_TRY(ops.gatherColumns(
                {gradient, m_window.hostColumns(id, slot), m_window.packed(id, slot)}, stream));
        if (slot.isMovable())
            MR_TRY(ops.columnEnergy({gradient, m_window.energy(id, slot), absolute}, stream));
    }
    return {};
}

// What is packed there was added and is not needed any more.
Status WindowTasks::roundSum(GroupId id, Stream& stream)
{
    return m_device.ops().finishGradient(
        {m_window.deviceSums(id), {}, m_window.packed(id)}, stream);
}

Status WindowTasks::send(const Task& task, Stream& stream)
{
    const WindowGroup& group = m_window.group(task.group);
    const std::size_t bytes =
        static_cast<std::size_t>(m_window.cut(task.group).packed) * sizeOf(m_window.compute());
    std::byte* to = m_window.layout().direct ? m_window.bank(task.group, task.slot) : group.landed;
    d2hBytes += static_cast<std::int64_t>(bytes);
    return stream.copy(to, {group.packed, bytes});
}

Status WindowTasks::updateUrgent(const Task& task, const StepInputs& inputs, Stream& stream)
{
    Ops& ops = m_device.ops();
    const GroupId id = task.group;
    const TensorView& scalars = m_memory.scalars.scalars;
    MR_TRY(ops.accumulate(
        {m_window.runningEnergies(id), m_window.stepEnergies(id), scalars, kEnergyKept}, stream));
    const WindowGroup& group = m_window.group(id);
    if (m_window.cut(id).dense == 0)
        return {};
    if (group.sums)
        MR_TRY(ops.accumulate(
            {m_window.urgentSums(id),
                vectorView(group.gradients, m_window.compute(), m_window.cut(id).dense), scalars,
                task.micro.value == 0 ? 0.0F : 1.0F},
            stream));
    for (const WeightCut& slot : m_window.cut(id).weights) {
        if (slot.urgent == 0)
            continue;
        const DenseState dense = m_window.dense(id, slot);
        const TensorView gradient = m_window.urgentGradient(id, slot);
        MR_TRY(ops.adamw({dense.high, dense.low, dense.m, dense.v,
                             vectorView(gradient.data, gradient.dtype, gradient.count()), scalars,
                             inputs.factors, isDecayed(id, slot)},
            stream));
        MR_TRY(scatterUrgent(id, slot, stream));
    }
    return {};
}

Status WindowTasks::scatterUrgent(GroupId id, const WeightCut& slot, Stream& stream)
{
    const DenseState dense = m_window.dense(id, slot);
    TensorView fresh = asBf16(dense.high, slot.rows, slot.urgent);
    if (m_memory.compute() == DType::F32) {
        fresh = matrixView(m_window.scratch, DType::F32, slot.rows, slot.urgent);
        MR_TRY(m_device.ops().join(
            {dense.high, dense.low, vectorView(fresh.data, DType::F32, fresh.count())}, stream));
    }
    return m_device.ops().scatterColumns(
        {fresh, m_window.urgentColumns(id, slot), weightOf(id, slot)}, stream);
}

Status WindowTasks::joinUrgent(Stream& stream)
{
    std::int64_t block = 0;
    const TensorView blocks = m_window.urgentNormBlocks();
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const std::int64_t count = normBlockCount(m_window.cut(GroupId{g}).dense);
        if (count > 0)
            MR_TRY(m_device.ops().normBlocks(
                {m_window.urgentSums(GroupId{g}), blocks.rows(block, count)}, stream));
        block += count;
    }
    return m_device.ops().normJoin({blocks, m_window.urgentScalars(), 0.0}, stream);
}

Status WindowTasks::sendUrgentScalars(Stream& stream)
{
    d2hBytes += static_cast<std::int64_t>(kSentWindowBytes + m_memory.scalars.sentBytes);
    MR_TRY(stream.copy(m_memory.hostScalars.losses.data,
        {m_memory.scalars.losses.data, m_memory.scalars.sentBytes}));
    return stream.copy(
        m_window.hostUrgentScalars, {m_window.urgentScalars().data, kSentWindowBytes});
}

Status WindowTasks::sendEnergies(Stream& stream)
{
    float* to = m_window.hostEnergies.data();
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const TensorView from = m_window.runningEnergies(GroupId{g});
        MR_TRY(stream.copy(reinterpret_cast<std::byte*>(to), {from.data, from.bytes()}));
        to += from.count();
        d2hBytes += static_cast<std::int64_t>(from.bytes());
    }
    return {};
}

Status WindowTasks::upload(const Task& task, Stream& stream)
{
    const ComplementTile& tile = tileAt(m_window.layout(), task.group, task.firstElement);
    const std::size_t sumBytes = sizeOf(m_window.sumType());
    const std::size_t weightBytes = sizeOf(m_window.compute());
    const std::byte* from = m_window.bank(task.group, task.slot / kUploadSlots) +
                            static_cast<std::size_t>(tile.packedFirst) * sumBytes;
    std::byte* to = m_window.uploadSlot(task.slot % kUploadSlots);
    const WeightCut& slot = m_window.cut(task.group).weights[static_cast<std::size_t>(tile.slot)];
    // The pool leaves weights dense at the beginning of each of its pieces.
    const std::size_t piece = sumBytes == weightBytes
                                  ? static_cast<std::size_t>(tile.packedCount)
                                  : pieceRows(static_cast<std::size_t>(slot.cols)) *
                                        static_cast<std::size_t>(slot.complement());
    const auto all = static_cast<std::size_t>(tile.packedCount);
    for (std::size_t first = 0; first < all; first += piece) {
        const std::size_t count = std::min(piece, all - first);
        MR_TRY(
            stream.copy(to + first * weightBytes, {from + first * sumBytes, count * weightBytes}));
    }
    h2dBytes += static_cast<std::int64_t>(all * weightBytes);
    return {};
}

Status WindowTasks::scatter(const Task& task, Stream& stream)
{
    const ComplementTile& tile = tileAt(m_window.layout(), task.group, task.firstElement);
    const WeightCut& slot = m_window.cut(task.group).weights[static_cast<std::size_t>(tile.slot)];
    const std::int64_t rows = tile.elementCount / slot.cols;
    const TensorView fresh = matrixView(
        m_window.uploadSlot(task.slot % kUploadSlots), m_memory.compute(), rows, slot.complement());
    return m_device.ops().scatterColumns(
        {fresh, m_window.hostColumns(task.group, slot),
            weightOf(task.group, slot).rows((tile.firstElement - slot.first) / slot.cols, rows)},
        stream);
}

} // namespace mr
