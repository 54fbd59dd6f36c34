#include "core/tier/tier_store.h"

#include <algorithm>
#include <string>

namespace mr {

Result<std::unique_ptr<TierStore>> TierStore::create(
    Device& device, const MemoryPlan& plan, Tier* failed)
{
    auto store = std::unique_ptr<TierStore>(new TierStore(plan));
    store->m_buffers.reserve(plan.items.size());
    for (const MemoryItem& item : plan.items) {
        if (item.tier == Tier::Disk) {
            store->m_buffers.emplace_back();
            continue;
        }
        const MemoryKind kind =
            item.tier == Tier::Device ? MemoryKind::Device : MemoryKind::PinnedHost;
        auto buffer = device.allocate(item.bytes, kind, name(item.use));
        if (!buffer.ok()) {
            if (failed)
                *failed = item.tier;
            return buffer.status();
        }
        store->m_buffers.push_back(std::move(buffer).value());
    }
    return store;
}

std::span<std::byte> TierStore::find(Tier tier, MemoryUse use, GroupId group) const noexcept
{
    for (std::size_t i = 0; i < m_plan.items.size(); ++i) {
        const MemoryItem& item = m_plan.items[i];
        if (item.tier == tier && item.use == use && item.group == group)
            return {m_buffers[i].data(), m_buffers[i].bytes()};
    }
    return {};
}

} // namespace mr
