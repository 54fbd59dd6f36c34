#include "core/device/cpu/cpu_streams.h"

#include <algorithm>
#include <cstring>

namespace mr {

void CpuShared::submit() noexcept
{
    for (ThreadedStream* stream : threaded)
        stream->publish();
}

Status CpuStreamBase::record(Event& event)
{
    Point& point = m_shared.points.take();
    static_cast<CpuEvent&>(event).move(&point);
    point.hold();
    put(
        [point = &point] {
            point->pass();
            point->drop();
        },
        true);
    return {};
}

Status CpuStreamBase::waitFor(Event& event)
{
    Point* point = static_cast<CpuEvent&>(event).point();
    if (!point)
        return {};
    point->hold();
    put(
        [this, point] {
            waitForPoint(*point);
            point->drop();
        },
        true);
    return {};
}

Status CpuStreamBase::copy(std::byte* to, std::span<const std::byte> from)
{
    if (from.empty())
        return {};
    const auto target = m_shared.memory.find(to, from.size());
    const auto source = m_shared.memory.find(from.data(), from.size());
    if (!target || !source)
        return Status::error(ErrorKind::InvalidArgument,
            "cpu stream " + m_name + ": copy of " + std::to_string(from.size()) + " bytes: the " +
                (source ? "target" : "source") +
                " is not inside one allocation of this device, device or pinned");
    CpuLink* link = nullptr;
    if (*target != *source) {
        const bool toDevice = *target == MemoryKind::Device;
        link = toDevice ? &m_shared.toDevice : &m_shared.toHost;
        (toDevice ? m_shared.copied.toDevice : m_shared.copied.toHost) +=
            static_cast<std::int64_t>(from.size());
    }
    if (link && !link->limited())
        link = nullptr;
    return enqueue([link, to, from] {
        const std::int64_t endNs = link ? link->reserve(from.size()) : 0;
        std::memcpy(to, from.data(), from.size());
        if (link)
            CpuLink::waitUntil(endNs);
    });
}

void CpuStreamBase::runTask(Task& task) noexcept
{
    if (!task.always && (m_abandoned || m_shared.failure.lost()))
        return;
    try {
        if (const Status status = task.run(task.closure); !status.ok())
            m_shared.failure.set(status);
    } catch (const std::bad_alloc&) {
        m_shared.failure.set(Status::error(
            ErrorKind::OutOfMemory, "stream " + m_name + ": the system has no memory left"));
    }
}

Status InlineStream::waitFor(Gate& gate, std::uint64_t generation)
{
    if (gate.isOpen(generation))
        return {};
    return Status::error(ErrorKind::Internal,
        "cpu stream " + m_name + ": gate " + static_cast<CpuGate&>(gate).name() +
            " is not open for generation " + std::to_string(generation));
}

} // namespace mr
