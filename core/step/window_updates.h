// WindowUpdates: what the host does for windows, as work for the update pool; and the counts of
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

// All that the bytes of WindowMemory do not say of a run's windows.
struct WindowState {
    std::int64_t deviceUpdates = 0; // of the urgent columns
    std::int64_t hostUpdates = 0;   // of the others, or steps: WindowLayout::stride()
    std::array<WindowBank, 2> banks;
    StepScalars step;   // of the last step, for a window that is still to be closed
    StepScalars urgent; // of the last window's urgent sums
};

class WindowUpdates
{
public:
    WindowUpdates(const RunMemory& memory, const ParamTable& table, const HostRows& rows);

    // The work of a task on the Host lane.
    Status makeWork(
        const StepPlan& plan, const Task& task, const StepInputs& inputs, WindowWork& work);
    // The update of a tile, whose factors are left to fill in.
    UpdateTile updateOf(const ComplementTile& tile, int bank, int stage);
    // After a step: counts what became of it.
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
