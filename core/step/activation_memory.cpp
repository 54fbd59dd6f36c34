#include "core/step/activation_memory.h"

namespace mr {

ActivationMemory::ActivationMemory(const TierStore& tiers, const ModelConfig& config,
    const MicroShape& shape, std::int64_t slots, Recompute recompute)
    : m_recompute(recompute)
    , m_hidden(config.hidden)
    , m_shape(shape)
    , m_sets(static_cast<std::size_t>(
          recompute == Recompute::Block ? tiers.plan().activations.sets : slots * config.layers))
    , m_each(blockBytes(config, shape))
    , m_turns(tiers.plan().activations)
    , m_all(tiers.find(Tier::Device, MemoryUse::Activations))
    , m_host(tiers.find(Tier::PinnedHost, MemoryUse::Activations).data())
    , m_kept(tiers.plan().keptActivations)
{
    for (std::int64_t block = 0; block < config.layers; ++block)
        m_kinds.push_back(config.kindOf(block));
}

std::size_t ActivationMemory::setOf(std::int64_t slot, std::int64_t block) const
{
    if (m_recompute != Recompute::Block)
        return static_cast<std::size_t>(slot) * m_kinds.size() + static_cast<std::size_t>(block);
    return static_cast<std::size_t>(m_turns.setOf(static_cast<int>(block), static_cast<int>(slot)));
}

std::size_t ActivationMemory::setBytes() const noexcept
{
    return m_recompute == Recompute::Cheap ? m_each.kept : m_each.activations();
}

BlockActivations ActivationMemory::of(std::int64_t slot, std::int64_t block) const
{
    const BlockWidths widths{m_kinds[static_cast<std::size_t>(block)], m_hidden};
    std::byte* set = m_all.data() + setOf(slot, block) * setBytes();
    std::byte* remade =
        m_recompute == Recompute::Cheap ? m_all.data() + m_sets * setBytes() : set + m_each.kept;
    BlockActivations activations;
    layoutKept(widths, m_shape, set, activations);
    layoutRemade(widths, m_shape, remade, activations);
    return activations;
}

std::span<std::byte> ActivationMemory::bytes(std::int64_t slot, std::int64_t block) const
{
    return m_all.subspan(setOf(slot, block) * setBytes(), setBytes());
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
    return m_host + static_cast<std::size_t>(before) * setBytes();
}

} // namespace mr
