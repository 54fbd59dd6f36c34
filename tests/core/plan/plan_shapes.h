// Small models and policies that plan tests share.

#pragma once

#include "core/plan/disk_cuts.h"
#include "core/plan/placement.h"
#include "core/plan/policies.h"
#include "core/plan/policy.h"
#include "core/plan/router.h"
#include "core/plan/traversal.h"
#include "core/plan/update_clock.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace mr::test {

inline constexpr std::int64_t kGroupElements = 4096;

// Every rate; layers have no measured seconds.
inline Feedback rates(double hostToDevice, double deviceToHost, double hostAdamw,
    double deviceAdamw, double deviceFlops = 1.0)
{
    Feedback rates;
    rates.hostToDeviceBytesPerSecond = hostToDevice;
    rates.deviceToHostBytesPerSecond = deviceToHost;
    rates.hostAdamwElementsPerSecond = hostAdamw;
    rates.deviceAdamwElementsPerSecond = deviceAdamw;
    rates.deviceFlopsPerSecond = deviceFlops;
    return rates;
}

// An embedding, `blocks` blocks and a head of the same size; bytes of no use are 0.
inline ModelShape smallShape(int blocks)
{
    ModelShape shape;
    shape.groups.push_back({"embedding", kGroupElements, 0.0, 0.0});
    for (int i = 0; i < blocks; ++i)
        shape.groups.push_back({"block " + std::to_string(i), kGroupElements, 100.0, 200.0});
    shape.groups.push_back({"head", kGroupElements, 50.0, 100.0});
    return shape;
}

// smallShape() with weights: in every group a matrix that does not fill it, in a block also a
// matrix with few columns, and a vector.
inline ModelShape columnShape(int blocks)
{
    ModelShape shape = smallShape(blocks);
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        auto& weights = shape.groups[g].weights;
        weights.push_back({0, 60, 48, false});
        if (g == 0 || g + 1 == shape.groups.size())
            continue;
        weights.push_back({2880, 1, 64, true});
        weights.push_back({2944, 96, 10, false});
    }
    return shape;
}

inline Budget endless()
{
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
    return {kMost, kMost, kMost};
}

inline OffloadPolicy policyOf(std::string_view name, std::string order = "by-microbatch")
{
    Result<OffloadPolicy> made = makePolicy(name, {{"order", std::move(order)}});
    return made.ok() ? std::move(made).value() : OffloadPolicy{};
}

// Options as a run file gives them; an answer that is refused leaves a policy without answers.
inline OffloadPolicy policyWith(std::string_view name,
    const std::map<std::string, std::string>& options, LightChoice light = {})
{
    Result<OffloadPolicy> made = makePolicy(name, options, light);
    return made.ok() ? std::move(made).value() : OffloadPolicy{};
}

// zero-offload of which `share` of the host's updates may wait for the next forward.
inline OffloadPolicy latePolicy(double share)
{
    OffloadPolicy policy = policyOf("zero-offload");
    policy.clock = makeUniformClock({share, 1, 0});
    return policy;
}

// Steps of tests clip, so that updates wait for the norm of all groups.
inline StepSpec specOf(StepIndex step, int microBatches)
{
    StepSpec spec;
    spec.clipNorm = 1.0;
    spec.step = step;
    spec.microBatches = microBatches;
    return spec;
}

inline Carry carryOf(StepIndex step)
{
    Carry carry;
    carry.step = step;
    carry.window = step;
    return carry;
}

// Qt makes a keyword of `slots`, so tests name them here.
inline std::size_t heldSlots(const Carry& carry)
{
    return carry.heldSlots.size();
}
inline int slotsOf(const DiskCuts& cuts)
{
    return cuts.slots;
}
inline void holdSlot(Carry& carry, HeldSlot slot)
{
    carry.heldSlots.push_back(slot);
}

// A task of a whole group that an earlier step left running.
inline UnfinishedTask leftRunning(TaskKind kind, Lane lane, GroupId group)
{
    UnfinishedTask left{Task{}, Wait::onTask(0)};
    left.task.kind = kind;
    left.task.lane = lane;
    left.task.group = group;
    left.task.elementCount = group.value >= 0 ? kGroupElements : 0;
    return left;
}

} // namespace mr::test
