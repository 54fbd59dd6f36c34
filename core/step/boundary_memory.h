// BoundaryMemory: the activations between layers, on the device and where they wait for backward.
//
// Threads    Constant after construction.
// Ownership  Borrows the bytes of the TierStore.
// Errors     None.

#pragma once

#include "core/device/input_codes.h"
#include "core/model/layout.h"
#include "core/plan/boundary_homes.h"
#include "core/tier/tier_store.h"

#include <cstddef>
#include <cstdint>
#include <span>

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
    // Do inputs of blocks wait for backward in codes?
    bool hasCodes() const noexcept { return !m_codes.empty(); }
    TensorView codes(std::int64_t slot, std::int64_t layer) const;  // (T, H), I8
    TensorView scales(std::int64_t slot, std::int64_t layer) const; // (T, groups of H), F32
    // The bytes that wait for backward: the activation, or its codes and scales.
    std::span<std::byte> kept(std::int64_t slot, std::int64_t layer) const;
    // Their copy on the host, where that is their home; and their tile of the store, where that is
    // (-1: they have none).
    std::byte* onHost(std::int64_t slot, std::int64_t layer) const;
    std::int32_t stored(std::int64_t slot, std::int64_t layer) const noexcept;

private:
    TensorView at(std::byte* base, std::size_t index) const;

    TensorView m_one; // its shape and bytes
    CodedBytes m_coded;
    std::byte* m_device = nullptr;
    std::span<std::byte> m_codes; // on the device
    std::byte* m_host = nullptr;
    std::size_t m_count = 1;
    std::int64_t m_each = 0;      // places for a micro-batch in flight: outputs, and the gradient
    std::int64_t m_codesEach = 1; // and of codes
    BoundaryHomes m_homes;
    std::int32_t m_firstStored = 0;
};

} // namespace mr
