// measureRates(): a few blocks of the model, of every kind, are trained for a few steps,
// half of their update on the device and half on the host, and every rate a plan needs is read off
// the tasks' times.
//
// So the rates hold for lanes at work together, as in a run, and not for each alone.
//
// Threads  The engine thread of the device, which must be idle and hold nothing.
// Errors   Those of the device and of plans; OutOfMemory if the device is too small.

#pragma once

#include "core/choose/rate_cache.h"
#include "core/device/device.h"
#include "core/model/model_config.h"

#include <millrace/library.h>
#include <millrace/run_spec.h>

namespace mr {

// Subject of a measurement: a model of few blocks, and how to train it.
struct RateSubject {
    std::string key;    // names its entry in the cache
    std::string runKey; // that of runs that train this part of the model; mostly the same
    ModelConfig config;
    std::int64_t seqLen = 0;
    std::int64_t microBatch = 1;
    DType compute = DType::BF16;
    int updateThreads = 1;
    bool standIn = false;        // another model's layers: rates hold, seconds of layers do not
    std::size_t deviceBytes = 0; // a device needs to measure it
};

// The subject for a resolved spec: blocks of the model itself if they fit a quarter of the
// memory at hand, else of a stand-in.
Result<RateSubject> rateSubject(
    const RunSpec& spec, const ModelConfig& config, const MachineInfo& machine);

Result<Feedback> measureRates(Device& device, const RateSubject& subject);

} // namespace mr
