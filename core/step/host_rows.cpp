#include "core/step/host_rows.h"

#include <algorithm>
#include <array>

namespace mr {

HostRows::HostRows(const RunMemory& memory, DiskTasks* disk)
    : m_memory(memory)
    , m_disk(disk)
{
}

ComplementRows HostRows::of(
    GroupId id, const WeightCut& slot, std::int64_t firstRow, std::int64_t count, int stage) const
{
    const std::int64_t first = slot.first + firstRow * slot.cols;
    std::array<std::byte*, kStateParts> parts{};
    for (const StatePart part : kPartsOfTile)
        if (planeOf(m_memory.stateCodec(), part).exists())
            parts[static_cast<std::size_t>(part)] = m_memory.hostState(id, part, first, stage);
    const auto at = [&](StatePart part) { return parts[static_cast<std::size_t>(part)]; };
    ComplementRows rows;
    rows.high = reinterpret_cast<std::uint16_t*>(at(StatePart::High));
    rows.rows = static_cast<std::size_t>(count);
    rows.cols = static_cast<std::size_t>(slot.cols);
    if (m_memory.stateCodec() == StateCodec::Compact) {
        rows.compact = compactRange(parts, count * slot.cols);
        return rows;
    }
    rows.low = reinterpret_cast<std::int16_t*>(at(StatePart::Low));
    rows.m = reinterpret_cast<float*>(at(StatePart::FirstMoment));
    rows.v = reinterpret_cast<float*>(at(StatePart::SecondMoment));
    return rows;
}

Status HostRows::open(GroupId id, const WeightCut& slot, std::int64_t row) const
{
    const std::int64_t element = slot.first + row * slot.cols;
    const bool isOnDisk = m_memory.disk().cuts().tileOf(id, element) >= 0;
    return isOnDisk ? m_disk->openForChange(id, element) : Status();
}

// The part on disk begins with a row, and so does each of its tiles.
std::int64_t HostRows::together(
    GroupId id, const WeightCut& slot, std::int64_t row, std::int64_t most) const
{
    const DiskCuts& disk = m_memory.disk().cuts();
    const std::int64_t element = slot.first + row * slot.cols;
    const std::int32_t tile = disk.tileOf(id, element);
    std::int64_t end = m_memory.window->cut(id).diskFirst;
    if (tile >= 0) {
        const DiskRange& range = disk.tiles[static_cast<std::size_t>(tile)];
        end = range.first + range.count;
    }
    return std::min(most, (end - element + slot.cols - 1) / slot.cols);
}

} // namespace mr
