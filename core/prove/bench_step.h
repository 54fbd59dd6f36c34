// Whole optimizer steps of a model with random weights: where the time goes, and how much of the
// machine's matrix peak is used.
//
// Needs a config only. The plan, the executor and the stall ledger are those of a real run; a
// step's wall time holds planning and enqueueing, but not the making of its batch.
//
// Threads  As in core/prove/bench.h.
// Errors   InvalidArgument for a size the model does not allow; OutOfMemory with both numbers if no
//          allowed policy fits; those of the device.
// Units    In the field names.

#pragma once

#include "core/device/activity_trace.h"
#include "core/prove/bench.h"
#include "core/prove/plain_run.h"

#include <millrace/run_reader.h>
#include <millrace/run_spec.h>

#include <array>
#include <optional>

namespace mr {

struct StepBenchSpec {
    std::string name; // the model's
    ModelConfig config;
    std::int64_t seqLen = 0; // 0: 1024, or the model's maximum
    std::int64_t microBatch = 1;
    std::int64_t accumulate = 1;
    std::string policy = "auto"; // resident, or else zero-offload: the first that fits
    std::map<std::string, std::string> options;
    LightChoice light = {};
    PrecisionChoice precision = PrecisionChoice::Auto; // BF16, unless the processor has none
    RecomputeChoice recompute = RecomputeChoice::Auto; // the first that fits
    KeepInputs keepInputs = KeepInputs::Bf16;
    int steps = 5;                       // measured, after two that are not
    std::uint64_t deviceMemoryBytes = 0; // 0: the device's memory, less 1 GiB off the host
    std::uint64_t hostMemoryBytes = 0;   // 0: defaultHostBudget()
    int updateThreads = 0;               // 0: half of the processor's cores, as a run has
};

// Traced steps by our own counts and by those of the device's profiling library.
struct TraceComparison {
    int steps = 0;
    std::int64_t computeNs = 0;
    std::int64_t h2dBytes = 0;
    std::int64_t d2hBytes = 0;
    ActivityTotals seen;
};

struct StepBenchReport {
    std::string name;
    std::string policy;
    std::string precision; // "bf16", "fp32"
    Recompute recompute = Recompute::None;
    std::int64_t parameters = 0;
    std::int64_t tokensPerStep = 0;
    // 6 per token and parameter that a product reads (2 forward, 4 backward), and 6 per visible
    // pair and column of attention. Recomputation is not credited.
    double flopsPerStep = 0.0;
    double peakFlops = 0.0;      // the machine's, measured after the run
    double prepareSeconds = 0.0; // memory taken, weights made
    std::size_t plannedDeviceBytes = 0;
    std::size_t peakDeviceBytes = 0; // the device's count of bytes asked for
    std::size_t plannedHostBytes = 0;
    std::size_t peakHostBytes = 0;
    std::vector<StepRow> steps;
    std::optional<TraceComparison> trace;

    StepRow typical() const; // the step of median wall time
    double tokensPerSecond() const;
    double flopsPerSecond() const;
};

// `trace` may be null. With it, three more steps run traced; the others are never.
Result<StepBenchReport> runStepBench(
    Device& device, const StepBenchSpec& spec, ActivityTrace* trace = nullptr);

// Models of 6 and 50 million parameters, fp32 and bf16, resident.
std::vector<StepBenchSpec> builtInStepBenches();

// Runs the built-in benchmarks as rows: GFLOP/s by flopsPerStep against the peak.
Result<std::vector<BenchRow>> benchStep(Device& device);

} // namespace mr
