// DiskLanes: the lanes of a step that move tiles between disk and host memory, as StepLanes needs
// them. DiskTasks implements it.
//
// Threads  Engine thread.
// Errors   submit(): the task cannot be carried out. waitFor(): the failure of an earlier move.

#pragma once

#include "core/device/device.h"
#include "core/plan/plan.h"
#include "core/tier/disk_jobs.h"

#include <millrace/status.h>

#include <cstdint>

namespace mr {

// The event and the gate that work outside of streams waits for.
struct DiskAfter {
    Event* event = nullptr;
    const Gate* gate = nullptr;
    std::uint64_t generation = 0;
};

class DiskLanes
{
public:
    // Returns the generation at which the gate of the task's lane opens. `times` is written before.
    virtual Result<std::uint64_t> submit(
        const Task& task, const DiskAfter& after, DiskTimes* times) = 0;
    virtual Gate& gate(Lane lane) noexcept = 0;
    virtual Status waitFor(Lane lane, std::uint64_t generation) = 0;
    // Waits for all that was submitted; errors of it are dropped.
    virtual void drain() noexcept = 0;

protected:
    ~DiskLanes() = default;
};

} // namespace mr
