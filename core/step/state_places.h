// Where a task finds the gradient and the optimizer state of a range while it updates them.
//
// Threads  Pure functions of a run's memory.
// Units    Elements. The range of a host update begins at a multiple of kScaledElements.

#pragma once

#include "core/optim/host_updater.h"
#include "core/step/run_memory.h"

#include <array>
#include <cstdint>

namespace mr {

// Optimizer state of a range, as ops take it.
struct StateViews {
    std::array<TensorView, kStateParts> planes; // empty where the codec has none

    const TensorView& of(StatePart part) const noexcept
    {
        return planes[static_cast<std::size_t>(part)];
    }
};

// In BF16 weights that stay on the device are the high half.
bool isWeights(const RunMemory& memory, const GroupMemory& group, StatePart part);
// A value of a plane in the memory that is its home.
std::byte* planeAt(const RunMemory& memory, GroupId group, StatePart part, std::int64_t value);

// On the device, of a task that updates there.
StateViews stateOnDevice(
    const RunMemory& memory, const Task& task, std::int64_t first, std::int64_t count);
// Where weights stream it comes back with the state.
TensorView gradientOnDevice(
    const RunMemory& memory, const Task& task, std::int64_t first, std::int64_t count);

// Where the host finds the finished gradient of `first`: as RunMemory::hostState.
std::byte* gradientOnHost(const RunMemory& memory, const Task& task, std::int64_t first);
// The host's part of an update, of a range in which weight decay is the same.
HostUpdateRange hostRange(
    const RunMemory& memory, const Task& task, std::int64_t first, std::int64_t count);

} // namespace mr
