// Copies outside a step: state out and in, weights published, constants filled.

#include "core/step/compact_master.h"
#include "core/step/step_executor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace mr {

Status StepExecutor::finish(Stream& lane)
{
    MR_TRY(lane.record(*m_idle[0]));
    m_device.submit();
    return m_idle[0]->wait();
}

Status StepExecutor::copyThroughStaging(
    std::byte* to, const std::byte* from, std::size_t bytes, bool toDevice, Stream* on)
{
    Stream& lane = on ? *on : stream(toDevice ? Lane::CopyIn : Lane::CopyOut);
    const std::span<std::byte> staging = m_memory.staging;
    for (std::size_t done = 0; done < bytes; done += staging.size()) {
        const std::size_t piece = std::min(staging.size(), bytes - done);
        if (toDevice)
            std::memcpy(staging.data(), from + done, piece);
        MR_TRY(lane.copy(toDevice ? to + done : staging.data(),
            {toDevice ? staging.data() : from + done, piece}));
        MR_TRY(finish(lane));
        if (!toDevice)
            std::memcpy(to + done, staging.data(), piece);
    }
    return {};
}

Status StepExecutor::readState(
    GroupId group, StatePart part, std::int64_t first, std::span<std::byte> out)
{
    if (m_memory.group(group).stateOnDevice)
        return copyThroughStaging(out.data(), planeAt(group, part, first), out.size(), false);
    const std::size_t here = inMemory(group, part, first, out.size());
    if (here > 0)
        std::memcpy(out.data(), planeAt(group, part, first), here);
    if (here == out.size())
        return {};
    const auto each = planeOf(m_memory.stateCodec(), part).valueBytes;
    return m_disk->read(
        group, part, first + static_cast<std::int64_t>(here / each), out.subspan(here));
}

Status StepExecutor::writeState(
    GroupId group, StatePart part, std::int64_t first, std::span<const std::byte> in)
{
    if (m_memory.group(group).stateOnDevice)
        return copyThroughStaging(planeAt(group, part, first), in.data(), in.size(), true);
    const std::size_t here = inMemory(group, part, first, in.size());
    if (here > 0)
        std::memcpy(planeAt(group, part, first), in.data(), here);
    if (here == in.size())
        return {};
    const auto each = planeOf(m_memory.stateCodec(), part).valueBytes;
    return m_disk->write(
        group, part, first + static_cast<std::int64_t>(here / each), in.subspan(here));
}

std::size_t StepExecutor::inMemory(
    GroupId group, StatePart part, std::int64_t first, std::size_t bytes) const
{
    const StatePlane& plane = planeOf(m_memory.stateCodec(), part);
    const DiskRegion region = m_memory.diskParts().regionOf(part);
    const std::int64_t end = plane.values(m_memory.group(group).diskEnds.of(region));
    const auto here = static_cast<std::size_t>(std::max<std::int64_t>(0, end - first));
    return std::min(bytes, here * plane.valueBytes);
}

Status StepExecutor::writeMaster(GroupId group, std::int64_t first, const MasterView& master)
{
    if (m_memory.stateCodec() == StateCodec::Plain) {
        MR_TRY(writeState(group, StatePart::High, first, std::as_bytes(master.high)));
        return writeState(group, StatePart::Low, first, std::as_bytes(master.low));
    }
    std::vector<std::uint16_t> weight(master.high.size());
    std::vector<std::int8_t> remainder(master.high.size());
    encodeMaster(master.high, master.low, weight, remainder);
    MR_TRY(writeState(group, StatePart::High, first, std::as_bytes(std::span(weight))));
    return writeState(group, StatePart::Low, first, std::as_bytes(std::span(remainder)));
}

Status StepExecutor::uploadWeights(GroupId group, std::int64_t first, const MasterView& master)
{
    std::byte* weights = m_memory.group(group).weights;
    if (!weights)
        return {}; // they come from the master in every step
    const std::size_t count = master.high.size();
    weights += static_cast<std::size_t>(first) * sizeOf(m_memory.compute());
    const auto upload = [&](const auto& values) {
        const auto bytes = std::as_bytes(std::span(values));
        return copyThroughStaging(weights, bytes.data(), bytes.size(), true);
    };
    if (m_memory.stateCodec() == StateCodec::Compact) { // rounded otherwise than `high`
        std::vector<std::uint16_t> weight(count);
        std::vector<std::int8_t> remainder(count);
        encodeMaster(master.high, master.low, weight, remainder);
        return upload(weight);
    }
    if (m_memory.compute() == DType::BF16)
        return upload(master.high);
    std::vector<float> joined(count);
    std::transform(
        master.high.begin(), master.high.end(), master.low.begin(), joined.begin(), joinHalves);
    return upload(joined);
}

