// WindowUpdates: the host's tasks of windows, as work for the update pool; and the counts of
// updates.
//
// Updates are counted by owner: the device's urgent columns are updated in every step, the host's
// once per window, and bias correction must know how many updates a moment has seen.
//
// Threads    Engine thread.
// Ownership  Borrows all it is given.
// Errors     Internal for a task of another kind.

#pragma once

#include "core/device/ops.h"
#include "core/model/param_table.h"
#include "core/plan/plan.h"
#include "core/step/host_rows.h"
#include "core/step/run_memory.h"
#include "core/step/step_inputs.h"
#include "core/step/window_work.h"

#include <millrace/status.h>

#include <array>
#include <cstdint>

namespace mr {

// The state of a run's windows beside the bytes of WindowMemory.
struct WindowState {
    std::int64_t deviceUpdates = 0; // to the urgent columns
    std::int64_t hostUpdates = 0;   // to the others, or steps: WindowLayout::stride()
    std::array<WindowBank, 2> banks;
    StepScalars step;   // from the last step, for a window that is still to be closed
    StepScalars urgent; // for the last window's urgent sums
};

class WindowUpdates
{
public:
    WindowUpdates(const RunMemory& memory, const ParamTable& table, const HostRows& rows);

    // The work of a task on the Host lane.
    Status makeWork(
        const StepPlan& plan, const Task& task, const StepInputs& inputs, WindowWork& work);
    // The update of a tile. The caller fills in its factors.
    UpdateTile updateOf(const ComplementTile& tile, int bank, int stage);
    // After a step: counts its finite gradients and its updates.
    void finishStep(const StepPlan& plan, const StepScalars& scalars);

    WindowState state;

private:
    AddGradient sumOf(const Task& task) const;
    SquareSum normOf(GroupId id, int bank) const;
    CloseWindow closing(const StepPlan& plan, const Task& task, const StepInputs& inputs);
    ComplementRows rowsOf(const ComplementTile& tile, int bank, int stage) const;

    const RunMemory& m_memory;
    const WindowMemory& m_window;
    const ParamTable& m_table;
    const HostRows& m_rows;
};

} // namespace mr
