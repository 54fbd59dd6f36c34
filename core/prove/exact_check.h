// A tiny run without files: the same model, data and seed under any policy, to compare with ==.
//
// `millrace selftest` and the tests show with it that every exact policy gives the weights of
// `resident`, bit for bit.
//
// Threads  One thread, which is the engine thread of the device.
// Errors   Those of plan and device.

#pragma once

#include "core/device/device.h"
#include "core/model/model_config.h"
#include "core/plan/cost_model.h"
#include "core/prove/plain_run.h"

#include <millrace/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mr {

// Head dimension, vocabulary and widths are odd on purpose.
ModelConfig tinyConfig(bool tied);

struct TinyRun {
    ModelConfig config = tinyConfig(true);
    std::int64_t seqLen = 20;
    std::int64_t microBatch = 2;
    std::string policy = "resident";
    std::map<std::string, std::string> options;
    LightChoice light = {};
    DType compute = DType::F32;
    bool fp8 = false;          // MicroShape::fp8
    std::int64_t headPart = 0; // MicroShape::headPart
    bool codedInputs = false;  // MicroShape::codedInputs, with Recompute::Block
    std::int64_t accumulate = 3;
    Recompute recompute = Recompute::None;
    double clipNorm = 1.0;
    int steps = 4;
    int updateThreads = 2;
    RunDiskSpec disk;                 // for policies that keep state there
    std::vector<GroupId> layers = {}; // as in PlainRunSpec
    std::optional<AdapterSettings> adapter = {};
    double dropout = 0.0; // of the adapter
};

struct TinyResult {
    std::string weightsHash;
    std::vector<double> losses; // by step
    std::vector<double> norms;
    std::int64_t h2dBytes = 0; // in the last step
    std::int64_t d2hBytes = 0;
    std::int64_t movedBytes = 0;      // part of these, each way: columns that changed owner
    std::int64_t plannedH2dBytes = 0; // linkTraffic() of its plan
    std::int64_t plannedD2hBytes = 0;
    std::int64_t diskReadBytes = 0; // in the last step
    std::int64_t diskWrittenBytes = 0;
    DiskTraffic plannedDisk; // diskTraffic() of its plan
    std::size_t plannedDeviceBytes = 0;
    std::size_t peakDeviceBytes = 0; // the device's count, minus its count before the run
    std::size_t plannedHostBytes = 0;
    std::size_t peakHostBytes = 0;
    std::size_t allocationsInSteps = 0; // Device::allocate() calls after the first step
};

// Like `run`, in FP8: sequences and widths are such that all products of its blocks are.
TinyRun inFp8(TinyRun run);
// The run without files that `run` describes.
PlainRunSpec plainRunSpec(const TinyRun& run);
// Random weights of the model, and of the adapter if one is trained.
Status installInitialWeights(PlainRun& run, std::uint64_t seed);
// Random weights and tokens by a fixed seed.
Result<TinyResult> runTiny(Device& device, const TinyRun& run);

} // namespace mr
