#include "core/step/boundary_memory.h"

#include <algorithm>

namespace mr {

BoundaryMemory::BoundaryMemory(
    const TierStore& tiers, const ModelConfig& config, const MicroShape& shape)
    : m_one(matrixView(nullptr, shape.compute, shape.tokens(), config.hidden))
    , m_coded(codedBytes(shape.tokens(), config.hidden))
    , m_codes(tiers.find(Tier::Device, MemoryUse::InputCodes))
    , m_host(tiers.find(Tier::PinnedHost, MemoryUse::Boundaries).data())
    , m_each(config.layers + 2)
    , m_homes(tiers.plan().boundaries)
    , m_firstStored(tiers.plan().firstBoundary())
{
    const std::span<std::byte> device = tiers.find(Tier::Device, MemoryUse::Boundaries);
    m_device = device.data();
    m_count = device.size() / m_one.bytes();
    const bool saves = tiers.plan().savesBoundaries;
    if (saves || hasCodes() || isForwardOnly(tiers.plan().optimizer))
        m_each = std::min<std::int64_t>(m_each, 3);
    m_codesEach = saves ? std::min<std::int64_t>(config.layers, 2) : config.layers;
}

TensorView BoundaryMemory::at(std::byte* base, std::size_t index) const
{
    TensorView view = m_one;
    view.data = base + index * view.bytes();
    return view;
}

TensorView BoundaryMemory::of(std::int64_t slot, std::int64_t layer) const
{
    // Outputs of layers take turns in two places if their home is the host, or codes wait instead.
    const auto index = static_cast<std::size_t>(slot * m_each + layer % (m_each - 1));
    return at(m_device, index % m_count); // evaluation alone has two, used in turn
}

TensorView BoundaryMemory::gradient(std::int64_t slot) const
{
    return at(m_device, static_cast<std::size_t>((slot + 1) * m_each - 1));
}

std::span<std::byte> BoundaryMemory::kept(std::int64_t slot, std::int64_t layer) const
{
    if (!hasCodes()) {
        const TensorView whole = of(slot, layer);
        return {whole.data, whole.bytes()};
    }
    const auto index = static_cast<std::size_t>(slot * m_codesEach + layer % m_codesEach);
    return m_codes.subspan(index * m_coded.all, m_coded.all);
}

TensorView BoundaryMemory::codes(std::int64_t slot, std::int64_t layer) const
{
    return matrixView(kept(slot, layer).data(), DType::I8, m_one.dims[0], m_one.dims[1]);
}

TensorView BoundaryMemory::scales(std::int64_t slot, std::int64_t layer) const
{
    return matrixView(kept(slot, layer).data() + m_coded.scales, DType::F32, m_one.dims[0],
        codedGroups(m_one.dims[1]));
}

std::byte* BoundaryMemory::onHost(std::int64_t slot, std::int64_t layer) const
{
    const int copy = m_homes.copyOf(static_cast<int>(layer), static_cast<int>(slot));
    return m_host + static_cast<std::size_t>(copy) * (hasCodes() ? m_coded.all : m_one.bytes());
}

std::int32_t BoundaryMemory::stored(std::int64_t slot, std::int64_t layer) const noexcept
{
    const std::int32_t tile = m_homes.tileOf(static_cast<int>(layer), static_cast<int>(slot));
    return tile < 0 ? -1 : m_firstStored + tile;
}

} // namespace mr
