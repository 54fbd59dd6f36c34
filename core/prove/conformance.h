// The table of op cases every device must pass: each op against double precision, with a derived
// tolerance, over odd shapes and both compute types, and the same bits when run again.
//
// Works on any Device (memory, copies, one stream, events), so that `millrace selftest` can run it
// on a bare machine. The tolerances stand in conformance_*.cpp, each with its derivation.
//
// Threads  The caller's; the device must be idle.
// Errors   runConformance() fails only if the device does (memory, streams). An op that refuses
//          or is wrong is a result with pass == false.
// Units    error is in tolerances: at most 1 passes.

#pragma once

#include "core/device/device.h"

#include <functional>
#include <string>
#include <vector>

namespace mr {

struct ConformanceResult {
    std::string op;       // "linear"
    std::string name;     // "linear bf16 (65, 33, 7) bias"
    std::string worst;    // the output with the largest error
    double error = 0.0;   // largest |got - want| / tolerance; infinity where no error is allowed
    bool sameBits = true; // a second run gave the same bytes
    std::string bits;     // CaseRun::digest(), to compare with another device
    bool pass = false;
    std::string message; // why not, if an op or the device refused
};

struct ConformanceReport {
    int cases = 0;
    int passed = 0;

    bool ok() const noexcept { return cases == passed && cases > 0; }
};

using ConformanceCallback = std::function<void(const ConformanceResult&)>;

// Names of all ops that have cases, each once, sorted.
std::vector<std::string> conformanceOps();

// Calls `each` after every case. `onlyOp` empty: all. `modelSizes`: with ops as large as those
// of models, which take a gigabyte of device memory.
Result<ConformanceReport> runConformance(Device& device, const ConformanceCallback& each,
    const std::string& onlyOp = {}, bool modelSizes = false);

} // namespace mr
