// Puts the programs together: makes the device, opens the store, finds the sample.
//
// Threads  Any; making a device or asking for the card blocks.
// Errors   If a device cannot be made, the error names the remedy.

#pragma once

#include "core/device/device.h"
#include "core/store/run_store.h"

#include <millrace/library.h>
#include <millrace/planner.h>
#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <memory>
#include <string>
#include <vector>

namespace mr::app {

// The folder to train from: a GGUF file is the one that it stands for, kept with the user's runs.
Result<std::string> folderToTrainFrom(const std::string& model);

// Fills in the settings that depend on the GPU, before resolveSpec() fills in the rest. Device auto
// is the card if there is a usable one, else the processor. A card's memory is its free bytes less
// 768 MiB, its precision bf16 from compute capability 8.0 on.
// With device cuda and a budget given, a card need not be here, so that a run can be planned for
// another machine. InvalidArgument where one is needed, and for bf16 or fp8 on a card without
// it.
Result<RunSpec> completeForMachine(const RunSpec& asked);

// resolveSpec(), planRun(), planAllPolicies() and planAllMethods() of the completed spec.
Result<RunSpec> resolveForMachine(const RunSpec& spec, std::int64_t trainRows);
Result<PlanReport> planForMachine(const RunSpec& spec);
Result<std::vector<PlanReport>> planAllForMachine(const RunSpec& spec);
Result<std::vector<PlanReport>> planMethodsForMachine(const RunSpec& spec);

// Measures again the rates for forecasts of this spec. Blocks for some steps of two blocks of the
// model; nothing else should be at work meanwhile.
Status measureForMachine(const RunSpec& spec);

// inspectMachine(), with a note on each card that is not used.
MachineInfo inspectWithDevices();

// Compute threads as `asked`; 0: `otherwise`. InvalidArgument if negative or above the maximum.
Result<int> computeThreads(std::int64_t asked, int otherwise);

// The device a resolved spec asks for, with the memory it was planned with.
Result<std::unique_ptr<Device>> makeDevice(const RunSpec& resolved);

struct InferenceDevice {
    DeviceChoice choice = DeviceChoice::Auto; // the card, if it can be used and has the room
    std::size_t bytes = 0;
    std::int64_t threads = 0; // CPU device only; 0: all physical cores
    DType compute = DType::F32;
};

// The compute type of `--precision` for evaluation and generation; auto: F32. InvalidArgument for
// fp8, which is for training.
Result<DType> inferenceType(const std::string& precision);

// For evaluation and generation.
Result<std::unique_ptr<Device>> makeInferenceDevice(const InferenceDevice& asked);

// The most bytes that makeInferenceDevice() may be asked for now: of the card less 768 MiB, of the
// machine less a little for other programs; the larger of both where it chooses. 0: a card that is
// asked for and does not compute in that type. An error: there is no card that is asked for.
Result<std::uint64_t> inferenceMemory(DeviceChoice choice, DType compute);

// A device with most of the free memory, for self-tests and benchmarks.
Result<std::unique_ptr<Device>> makeWholeCudaDevice();

// `database` empty: the user's history.
Result<std::unique_ptr<RunStore>> openStore(const std::string& database);

// The sample project: beside the program (installed) or in the source tree it was built from.
// Empty if it is in neither.
std::string sampleFolder();

} // namespace mr::app
