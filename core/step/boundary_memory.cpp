#include "core/step/boundary_memory.h"

#include <algorithm>

namespace mr {

BoundaryMemory::BoundaryMemory(
    const TierStore& tiers, const ModelConfig& config, const MicroShape& shape)
    : m_one(matrixView(nullptr, shape.compute, shape.tokens(), config.hidden))
    , m_host(tiers.find(Tier::PinnedHost, MemoryUse::Boundaries).data())
    , m_each(config.layers + 2)
    , m_homes(tiers.plan().boundaries)
    , m_firstStored(tiers.plan().firstBoundary())
{
    const std::span<std::byte> device = tiers.find(Tier::Device, MemoryUse::Boundaries);
    m_device = device.data();
    m_count = device.size() / m_one.bytes();
    if (tiers.plan().savesBoundaries)
        m_each = std::min<std::int64_t>(m_each, 3);
}

TensorView BoundaryMemory::at(std::byte* base, std::size_t index) const
{
    TensorView view = m_one;
    view.data = base + index * view.bytes();
    return view;
}

TensorView BoundaryMemory::of(std::int64_t slot, std::int64_t layer) const
{
    // Where their home is the host, outputs of layers take turns in two.
    const auto index = static_cast<std::size_t>(slot * m_each + layer % (m_each - 1));
    return at(m_device, index % m_count); // evaluation alone has two, used in turn
}

TensorView BoundaryMemory::gradient(std::int64_t slot) const
{
    return at(m_device, static_cast<std::size_t>((slot + 1) * m_each - 1));
}

TensorView BoundaryMemory::onHost(std::int64_t slot, std::int64_t layer) const
{
    return at(m_host,
        static_cast<std::size_t>(m_homes.copyOf(static_cast<int>(layer), static_cast<int>(slot))));
}

std::int32_t BoundaryMemory::stored(std::int64_t slot, std::int64_t layer) const noexcept
{
    const std::int32_t tile = m_homes.tileOf(static_cast<int>(layer), static_cast<int>(slot));
    return tile < 0 ? -1 : m_firstStored + tile;
}

} // namespace mr
