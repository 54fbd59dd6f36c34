#include "core/step/window_steps.h"

#include "core/step/window_work.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {
namespace {

// How much of a column's energy a step leaves to the next.
constexpr float kEnergyKept = 0.9F;

} // namespace

WindowSteps::WindowSteps(Device& device, const RunMemory& memory, const ParamTable& table,
    ColumnCopier& copier, LinkBytes& traffic)
    : m_device(device)
    , m_memory(memory)
    , m_window(*memory.window)
    , m_table(table)
    , m_copier(copier)
    , m_traffic(traffic)
{
}

Status WindowSteps::enqueue(const Task& task, const StepInputs& inputs, Stream& stream)
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
        return Status::error(
            ErrorKind::Internal, fmt::format("window tasks: task kind {} has no part of a gradient",
                                     static_cast<int>(task.kind)));
    }
}

Status WindowSteps::pack(const Task& task, Stream& stream)
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

// The packed gradient there was added and is not needed any more.
Status WindowSteps::roundSum(GroupId id, Stream& stream)
{
    return m_device.ops().finishGradient(
        {m_window.deviceSums(id), {}, m_window.packed(id)}, stream);
}

Status WindowSteps::send(const Task& task, Stream& stream)
{
    const WindowGroup& group = m_window.group(task.group);
    const std::size_t bytes =
        static_cast<std::size_t>(m_window.cut(task.group).packed) * sizeOf(m_window.compute());
    std::byte* to = m_window.layout().direct ? m_window.bank(task.group, task.slot) : group.landed;
    m_traffic.toHost += static_cast<std::int64_t>(bytes);
    return stream.copy(to, {group.packed, bytes});
}

Status WindowSteps::updateUrgent(const Task& task, const StepInputs& inputs, Stream& stream)
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
                             inputs.factors, m_table.slotAt(id, slot.first).decayed},
            stream));
        MR_TRY(m_copier.scatterUrgent(id, slot, stream));
    }
    return {};
}

Status WindowSteps::joinUrgent(Stream& stream)
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
    return m_device.ops().normJoin(
        {blocks, m_memory.scalars.chunksFor(blocks), m_window.urgentScalars(), 0.0}, stream);
}

Status WindowSteps::sendUrgentScalars(Stream& stream)
{
    m_traffic.toHost += static_cast<std::int64_t>(kSentWindowBytes + m_memory.scalars.sentBytes);
    MR_TRY(stream.copy(m_memory.hostScalars.losses.data,
        {m_memory.scalars.losses.data, m_memory.scalars.sentBytes}));
    return stream.copy(
        m_window.hostUrgentScalars, {m_window.urgentScalars().data, kSentWindowBytes});
}

Status WindowSteps::sendEnergies(Stream& stream)
{
    float* to = m_window.hostEnergies.data();
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const TensorView from = m_window.runningEnergies(GroupId{g});
        MR_TRY(stream.copy(reinterpret_cast<std::byte*>(to), {from.data, from.bytes()}));
        to += from.count();
        m_traffic.toHost += static_cast<std::int64_t>(from.bytes());
    }
    return {};
}

Status WindowSteps::upload(const Task& task, Stream& stream)
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
    m_traffic.toDevice += static_cast<std::int64_t>(all * weightBytes);
    return {};
}

Status WindowSteps::scatter(const Task& task, Stream& stream)
{
    const ComplementTile& tile = tileAt(m_window.layout(), task.group, task.firstElement);
    const WeightCut& slot = m_window.cut(task.group).weights[static_cast<std::size_t>(tile.slot)];
    const std::int64_t rows = tile.elementCount / slot.cols;
    const TensorView fresh = matrixView(
        m_window.uploadSlot(task.slot % kUploadSlots), m_memory.compute(), rows, slot.complement());
    return m_device.ops().scatterColumns(
        {fresh, m_window.hostColumns(task.group, slot),
            m_memory.weight(task.group, slot)
                .rows((tile.firstElement - slot.first) / slot.cols, rows)},
        stream);
}

} // namespace mr
