// WindowCheckpoint: the state of a run that stops within a window: saved, restored, or applied for
// the final export.
//
// Threads    Engine thread; not during a step. Blocks.
// Ownership  Borrows all it is given.
// Errors     Those of the device and of the disk.

#pragma once

#include "core/plan/plan.h"
#include "core/step/blocking_copier.h"
#include "core/step/host_rows.h"
#include "core/step/run_memory.h"
#include "core/step/step_inputs.h"
#include "core/step/window_steps.h"
#include "core/step/window_updates.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>

namespace mr {

class WindowCheckpoint
{
public:
    WindowCheckpoint(RunMemory& memory, const HostRows& rows, WindowSteps& steps,
        WindowUpdates& updates, BlockingCopier& copier, Stream& stream);

    // The state of windows in a checkpoint, beside bytes; and back, when the bytes are there: the
    // weights that a job in flight has written over its sums go to the host's master.
    WindowState capture() const;
    void restore(const WindowState& saved, const Carry& carry);

    // Makes the updates that are pending, on the host's arrays alone: for the final export, after
    // which no step may follow. `inputs` has the factors for the window in flight (job) and for the
    // steps that are in the next one (closing).
    Status applyPending(const Carry& carry, const StepInputs& inputs);

private:
    std::uint8_t bankOf(std::int64_t window) const noexcept;
    Status addLanded(const StepPlan& plan, Task task, const StepInputs& inputs);
    Status fetchSums(const StepPlan& plan, Task task, const StepInputs& inputs);
    Status fetchUrgentNorm(const StepInputs& inputs);
    Status close(const StepPlan& plan, Task task, const StepInputs& inputs, std::size_t firstTile);
    Status runOnHost(const StepPlan& plan, const Task& task, const StepInputs& inputs);

    RunMemory& m_memory;
    WindowMemory& m_window;
    const HostRows& m_rows;
    WindowSteps& m_steps;
    WindowUpdates& m_updates;
    BlockingCopier& m_copier;
    Stream& m_stream;
};

} // namespace mr
