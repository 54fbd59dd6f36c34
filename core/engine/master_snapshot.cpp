// The master of a whole model in host memory, from and to wherever a run keeps it.

#include "core/engine/checkpoint.h"
#include "core/engine/compact_master.h"

#include <algorithm>

namespace mr {

MasterBuffers::MasterBuffers(const ParamTable& table)
{
    for (const ParamGroup& group : table.groups) {
        m_high.emplace_back(static_cast<std::size_t>(group.elements));
        m_low.emplace_back(static_cast<std::size_t>(group.elements));
    }
    for (std::size_t g = 0; g < table.groups.size(); ++g)
        m_views.push_back({m_high[g], m_low[g]});
}

Result<MasterSnapshot> MasterSnapshot::take(StepExecutor& executor, const RunMemory& memory)
{
    if (memory.stateCodec() == StateCodec::Compact)
        return decode(executor, memory);
    MR_TRY(executor.publishColumns());
    MasterSnapshot snapshot;
    const auto groups = static_cast<std::size_t>(memory.groupCount());
    snapshot.m_high.resize(groups);
    snapshot.m_low.resize(groups);
    for (std::size_t g = 0; g < groups; ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        const GroupMemory& group = memory.group(id);
        const auto count = static_cast<std::size_t>(group.elements);
        if (!group.stateOnDevice && group.diskFirst == group.elements) {
            const auto at = [&](StatePart p) { return group.state[static_cast<std::size_t>(p)]; };
            snapshot.m_views.push_back(
                {{reinterpret_cast<std::uint16_t*>(at(StatePart::High)), count},
                    {reinterpret_cast<std::int16_t*>(at(StatePart::Low)), count}});
            continue;
        }
        snapshot.m_high[g].resize(count);
        snapshot.m_low[g].resize(count);
        snapshot.m_views.push_back({snapshot.m_high[g], snapshot.m_low[g]});
        MR_TRY(executor.readState(
            id, StatePart::High, 0, std::as_writable_bytes(std::span(snapshot.m_high[g]))));
        MR_TRY(executor.readState(
            id, StatePart::Low, 0, std::as_writable_bytes(std::span(snapshot.m_low[g]))));
    }
    return snapshot;
}

Result<MasterSnapshot> MasterSnapshot::decode(StepExecutor& executor, const RunMemory& memory)
{
    MasterSnapshot snapshot;
    const auto groups = static_cast<std::size_t>(memory.groupCount());
    snapshot.m_high.resize(groups);
    snapshot.m_low.resize(groups);
    std::vector<std::uint16_t> weight;
    std::vector<std::int8_t> remainder;
    for (std::size_t g = 0; g < groups; ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        weight.resize(static_cast<std::size_t>(memory.group(id).elements));
        remainder.resize(weight.size());
        snapshot.m_high[g].resize(weight.size());
        snapshot.m_low[g].resize(weight.size());
        const MasterView view{snapshot.m_high[g], snapshot.m_low[g]};
        MR_TRY(
            executor.readState(id, StatePart::High, 0, std::as_writable_bytes(std::span(weight))));
        MR_TRY(executor.readState(
            id, StatePart::Low, 0, std::as_writable_bytes(std::span(remainder))));
        decodeMaster(weight, remainder, view.high, view.low);
        snapshot.m_views.push_back(view);
    }
    MR_TRY(executor.readColumns(snapshot.m_views)); // of which the host's planes hold nothing
    return snapshot;
}

Result<MasterSnapshot> MasterSnapshot::takeWeights(StepExecutor& executor, const RunMemory& memory)
{
    MasterSnapshot snapshot;
    const auto groups = static_cast<std::size_t>(memory.groupCount());
    snapshot.m_high.resize(groups);
    snapshot.m_low.resize(groups);
    for (std::size_t g = 0; g < groups; ++g) {
        const GroupMemory& group = memory.group(GroupId{static_cast<std::int32_t>(g)});
        auto& high = snapshot.m_high[g];
        auto& low = snapshot.m_low[g];
        high.resize(static_cast<std::size_t>(group.elements));
        low.resize(high.size());
        if (memory.compute() == DType::BF16) {
            MR_TRY(executor.copyBlocking(
                reinterpret_cast<std::byte*>(high.data()), group.weights, 2 * high.size(), false));
        } else {
            std::vector<float> joined(high.size());
            MR_TRY(executor.copyBlocking(reinterpret_cast<std::byte*>(joined.data()), group.weights,
                4 * joined.size(), false));
            std::transform(joined.begin(), joined.end(), high.begin(), highHalf);
            std::transform(joined.begin(), joined.end(), low.begin(), lowHalf);
        }
        snapshot.m_views.push_back({high, low});
    }
    return snapshot;
}

Status installMaster(
    StepExecutor& executor, const RunMemory& memory, std::span<const MasterView> views)
{
    for (std::size_t g = 0; g < views.size(); ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        if (memory.group(id).state[0])
            MR_TRY(executor.writeMaster(id, views[g]));
        MR_TRY(executor.uploadWeights(id, views[g]));
    }
    return executor.installColumns(views);
}

} // namespace mr
