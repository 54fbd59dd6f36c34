#include "core/tier/tier_store.h"

#include <algorithm>
#include <cstddef>

namespace mr {

Result<std::unique_ptr<TierStore>> TierStore::create(
    Device& device, const MemoryPlan& plan, Tier* failed)
{
    auto store = std::unique_ptr<TierStore>(new TierStore(plan));
    store->m_buffers.resize(plan.items.size());
    for (const Tier tier : {Tier::Device, Tier::PinnedHost}) {
        const Status taken = store->take(device, tier);
        if (!taken.ok() && failed)
            *failed = tier;
        MR_TRY(taken);
    }
    return store;
}

Status TierStore::takePlan(const MemoryPlan& plan)
{
    const bool isAlike = std::equal(m_plan.items.begin(), m_plan.items.end(), plan.items.begin(),
        plan.items.end(), [](const MemoryItem& a, const MemoryItem& b) {
            return a.tier == b.tier && a.use == b.use && a.bytes == b.bytes;
        });
    if (!isAlike)
        return Status::error(ErrorKind::Internal, "tier store: the plan has other bytes");
    m_plan = plan;
    return {};
}

Status TierStore::take(Device& device, Tier tier)
{
    std::vector<BufferWish> wishes;
    std::vector<std::size_t> indices; // of their items
    for (std::size_t i = 0; i < m_plan.items.size(); ++i) {
        if (m_plan.items[i].tier != tier)
            continue;
        wishes.push_back({m_plan.items[i].bytes, name(m_plan.items[i].use)});
        indices.push_back(i);
    }
    const MemoryKind kind = tier == Tier::Device ? MemoryKind::Device : MemoryKind::PinnedHost;
    MR_ASSIGN(auto buffers, device.allocateTogether(wishes, kind));
    for (std::size_t i = 0; i < buffers.size(); ++i)
        m_buffers[indices[i]] = std::move(buffers[i]);
    return {};
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
