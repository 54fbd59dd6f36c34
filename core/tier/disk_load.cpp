#include "core/tier/disk_load.h"

#include "core/base/clock.h"

#include <algorithm>

namespace mr {

void DiskBenchWatch::enter(double from, double to)
{
    m_from = from;
    m_length = to - from;
}

void DiskBenchWatch::at(double share) const
{
    if (m_spec.progress)
        m_spec.progress(m_from + m_length * std::min(share, 1.0));
}

Status DiskBenchWatch::status() const
{
    return cancelled() ? Status::error(ErrorKind::Cancelled, "the measurement was stopped")
                       : Status();
}

DiskLoad::DiskLoad(DiskStore& store, const DiskLoadGates& gates, std::span<std::byte> memory)
    : m_store(store)
    , m_gates(gates)
    , m_memory(memory)
    , m_tiles(static_cast<int>(store.layout().tiles.size()))
    , m_tileBytes(store.layout().tiles[0].bytes)
{
}

Status DiskLoad::warmUp(const DiskBenchWatch& watch)
{
    const int jobs = 3 * m_tiles;
    for (int i = 0; i < jobs && !watch.cancelled(); ++i) {
        MR_TRY(submit(DiskOp::Write, 0, m_tiles));
        watch.at(static_cast<double>(i) / jobs);
    }
    MR_TRY(drain());
    return watch.status();
}

Result<DiskSample> DiskLoad::sample(DiskMix mix, double seconds, const DiskBenchWatch& watch)
{
    const double processorBegin = processorSeconds();
    const std::int64_t begin = nowNs();
    const std::int64_t until = begin + static_cast<std::int64_t>(1e9 * seconds);
    const int half = m_tiles / 2;
    const bool mixed = mix == DiskMix::Mixed;
    std::uint64_t moved = 0;
    while (nowNs() < until && !watch.cancelled()) {
        if (mix != DiskMix::Write)
            MR_TRY(submit(DiskOp::Read, 0, mixed ? half : m_tiles));
        if (mix != DiskMix::Read)
            MR_TRY(submit(DiskOp::Write, mixed ? half : 0, mixed ? m_tiles - half : m_tiles));
        moved += m_tileBytes * (mixed ? 2 : 1);
        watch.at(1e-9 * static_cast<double>(nowNs() - begin) / seconds);
    }
    MR_TRY(drain());
    MR_TRY(watch.status());
    const double taken = 1e-9 * static_cast<double>(nowNs() - begin);
    return DiskSample{
        static_cast<double>(moved) / taken, (processorSeconds() - processorBegin) / taken};
}

Status DiskLoad::submit(DiskOp op, int first, int count)
{
    const auto way = static_cast<std::size_t>(op);
    const std::uint64_t number = m_submitted[way]++;
    if (number >= kDiskLoadBuffers)
        MR_TRY(m_store.waitFor(*m_gates[way], number + 1 - kDiskLoadBuffers));
    DiskJob job;
    job.op = op;
    job.queue = op == DiskOp::Read ? DiskQueue::StateIn : DiskQueue::Out;
    job.tile = DiskTileId{first + static_cast<int>(number % static_cast<unsigned>(count))};
    job.memory = m_memory.subspan(
        (way * kDiskLoadBuffers + number % kDiskLoadBuffers) * m_tileBytes, m_tileBytes);
    job.gate = m_gates[way].get();
    job.generation = number + 1;
    m_store.submit(job);
    return {};
}

Status DiskLoad::drain()
{
    for (std::size_t way = 0; way < m_gates.size(); ++way)
        MR_TRY(m_store.waitFor(*m_gates[way], m_submitted[way]));
    return {};
}

} // namespace mr
