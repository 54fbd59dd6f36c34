#include "core/plan/turn_memory.h"

#include "core/plan/memory_plan_internal.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace mr {

bool goesWithTurn(const MemoryItem& item, GroupId trained) noexcept
{
    return item.group == trained && item.use != MemoryUse::FrozenWeights;
}

std::vector<MemoryItem> heldByTurns(
    const std::vector<MemoryPlan>& plans, const std::vector<GroupId>& groups, GroupId trained)
{
    std::map<std::tuple<Tier, MemoryUse, GroupId>, std::size_t> most;
    for (std::size_t p = 0; p < plans.size(); ++p)
        for (const MemoryItem& item : plans[p].items) {
            const GroupId group = goesWithTurn(item, groups[p]) ? trained : item.group;
            std::size_t& bytes = most[{item.tier, item.use, group}];
            bytes = std::max(bytes, item.bytes);
        }
    ItemList list;
    for (const auto& [key, bytes] : most)
        list.add(std::get<Tier>(key), std::get<MemoryUse>(key), std::get<GroupId>(key), bytes);
    return list.take();
}

} // namespace mr
