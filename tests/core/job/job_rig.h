// Runs that end with a checkpoint in their middle, to be continued elsewhere.

#pragma once

// The engine's headers come before those of Qt.
// clang-format off
#include "core/job/job_export.h"
#include "core/model/safetensors.h"
#include "core/run/run_rig.h"
// clang-format on

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mr::test {

inline constexpr std::int64_t kStopped = 6;

// 30 steps of 4 rows, more than two epochs of the rig's data; it ends after step 6.
inline RunSpec longSpec(const RunRig& rig, const std::string& name)
{
    RunSpec spec = rig.spec(name);
    spec.steps = 30;
    spec.checkpointEvery = kStopped;
    spec.holdOut = 0.1;
    spec.evalEvery = 10;
    spec.warmupSteps = 4;
    return spec;
}

inline RunSpec adapterSpec(RunSpec spec)
{
    spec.method = "lora";
    spec.rank = 4;
    spec.alpha = 8.0;
    spec.learningRate = 3e-2;
    return spec;
}

// The folder of a run that was stopped.
inline std::filesystem::path stoppedRun(RunRig& rig, const RunSpec& spec)
{
    const auto device = smallDevice();
    const Outcome run = rig.train(spec, *device, stopAt(kStopped));
    if (!run.opened.ok() || run.progress.step != kStopped)
        qFatal("the run did not stop: %s", run.opened.message().c_str());
    return run.dir;
}

// All values of a tensor.
template <typename T>
std::vector<T> tensorIn(const std::filesystem::path& file, const std::string& name)
{
    const SafetensorsReader reader = SafetensorsReader::open(file).value();
    const auto found = reader.entries().find(name);
    if (found == reader.entries().end())
        return {};
    std::vector<T> values((found->second.end - found->second.begin) / sizeof(T));
    (void)reader.readBytes(name, 0, std::as_writable_bytes(std::span(values))).ok();
    return values;
}

} // namespace mr::test
