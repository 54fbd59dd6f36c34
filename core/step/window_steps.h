// WindowSteps: carries out the tasks of a policy with windows on a stream.
//
// Threads    Engine thread.
// Ownership  Borrows all it is given.
// Errors     Those of the device; Internal for a task of another kind.

#pragma once

#include "core/device/device.h"
#include "core/model/param_table.h"
#include "core/step/column_copier.h"
#include "core/step/run_memory.h"
#include "core/step/step_inputs.h"

#include <millrace/status.h>

namespace mr {

class WindowSteps
{
public:
    // Bytes that tasks copy are added to `traffic`.
    WindowSteps(Device& device, const RunMemory& memory, const ParamTable& table,
        ColumnCopier& copier, LinkBytes& traffic);

    Status enqueue(const Task& task, const StepInputs& inputs, Stream& stream);

private:
    Status pack(const Task& task, Stream& stream);
    Status roundSum(GroupId id, Stream& stream);
    Status send(const Task& task, Stream& stream);
    Status updateUrgent(const Task& task, const StepInputs& inputs, Stream& stream);
    Status joinUrgent(Stream& stream);
    Status sendUrgentScalars(Stream& stream);
    Status sendEnergies(Stream& stream);
    Status upload(const Task& task, Stream& stream);
    Status scatter(const Task& task, Stream& stream);

    Device& m_device;
    const RunMemory& m_memory;
    const WindowMemory& m_window;
    const ParamTable& m_table;
    ColumnCopier& m_copier;
    LinkBytes& m_traffic;
};

} // namespace mr
