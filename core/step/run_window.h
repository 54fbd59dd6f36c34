// RunWindow: the parts of an executor that serve a policy with windows, which splits gradients by
// columns and sums them over several steps.
//
// Threads    Engine thread.
// Ownership  Borrows all it is given, which outlives it.
// Errors     Those of the device.

#pragma once

#include "core/step/blocking_copier.h"
#include "core/step/column_copier.h"
#include "core/step/column_master.h"
#include "core/step/column_ownership.h"
#include "core/step/disk_tasks.h"
#include "core/step/host_rows.h"
#include "core/step/window_checkpoint.h"
#include "core/step/window_steps.h"
#include "core/step/window_updates.h"

#include <millrace/status.h>

namespace mr {

class RunWindow
{
public:
    // `disk` may be null where nothing is on disk. Adds the bytes that it copies to `traffic`.
    RunWindow(Device& device, RunMemory& memory, const ParamTable& table, BlockingCopier& link,
        DiskTasks* disk, Stream& stream, LinkBytes& traffic);

    // Is this a task for steps() or updates()?
    static bool handles(const Task& task) noexcept { return task.part != Part::All; }
    // First column lists; blocks. All else of a window begins as the zeros of new memory.
    Status prepare();

    WindowSteps& steps() noexcept { return m_steps; }
    WindowUpdates& updates() noexcept { return m_updates; }
    ColumnOwnership& ownership() noexcept { return m_ownership; }
    ColumnMaster& master() noexcept { return m_master; }
    WindowCheckpoint& checkpoint() noexcept { return m_checkpoint; }

private:
    WindowMemory& m_memory;
    HostRows m_rows;
    ColumnCopier m_copier;
    WindowSteps m_steps;
    WindowUpdates m_updates;
    ColumnOwnership m_ownership;
    ColumnMaster m_master;
    WindowCheckpoint m_checkpoint;
};

} // namespace mr