Status StepExecutor::copyConstants()
{
    const ModelConstants& device = m_memory.constants;
    ModelConstants host = device;
    const std::array<std::pair<const TensorView*, TensorView*>, 5> tables = {{{&device.cosTable,
                                                                                  &host.cosTable},
        {&device.sinTable, &host.sinTable}, {&device.localCosTable, &host.localCosTable},
        {&device.localSinTable, &host.localSinTable}, {&device.headColumns, &host.headColumns}}};
    std::array<std::vector<std::byte>, 5> bytes;
    for (std::size_t i = 0; i < tables.size(); ++i)
        if (tables[i].first->data != nullptr) {
            bytes[i].resize(tables[i].first->bytes());
            tables[i].second->data = bytes[i].data();
        }
    fillConstants(m_config, m_turnedFor, host);
    for (const auto& [to, from] : tables)
        if (to->data != nullptr)
            MR_TRY(copyThroughStaging(to->data, from->data, to->bytes(), true));
    return {};
}

Result<bool> StepExecutor::turnFor(std::int64_t tokens)
{
    const RopeScaling& scaling = m_config.ropeScaling;
    if (!scaling.dependsOnLength())
        return false;
    const RopeShape shape = m_config.ropeShape();
    const RopeFrequencies before = ropeFrequencies(scaling, shape, m_turnedFor);
    m_turnedFor = tokens;
    if (ropeFrequencies(scaling, shape, tokens).inverse == before.inverse)
        return false;
    MR_TRY(copyConstants());
    MR_TRY(finish(stream(Lane::CopyIn)));
    return true;
}

Status StepExecutor::prepareMemory()
{
    m_turnedFor = m_memory.constants.cosTable.dims[0];
    MR_TRY(copyConstants());
    for (std::int64_t g = 0; g < m_memory.groupCount(); ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        const GroupMemory& group = m_memory.group(id);
        if (group.accumulator)
            MR_TRY(clearGaps(id, stream(Lane::CopyIn)));
        if (group.state[static_cast<std::size_t>(StatePart::FirstMoment)])
            MR_TRY(clearMoments(id));
    }
    MR_TRY(finish(stream(Lane::CopyIn)));
    return m_window ? m_window->prepare(stream(Lane::CopyIn), m_copy, m_finish) : Status();
}

Status StepExecutor::publishColumns()
{
    return m_window ? m_window->publish(stream(Lane::Compute), m_copy, m_finish) : Status();
}

Status StepExecutor::adoptColumns(bool areApart)
{
    if (!m_window)
        return {};
    return areApart ? m_window->adoptApart(m_copy)
                    : m_window->adopt(stream(Lane::Compute), m_copy, m_finish);
}

Status StepExecutor::installColumns(MasterReader& master)
{
    return m_window ? m_window->install(master, stream(Lane::Compute), m_copy, m_finish) : Status();
}

Status StepExecutor::readColumns(GroupId group, std::int64_t first, const MasterView& out)
{
    if (!m_window)
        return {};
    return m_window->readMaster(group, first, out, stream(Lane::Compute), m_copy, m_finish);
}

Status StepExecutor::applyPending(const Carry& carry, const StepInputs& inputs)
{
    if (!m_window)
        return {};
    return m_window->applyPending(carry, inputs, stream(Lane::Compute), m_copy, m_finish);
}

Status StepExecutor::copyBlocking(
    std::byte* to, const std::byte* from, std::size_t bytes, bool toDevice)
{
    return copyThroughStaging(to, from, bytes, toDevice);
}

// Zero bytes are zero moments in either codec. Tiles on disk are zero until they are written.
Status StepExecutor::clearMoments(GroupId group)
{
    for (const StatePart part : {StatePart::FirstMoment, StatePart::SecondMoment,
             StatePart::FirstScale, StatePart::SecondScale})
        MR_TRY(clearPlane(group, part));
    return {};
}

Status StepExecutor::clearPlane(GroupId group, StatePart part)
{
    const GroupMemory& memory = m_memory.group(group);
    const StatePlane& plane = planeOf(m_memory.stateCodec(), part);
    const std::int64_t values = plane.values(memory.elements);
    if (memory.stateOnDevice && plane.exists() && typeOf(m_memory.stateCodec(), part) == DType::F32)
        return m_device.ops().fill(
            {vectorView(planeAt(group, part, 0), DType::F32, values), 0.0F}, stream(Lane::CopyIn));
    const std::size_t all = inMemory(group, part, 0, plane.bytes(memory.elements));
    const std::vector<std::byte> zeros(std::min(m_memory.staging.size(), all));
    for (std::size_t done = 0; done < all; done += zeros.size()) {
        const std::size_t bytes = std::min(zeros.size(), all - done);
        const auto first = static_cast<std::int64_t>(done / plane.valueBytes);
        MR_TRY(writeState(group, part, first, {zeros.data(), bytes}));
    }
    return {};
}

} // namespace mr
