// RunProgress: state, beside the tensors, with which a run goes on as if it had never stopped.
//
// Threads  A value.
// Errors   parse: DataCorrupt with the file and its fault.
// Source   decisions.md 3, 4, 20.

#pragma once

#include "core/data/batch_stream.h"
#include "core/step/step_executor.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace mr {

struct RunProgress {
    std::int64_t step = 0;        // optimizer steps done
    std::int64_t updateCount = 0; // steps that changed the weights: the count in bias correction
    std::int64_t tokens = 0;
    std::int64_t activeMs = 0;
    int badSteps = 0; // NaN in a row
    double lastGradNorm = 0.0;
    double lastLoss = 0.0;
    // Loss of the evaluation after this very step; NaN: there was none.
    double evalLoss = std::numeric_limits<double>::quiet_NaN();
    SamplerState sampler;
    std::string runId; // run of the checkpoint; empty: an earlier program's
    std::string instructionSet;
    std::string precision;
    std::string optimizer; // "factored"; empty: adamw, or an earlier program's
    std::string weightsHash;
    std::string dataHash; // the training tokens, in order
    std::string baseHash; // weightsHash of the model beside an adapter; empty: there is none
    // Place of the run in its window and update counts of both owners, for policies with windows.
    Carry carry;
    WindowState windows;
};

std::string toJson(const RunProgress& progress);

// `path` is named in errors.
Result<RunProgress> progressFromJson(std::string_view text, const std::filesystem::path& path);

} // namespace mr
