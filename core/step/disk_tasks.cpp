#include "core/step/disk_tasks.h"

#include "core/plan/task_traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace mr {

DiskTasks::DiskTasks(const RunMemory& memory, DiskStore& store)
    : m_memory(memory)
    , m_store(store)
    , m_written(memory.disk().cuts().tiles.size())
{
}

Result<std::unique_ptr<DiskTasks>> DiskTasks::create(
    Device& device, const RunMemory& memory, DiskStore& store)
{
    auto tasks = std::unique_ptr<DiskTasks>(new DiskTasks(memory, store));
    constexpr std::array<std::string_view, kDiskLanes> kNames = {
        "disk reads", "disk writes", "disk weights", "disk boundaries"};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        MR_ASSIGN(tasks->m_gates[i], device.createGate(kNames[i]));
    }
    return tasks;
}

namespace {

DiskQueue queueOf(Lane lane)
{
    switch (lane) {
    case Lane::DiskOut:
        return DiskQueue::Out;
    case Lane::DiskWeights:
        return DiskQueue::Weights;
    case Lane::DiskBoundaries:
        return DiskQueue::Boundaries;
    default:
        return DiskQueue::StateIn;
    }
}

} // namespace

Result<std::uint64_t> DiskTasks::submit(const Task& task, const DiskAfter& after, DiskTimes* times)
{
    if (times)
        *times = {};
    if (task.lane == Lane::DiskBoundaries)
        return submitBoundary(task, after, times);
    if (task.kind == TaskKind::ReadFrozen)
        return submitFrozen(task, after, times);
    const std::int32_t tile = m_memory.disk().cuts().tileOf(task.group, task.firstElement);
    const TaskTraits& traits = traitsOf(task.kind);
    if (tile < 0 || task.stage < 0 || traits.regions == 0)
        return Status::error(
            ErrorKind::Internal, fmt::format("disk tasks: group {} has no tile at element {}",
                                     task.group.value, task.firstElement));
    const DiskRange& range = m_memory.disk().cuts().tiles[static_cast<std::size_t>(tile)];
    std::uint64_t generation = 0;
    // State is the most and comes last: its times are those of the task, and its gate opens after
    // the others'.
    for (const DiskRegion region : {DiskRegion::Gradient, DiskRegion::Weights, DiskRegion::State}) {
        const bool isUpdate = task.kind == TaskKind::ReadFromDisk;
        const bool isThere = isUpdate ? range.isRead(region) : range.has(region);
        if (traits.moves(region) && isThere)
            generation = submitMove({task.lane, task.stage, tile, region}, after, times);
    }
    return generation;
}

std::uint64_t DiskTasks::submitMove(const Move& move, const DiskAfter& after, DiskTimes* times)
{
    const std::span<std::byte> memory = m_memory.disk().region(move.stage, move.tile, move.region);
    return submitTransfer(
        {move.lane, move.lane == Lane::DiskOut,
            m_memory.disk().cuts().stored(move.tile, move.region), memory, memory.size()},
        after, times);
}

// Jobs of a queue open their gates in order: the last one's says that all pieces are there.
Result<std::uint64_t> DiskTasks::submitFrozen(
    const Task& task, const DiskAfter& after, DiskTimes* times)
{
    const std::int32_t tile = m_memory.disk().cuts().frozenTileOf(task.group, task.firstElement);
    if (tile < 0 || task.stage < 0)
        return Status::error(ErrorKind::Internal,
            fmt::format("disk tasks: group {} has no frozen tile at element {}", task.group.value,
                task.firstElement));
    const std::span<std::byte> place = m_memory.disk().of(task.stage);
    std::int32_t piece = m_memory.frozenPieces.firstOf(tile);
    std::uint64_t generation = 0;
    for (const FrozenPiece& each : m_memory.frozenPieces.of(tile))
        generation = submitTransfer(
            {task.lane, false, m_memory.storedPiece(piece++),
                place.subspan(each.stageAt, diskPages(each.lead + each.bytes)), each.bytes},
            after, times);
    return generation;
}

// The lane turns round once all its earlier tasks are over. Its tasks wait for no other gate.
Result<std::uint64_t> DiskTasks::submitBoundary(
    const Task& task, const DiskAfter& after, DiskTimes* times)
{
    const std::int64_t slot = task.micro.value % m_memory.slotCount();
    const std::int32_t stored = m_memory.boundaries().stored(slot, task.group.value);
    if (stored < 0 || task.stage < 0 || after.gate)
        return Status::error(ErrorKind::Internal,
            fmt::format("disk tasks: the output of layer {} for micro-batch {} has no tile on "
                        "disk, or waits for a lane that it must not wait for",
                task.group.value, task.micro.value));
    const bool isOut = isDiskWrite(task.kind);
    DiskAfter turn = after;
    if (std::exchange(m_boundariesGoOut, isOut) != isOut) {
        turn.gate = &gate(task.lane);
        turn.generation = m_generations[indexOf(task.lane)];
    }
    const std::span<std::byte> place = m_memory.disk().of(task.stage);
    return submitTransfer({task.lane, isOut, stored, place, place.size()}, turn, times);
}

