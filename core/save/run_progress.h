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
#include <vector>

namespace mr {

// A group of weights that had its turn: the file that holds it, and the hash of that.
struct TurnedGroup {
    GroupId group;
    std::string file; // turned_groups.h
    std::string hash; // XXH3-64

    bool operator==(const TurnedGroup&) const = default;
};

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
    std::string optimizer;   // "factored"; empty: adamw, or an earlier program's
    std::string weightsHash; // where groups take turns: of the one that is trained, and in the end
                             // of the model
    std::string dataHash;    // the training tokens, in order
    std::string baseHash;    // weightsHash of the model beside an adapter; empty: there is none
    // Where groups take turns (TurnSchedule): the one that is trained, and the groups that had one.
    std::int64_t turn = 0;
    std::vector<TurnedGroup> turned;
    // Place of the run in its window and update counts of both owners, for policies with windows.
    Carry carry;
    WindowState windows;
};

std::string toJson(const RunProgress& progress);

// `path` is named in errors.
Result<RunProgress> progressFromJson(std::string_view text, const std::filesystem::path& path);

} // namespace mr
