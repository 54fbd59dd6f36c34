// Where the programs are put together: which device, which store, which sample.
//
// Threads  Any; makeDevice blocks while memory is taken.
// Errors   A device that cannot be made says what to do instead.

#pragma once

#include "core/device/device.h"
#include "core/store/run_store.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <memory>
#include <string>

namespace mr::app {

// The device a resolved spec asks for, with the memory it was planned with.
Result<std::unique_ptr<Device>> makeDevice(const RunSpec& resolved);

// A CPU device of `bytes` on all physical cores, for evaluation and generation.
Result<std::unique_ptr<Device>> makeInferenceDevice(
    DeviceChoice choice, std::size_t bytes, std::int64_t threads);

// `database` empty: the user's history.
Result<std::unique_ptr<RunStore>> openStore(const std::string& database);

// The sample project: beside the program (installed) or in the source tree it was built from.
// Empty if it is in neither.
std::string sampleFolder();

} // namespace mr::app
