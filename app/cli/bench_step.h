// The options and the output of `millrace bench step --model ...`.

#pragma once

#include "core/device/device.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace mr::app {

struct StepOptions {
    std::string model; // config.json or a folder with one; empty: the two built-in models
    std::int64_t seqLen = 0;
    std::int64_t microBatch = 1;
    std::int64_t accumulate = 1;
    std::int64_t steps = 5;
    std::int64_t updateThreads = 0;
    std::string policy = "auto";
    std::vector<std::string> policyOptions;
    std::string optimizer = "adamw";
    std::string weights = "auto";
    std::string precision = "auto";
    std::string recompute = "auto";
    std::string keepInputs = "bf16";
    std::string deviceMemory;
    std::string hostMemory;
    std::string link;
    bool cupti = false;
};

void addStepOptions(CLI::App& command, StepOptions& options);

// Spec of the options' device and precision, with `choice` as the device.
Result<RunSpec> stepDeviceSpec(const StepOptions& options, DeviceChoice choice);

// `resolved` is the spec the device was made by. Prints steps, then their summary.
Status benchModelStep(
    Device& device, const RunSpec& resolved, const StepOptions& options, bool json);

} // namespace mr::app
