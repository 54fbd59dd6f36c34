// The master of a run, from and to wherever its policy keeps it, piece by piece.
//
// Threads   Engine thread, between steps; blocks on copies.
// Lifetime  Executor and memory outlive a reader; after a step or a load another one is made.
// Errors    Those of the device.

#pragma once

#include "core/model/master.h"
#include "core/model/param_table.h"
#include "core/step/step_executor.h"

#include <millrace/status.h>

#include <memory>

namespace mr {

// The master that the state holds: decoded where it is compact (core/device/master24.h). Columns
// that the device owns are its own, which are plain in either codec; they are published first.
Result<std::unique_ptr<MasterReader>> stateMaster(StepExecutor& executor, const RunMemory& memory);

// The weights that the next forward would read, where the host may be ahead: in BF16 the high
// halves alone.
std::unique_ptr<MasterReader> weightsInUse(StepExecutor& executor, const RunMemory& memory);

// Puts loaded or initialised weights where the policy keeps them.
Status installMaster(StepExecutor& executor, const RunMemory& memory, MasterReader& master);

// Puts the weights that no step changes into their home, and gives the hash of all the model
// (weightsHash); where nothing is frozen it does nothing. `table` is that of what is trained,
// `model` reads all of its model.
Result<std::string> installFrozen(
    StepExecutor& executor, const ParamTable& table, MasterReader& model);

// All of the model of which `trained` reads the layers that are trained: the others are those
// that no step changes. Both outlive it.
std::unique_ptr<MasterReader> wholeMaster(
    StepExecutor& executor, const RunMemory& memory, MasterReader& trained);

} // namespace mr
