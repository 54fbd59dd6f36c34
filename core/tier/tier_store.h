// TierStore: every byte a run holds, allocated once from a MemoryPlan and looked up by purpose.
//
// One buffer per item of the plan, so the memory held equals the plan, to the byte, and no step
// allocates, and all of them are zero after create(). The buffers of a tier are asked for together,
// so that a card gives them in one piece. A DiskStore holds the bytes on disk.
//
// Threads    create() and destruction on the engine thread; lookups from any thread.
// Ownership  Owns the buffers; the Device must outlive it.
// Errors     OutOfMemory names an item and its bytes; where the tier comes in one piece, the
// largest
//            item and the bytes of all.
// Units      Bytes.

#pragma once

#include "core/device/device.h"
#include "core/plan/memory_plan.h"

#include <millrace/status.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mr {

class TierStore
{
public:
    // `failed`, if given, is the tier of the item that could not be had.
    static Result<std::unique_ptr<TierStore>> create(
        Device& device, const MemoryPlan& plan, Tier* failed = nullptr);

    const MemoryPlan& plan() const noexcept { return m_plan; }

    // Takes another plan for these bytes; its items differ in their groups alone (turn_memory.h).
    // Internal: they differ otherwise, and nothing was done.
    Status takePlan(const MemoryPlan& plan);

    // Empty if the plan has no such item. `group` value -1: of the run.
    std::span<std::byte> find(Tier tier, MemoryUse use, GroupId group = {}) const noexcept;

private:
    explicit TierStore(MemoryPlan plan)
        : m_plan(std::move(plan))
    {
    }

    Status take(Device& device, Tier tier);

    MemoryPlan m_plan;
    std::vector<Buffer> m_buffers; // by index of m_plan.items
};

} // namespace mr
