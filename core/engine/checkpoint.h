// Checkpoints: a run on disk, complete and verified or not there at all.
//
//     <run>/checkpoints/step-00000300/
//         model/            a model folder any loader opens: BF16 `high`, or the F32 master under
//                           fp32
//         state/            state.safetensors (low halves, both moments, by group; of compact state
//                           its planes as they are), state.json; with windows window.safetensors
//                           (checkpoint_window.h)
//         manifest.json     every other file with its bytes and XXH3-64; written last
//
// Written under a name that begins with a dot, every file and folder fsynced, then renamed: a crash
// leaves either the whole checkpoint or a dot folder that the next write removes.
//
// Threads  Engine thread, between steps; blocks on files.
// Errors   Io with file and reason, and what is safe. Nothing of the run is lost by a failed write.
//          load: DataCorrupt names the file whose bytes are not those that were written.
// Source   DECISIONS 3, 4, 20.

#pragma once

#include "core/data/batch_stream.h"
#include "core/engine/step_executor.h"
#include "core/model/model_config.h"
#include "core/model/param_table.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mr {

// What a run must know to go on as if it had never stopped, beside the tensors.
struct RunProgress {
    std::int64_t step = 0;        // optimizer steps done
    std::int64_t updateCount = 0; // those that changed the weights: the count in bias correction
    std::int64_t tokens = 0;
    std::int64_t activeMs = 0;
    int badSteps = 0; // NaN in a row
    double lastGradNorm = 0.0;
    double lastLoss = 0.0;
    SamplerState sampler;
    std::string instructionSet;
    std::string precision;
    std::string weightsHash;
    std::string dataHash; // of the training tokens, in order
    // Of policies with windows: where the run stands in its window, and the counts of both owners.
    Carry carry;
    WindowState windows;
};

struct CheckpointContext {
    const ModelConfig& config;
    const ParamTable& table;
    RunMemory& memory;
    StepExecutor& executor;
    std::filesystem::path carryFrom; // where tokenizer and generation files come from
};

struct CheckpointWritten {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    std::string manifestHash;
};

// `progress.weightsHash` is filled in.
Result<CheckpointWritten> writeCheckpoint(
    const CheckpointContext& context, const std::filesystem::path& runDir, RunProgress& progress);

// Verifies every file, then loads tensors into `context` and makes the weights ops read.
Result<RunProgress> loadCheckpoint(
    const CheckpointContext& context, const std::filesystem::path& checkpoint);

// Complete checkpoint folders, newest first. `saveDir`: where the run writes them now, if that is
// another folder (RunSpec).
std::vector<std::filesystem::path> listCheckpoints(
    const std::filesystem::path& runDir, const std::filesystem::path& saveDir = {});

// Removes all but the newest `keep`, and leftovers of interrupted writes. Returns what was removed.
std::vector<std::filesystem::path> pruneCheckpoints(const std::filesystem::path& runDir,
    std::int64_t keep, const std::filesystem::path& saveDir = {});

} // namespace mr
