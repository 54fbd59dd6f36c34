#include "core/step/state_access.h"

#include "core/device/master24.h"
#include "core/step/state_places.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace mr {

StateAccess::StateAccess(const RunMemory& memory, BlockingCopier& copier, DiskTasks* disk)
    : m_memory(memory)
    , m_copier(copier)
    , m_disk(disk)
{
}

Status StateAccess::read(
    GroupId group, StatePart part, std::int64_t first, std::span<std::byte> out)
{
    if (m_memory.group(group).isOnDevice(part))
        return m_copier.toHost(out, planeAt(m_memory, group, part, first));
    const std::size_t here = inMemory(group, part, first, out.size());
    if (here > 0)
        std::memcpy(out.data(), planeAt(m_memory, group, part, first), here);
    if (here == out.size())
        return {};
    const auto each = planeOf(m_memory.stateCodec(), part).valueBytes;
    return m_disk->read(
        group, part, first + static_cast<std::int64_t>(here / each), out.subspan(here));
}

Status StateAccess::write(
    GroupId group, StatePart part, std::int64_t first, std::span<const std::byte> in)
{
    if (m_memory.group(group).isOnDevice(part))
        return m_copier.toDevice(planeAt(m_memory, group, part, first), in);
    const std::size_t here = inMemory(group, part, first, in.size());
    if (here > 0)
        std::memcpy(planeAt(m_memory, group, part, first), in.data(), here);
    if (here == in.size())
        return {};
    const auto each = planeOf(m_memory.stateCodec(), part).valueBytes;
    return m_disk->write(
        group, part, first + static_cast<std::int64_t>(here / each), in.subspan(here));
}

Status StateAccess::readAverages(GroupId group, std::int64_t first, std::span<std::byte> out)
{
    const std::byte* averages = m_memory.group(group).averages.data();
    return m_copier.toHost(out, averages + static_cast<std::size_t>(first) * sizeof(float));
}

Status StateAccess::writeAverages(GroupId group, std::int64_t first, std::span<const std::byte> in)
{
    std::byte* averages = m_memory.group(group).averages.data();
    return m_copier.toDevice(averages + static_cast<std::size_t>(first) * sizeof(float), in);
}

std::size_t StateAccess::inMemory(
    GroupId group, StatePart part, std::int64_t first, std::size_t bytes) const
{
    const StatePlane& plane = planeOf(m_memory.stateCodec(), part);
    const DiskRegion region = m_memory.disk().parts().regionOf(part);
    const std::int64_t end = plane.values(m_memory.group(group).diskEnds.of(region));
    const auto here = static_cast<std::size_t>(std::max<std::int64_t>(0, end - first));
    return std::min(bytes, here * plane.valueBytes);
}

Status StateAccess::writeMaster(GroupId group, std::int64_t first, const MasterView& master)
{
    if (isLossless(m_memory.stateCodec())) {
        MR_TRY(write(group, StatePart::High, first, std::as_bytes(master.high)));
        return write(group, StatePart::Low, first, std::as_bytes(master.low));
    }
    std::vector<std::uint16_t> weight(master.high.size());
    std::vector<std::int8_t> remainder(master.high.size());
    encodeMaster24(master.high, master.low, weight, remainder);
    MR_TRY(write(group, StatePart::High, first, std::as_bytes(std::span(weight))));
    if (!hasRemainder(m_memory.stateCodec()))
        return {}; // to the nearest BF16: only steps are rounded at random
    return write(group, StatePart::Low, first, std::as_bytes(std::span(remainder)));
}

Status StateAccess::uploadWeights(GroupId group, std::int64_t first, const MasterView& master)
{
    std::byte* weights = m_memory.group(group).weights;
    if (!weights)
        return {}; // they come from the master in every step
    if (isLossless(m_memory.stateCodec()))
        return upload(weights, first, master);
    // Rounded otherwise than `high`.
    std::vector<std::uint16_t> weight(master.high.size());
    std::vector<std::int8_t> remainder(master.high.size());
    encodeMaster24(master.high, master.low, weight, remainder);
    return upload(weights, first, {weight, {}});
}

Status StateAccess::writeFrozen(GroupId group, std::int64_t first, const MasterView& master)
{
    const GroupMemory& memory = m_memory.group(group);
    if (memory.frozen)
        return upload(memory.frozen, first, master);
    const std::size_t each = sizeOf(m_memory.compute());
    const auto end = static_cast<std::int64_t>(memory.frozenOnHost.size() / each);
    const auto count =
        static_cast<std::size_t>(std::clamp<std::int64_t>(end - first, 0, std::ssize(master.high)));
    if (count == 0)
        return {}; // they are on disk
    const MasterView here = master.part(0, count);
    std::byte* to = memory.frozenOnHost.data() + static_cast<std::size_t>(first) * each;
    if (m_memory.compute() == DType::BF16)
        std::memcpy(to, here.high.data(), here.high.size_bytes());
    else
        std::transform(here.high.begin(), here.high.end(), here.low.begin(),
            reinterpret_cast<float*>(to), joinHalves);
    return {};
}

Status StateAccess::writePacked(GroupId group, std::size_t at, std::span<const std::byte> bytes)
{
    const GroupMemory& memory = m_memory.group(group);
    if (memory.frozen)
        return m_copier.toDevice(memory.frozen + at, bytes);
    if (at < memory.frozenOnHost.size())
        std::memcpy(memory.frozenOnHost.data() + at, bytes.data(),
            std::min(bytes.size(), memory.frozenOnHost.size() - at));
    return {};
}

Status StateAccess::readFrozen(GroupId group, std::int64_t first, std::span<std::byte> out)
{
    const GroupMemory& memory = m_memory.group(group);
    const std::size_t offset = static_cast<std::size_t>(first) * sizeOf(m_memory.compute());
    if (memory.frozen)
        return m_copier.toHost(out, memory.frozen + offset);
    std::memcpy(out.data(), memory.frozenOnHost.data() + offset, out.size());
    return {};
}

// In the compute type, to elements from `first` on.
Status StateAccess::upload(std::byte* weights, std::int64_t first, const MasterView& master)
{
    weights += static_cast<std::size_t>(first) * sizeOf(m_memory.compute());
    if (m_memory.compute() == DType::BF16)
        return m_copier.toDevice(weights, std::as_bytes(master.high));
    std::vector<float> joined(master.high.size());
    std::transform(
        master.high.begin(), master.high.end(), master.low.begin(), joined.begin(), joinHalves);
    return m_copier.toDevice(weights, std::as_bytes(std::span(joined)));
}

} // namespace mr