std::uint64_t DiskTasks::submitTransfer(
    const Transfer& transfer, const DiskAfter& after, DiskTimes* times)
{
    const std::size_t lane = indexOf(transfer.lane);
    DiskJob job;
    job.op = transfer.isOut ? DiskOp::Write : DiskOp::Read;
    job.queue = queueOf(transfer.lane);
    job.tile = DiskTileId{transfer.stored};
    job.memory = transfer.memory;
    job.after = after.event;
    job.afterGate = after.gate;
    job.afterGeneration = after.generation;
    job.gate = m_gates[lane].get();
    job.generation = ++m_generations[lane];
    job.times = times;
    for (Moved* moved : {&m_moved, &m_allMoved})
        (transfer.isOut ? moved->writtenBytes : moved->readBytes) +=
            static_cast<std::int64_t>(transfer.counted);
    m_store.submit(job);
    return job.generation;
}

Status DiskTasks::waitFor(Lane lane, std::uint64_t generation)
{
    return m_store.waitFor(gate(lane), generation);
}

void DiskTasks::drain() noexcept
{
    for (const Lane lane : {Lane::DiskIn, Lane::DiskOut, Lane::DiskWeights, Lane::DiskBoundaries})
        (void)waitFor(lane, m_generations[indexOf(lane)]).ok();
}

DiskTasks::Moved DiskTasks::takeMoved() noexcept
{
    return std::exchange(m_moved, {});
}

// Moves weights and state, which a tile keeps from step to step, from or to the first slot.
Status DiskTasks::moveNow(Lane lane, std::int32_t tile)
{
    const DiskRange& range = m_memory.disk().cuts().tiles[static_cast<std::size_t>(tile)];
    std::uint64_t generation = 0;
    for (const DiskRegion region : {DiskRegion::Weights, DiskRegion::State}) {
        if (range.has(region))
            generation = submitMove({lane, 0, tile, region}, {}, nullptr);
    }
    return waitFor(lane, generation);
}

Status DiskTasks::closeTile()
{
    if (std::exchange(m_changed, false)) {
        MR_TRY(moveNow(Lane::DiskOut, m_open));
        m_written[static_cast<std::size_t>(m_open)] = true;
    }
    m_open = -1;
    return {};
}

Status DiskTasks::openTile(std::int32_t tile)
{
    if (m_open == tile)
        return {};
    MR_TRY(closeTile());
    if (m_written[static_cast<std::size_t>(tile)]) {
        MR_TRY(moveNow(Lane::DiskIn, tile));
    } else { // zero bytes are zero moments in either codec
        const std::span<std::byte> slot = m_memory.disk().of(0);
        std::memset(slot.data(), 0, slot.size());
        m_changed = true;
    }
    m_open = tile;
    return {};
}

// Calls fn(bytes in the slot, offset in the range, count of bytes) for the parts of a range of
// values that lie in one tile.
template <typename F>
Status DiskTasks::forTiles(
    GroupId group, StatePart part, std::int64_t first, std::size_t bytes, F&& fn)
{
    const StatePlane& plane = planeOf(m_memory.stateCodec(), part);
    const std::int64_t end = first + static_cast<std::int64_t>(bytes / plane.valueBytes);
    for (std::int64_t at = first; at < end;) {
        const std::int32_t tile = m_memory.disk().cuts().tileOf(group, at * plane.elementsPerValue);
        if (tile < 0)
            return Status::error(ErrorKind::Internal,
                fmt::format("disk tasks: state outside of the tiles of group {}", group.value));
        MR_TRY(openTile(tile));
        const DiskRange& range = m_memory.disk().cuts().tiles[static_cast<std::size_t>(tile)];
        const std::int64_t begin = range.first / plane.elementsPerValue;
        const std::int64_t count = std::min(end, begin + plane.values(range.count)) - at;
        std::byte* here = m_memory.disk().plane(0, tile, part, at * plane.elementsPerValue);
        fn(here, static_cast<std::size_t>(at - first) * plane.valueBytes,
            static_cast<std::size_t>(count) * plane.valueBytes);
        at += count;
    }
    return {};
}

Status DiskTasks::read(GroupId group, StatePart part, std::int64_t first, std::span<std::byte> out)
{
    return forTiles(group, part, first, out.size(),
        [&](const std::byte* here, std::size_t offset, std::size_t bytes) {
            std::memcpy(out.data() + offset, here, bytes);
        });
}

Status DiskTasks::write(
    GroupId group, StatePart part, std::int64_t first, std::span<const std::byte> in)
{
    return forTiles(
        group, part, first, in.size(), [&](std::byte* here, std::size_t offset, std::size_t bytes) {
            std::memcpy(here, in.data() + offset, bytes);
            m_changed = true;
        });
}

Status DiskTasks::openForChange(GroupId group, std::int64_t element)
{
    const std::int32_t tile = m_memory.disk().cuts().tileOf(group, element);
    if (tile < 0)
        return Status::error(ErrorKind::Internal,
            fmt::format("disk tasks: state outside of the tiles of group {}", group.value));
    MR_TRY(openTile(tile));
    m_changed = true;
    return {};
}

Status DiskTasks::flush()
{
    MR_TRY(closeTile());
    const auto tiles = static_cast<std::int32_t>(m_written.size());
    for (std::int32_t tile = 0; tile < tiles; ++tile) {
        if (m_written[static_cast<std::size_t>(tile)])
            continue;
        MR_TRY(openTile(tile));
        MR_TRY(closeTile());
    }
    return {};
}

} // namespace mr
