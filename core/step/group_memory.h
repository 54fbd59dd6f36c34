// GroupMemory: where the weights, gradients and optimizer state of one group lie.
//
// Where state lives is a consequence of the policy: on the device where the device updates it, else
// on the host. StateAccess hides that.
//
// Threads    Values, constant after bindGroup(); views may be copied anywhere.
// Ownership  Borrows the bytes of the TierStore.
// Errors     None; bytes that the plan lacks are null.
// Units      Elements and bytes as named.

#pragma once

#include "core/device/compact_state.h"
#include "core/model/block.h"
#include "core/model/packed_group.h"
#include "core/model/param_table.h"
#include "core/plan/plan.h"
#include "core/tier/tier_store.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

// The type of the values of a plane that exists.
DType typeOf(StateCodec codec, StatePart part) noexcept;

// One group. Null where the plan holds no such bytes.
struct GroupMemory {
    std::int64_t elements = 0;
    std::int64_t sentFirst = 0;   // the host gets gradients from this element on
    std::byte* weights = nullptr; // device, c: read by ops; null: they come to a slot
    // The model's weights, c, if no step changes them: on the device, or on the host as far as they
    // are not on disk.
    std::int64_t frozenElements = 0;
    std::byte* frozen = nullptr;
    std::span<std::byte> frozenOnHost;
    PackedGroup packed;               // how they lie there, where they are packed
    std::byte* accumulator = nullptr; // device; blocks may share it (GradientHomes)
    DType sumType = DType::F32;       // of the accumulator
    // The finished gradient, on the device: of the elements before sentFirst, and of those from
    // there on, which blocks may share.
    std::byte* gradient = nullptr;
    std::byte* sentGradient = nullptr;
    std::byte* hostGradient = nullptr; // from sentFirst on
    bool stateOnDevice = false;
    bool highOnDevice = false; // the weights there are the high half
    DiskEnds diskEnds;
    std::array<std::byte*, kStateParts> state{}; // where isOnDevice() says
    std::span<std::byte> averages;               // device: of a light optimizer
    // A block's: where its weights stay, or in each of the slots they may come to.
    std::vector<BlockTensors> weightViews;
    BlockTensors gradientViews; // of the accumulator
    // Between its slots, where blocks of other slots share it: they become zero before a sum
    // begins.
    std::vector<TensorView> sharedGaps;
    BlockAdapter adapter; // of a frozen block, in `weights`
    BlockAdapter adapterGradients;

    // Elements [first, first + count) of the finished gradient. Precondition: they lie on one
    // side of sentFirst.
    TensorView finished(DType type, std::int64_t first, std::int64_t count) const
    {
        std::byte* base = first < sentFirst ? gradient : sentGradient;
        const std::int64_t at = first < sentFirst ? first : first - sentFirst;
        return vectorView(base + static_cast<std::size_t>(at) * sizeOf(type), type, count);
    }
    // The copy of the finished gradient on the host, from `first` on.
    std::byte* gradientOnHost(DType type, std::int64_t first) const
    {
        return hostGradient + static_cast<std::size_t>(first - sentFirst) * sizeOf(type);
    }
    bool isOnDevice(StatePart part) const noexcept
    {
        return stateOnDevice || (part == StatePart::High && highOnDevice);
    }
    // The accumulator becomes the finished gradient where it is.
    bool sumIsFinished() const noexcept { return gradient == accumulator; }
    // In training.
    bool streams() const noexcept { return elements > 0 && !weights; }
    // Where the model's own weights lie; null: they come to a slot.
    std::byte* modelWeights() const noexcept
    {
        if (isPacked())
            return nullptr;
        return isFrozen() ? frozen : weights;
    }
    bool isFrozen() const noexcept { return frozenElements > 0; }
    bool isPacked() const noexcept { return packed.bytes > 0; }
    const BlockAdapter* adapterOrNull() const noexcept
    {
        return isFrozen() && weights ? &adapter : nullptr;
    }
};

// Compact state with parts that begin at these places. Precondition: all exist.
CompactRange compactRange(
    const std::array<std::byte*, kStateParts>& at, std::int64_t count) noexcept;
// Elements [first, first + count) of a group. Preconditions: its state is compact and on the host,
// and `first` is a multiple of kCompactGroup.
CompactRange compactRange(
    const GroupMemory& group, std::int64_t first, std::int64_t count) noexcept;

// A tile of optimizer state that visits the device, by part. Null where the codec has no such
// plane. In BF16 where no weights stream, High is null, because the weights that stay are High, and
// `gradient` is null, too.
struct StateSlot {
    std::array<std::byte*, kStateParts> parts{};
    std::byte* gradient = nullptr;
};

// `weightSlots` are where weights that stream come to.
GroupMemory bindGroup(const TierStore& tiers, const ParamTable& table, GroupId id, DType compute,
    std::span<std::byte* const> weightSlots);
// GroupMemory::sharedGaps of all groups.
void bindSharedGaps(
    const GradientHomes& homes, const ParamTable& table, std::vector<GroupMemory>& groups);

// Empty where no state visits the device.
std::vector<StateSlot> bindStateSlots(const TierStore& tiers, DType compute);

} // namespace mr
