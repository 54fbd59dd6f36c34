// ActivationMemory: the activations that forward keeps for backward, on the device and on the host.
//
// Threads    Constant after construction.
// Ownership  Borrows the bytes of the TierStore.
// Errors     None.

#pragma once

#include "core/model/layout.h"
#include "core/plan/plan.h"
#include "core/plan/recompute.h"
#include "core/tier/tier_store.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

class ActivationMemory
{
public:
    ActivationMemory() = default;
    // Each of `slots` micro-batches in flight has a set for every block. With recompute=block sets
    // are used in turn; with recompute=cheap all sets share the part that is made again.
    ActivationMemory(const TierStore& tiers, const ModelConfig& config, const MicroShape& shape,
        std::int64_t slots, Recompute recompute);

    BlockActivations of(std::int64_t slot, std::int64_t block) const;
    std::span<std::byte> bytes(std::int64_t slot, std::int64_t block) const;
    // Whether a training step keeps those of a layer on the host, and where.
    bool isKept(std::int64_t slot, std::int64_t layer) const noexcept;
    std::byte* onHost(std::int64_t slot, std::int64_t layer) const noexcept;

private:
    std::size_t setOf(std::int64_t slot, std::int64_t block) const;
    std::size_t setBytes() const noexcept;

    Recompute m_recompute = Recompute::None;
    std::vector<BlockKind> m_kinds; // by block
    std::int64_t m_hidden = 0;
    MicroShape m_shape;
    std::size_t m_sets = 0; // by slot, then block; with recompute=block in turns
    BlockBytes m_each;      // any block has room in a set
    ActivationTurns m_turns;
    std::span<std::byte> m_all;
    std::byte* m_host = nullptr;
    std::vector<std::int32_t> m_kept; // MemoryPlan::keptActivations
};

} // namespace mr
