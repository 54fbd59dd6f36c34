// BoundaryMemory: the activations between layers, on the device and where they wait for backward.
//
// Threads    Constant after construction.
// Ownership  Borrows the bytes of the TierStore.
// Errors     None.

#pragma once

#include "core/model/layout.h"
#include "core/plan/boundary_homes.h"
#include "core/tier/tier_store.h"

#include <cstddef>
#include <cstdint>

namespace mr {

class BoundaryMemory
{
public:
    BoundaryMemory() = default;
    BoundaryMemory(const TierStore& tiers, const ModelConfig& config, const MicroShape& shape);

    // The activation that layer `layer` hands on, for the micro-batch in `slot`; (T, H), c.
    TensorView of(std::int64_t slot, std::int64_t layer) const;
    // The gradient that backward hands on.
    TensorView gradient(std::int64_t slot) const;
    // Its copy on the host, where that is its home; and its tile of the store, where that is (-1:
    // it has none).
    TensorView onHost(std::int64_t slot, std::int64_t layer) const;
    std::int32_t stored(std::int64_t slot, std::int64_t layer) const noexcept;

private:
    TensorView at(std::byte* base, std::size_t index) const;

    TensorView m_one; // its shape and bytes
    std::byte* m_device = nullptr;
    std::byte* m_host = nullptr;
    std::size_t m_count = 1;
    std::int64_t m_each = 0; // places for a micro-batch in flight: outputs, and the gradient
    BoundaryHomes m_homes;
    std::int32_t m_firstStored = 0;
};

} // namespace mr
