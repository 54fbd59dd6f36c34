#include "core/step/activation_memory.h"

namespace mr {

ActivationMemory::ActivationMemory(const TierStore& tiers, const ModelConfig& config,
    const MicroShape& shape, std::int64_t slots, Recompute recompute)
    : m_recompute(recompute)
    , m_layers(config.layers)
    , m_sets(static_cast<std::size_t>(
          recompute == Recompute::Block ? tiers.plan().activations.sets : slots * config.layers))
    , m_turns(tiers.plan().activations)
    , m_all(tiers.find(Tier::Device, MemoryUse::Activations))
    , m_host(tiers.find(Tier::PinnedHost, MemoryUse::Activations).data())
    , m_kept(tiers.plan().keptActivations)
{
    const bool isShared = recompute == Recompute::Cheap;
    std::byte* at = m_all.data();
    for (BlockActivations& set : m_sets) {
        m_setBytes = isShared ? layoutKept(config, shape, at, set)
                              : layoutActivations(config, shape, at, set);
        at += m_setBytes;
    }
    for (BlockActivations& set : m_sets)
        if (isShared)
            layoutRemade(config, shape, at, set);
}

std::size_t ActivationMemory::setOf(std::int64_t slot, std::int64_t block) const
{
    if (m_recompute != Recompute::Block)
        return static_cast<std::size_t>(slot * m_layers + block);
    return static_cast<std::size_t>(m_turns.setOf(static_cast<int>(block), static_cast<int>(slot)));
}

const BlockActivations& ActivationMemory::of(std::int64_t slot, std::int64_t block) const
{
    return m_sets[setOf(slot, block)];
}

std::span<std::byte> ActivationMemory::bytes(std::int64_t slot, std::int64_t block) const
{
    return m_all.subspan(setOf(slot, block) * m_setBytes, m_setBytes);
}

bool ActivationMemory::isKept(std::int64_t slot, std::int64_t layer) const noexcept
{
    return !m_kept.empty() && slot < m_kept[static_cast<std::size_t>(layer)];
}

std::byte* ActivationMemory::onHost(std::int64_t slot, std::int64_t layer) const noexcept
{
    std::int64_t before = slot;
    for (std::int64_t other = 0; other < layer; ++other)
        before += m_kept[static_cast<std::size_t>(other)];
    return m_host + static_cast<std::size_t>(before) * m_setBytes;
}

} // namespace mr
