// Checkpoints: a run on disk, complete and verified or not there at all.
//
//     <run>/checkpoints/step-00000300/
//         model/            a model folder any loader opens: BF16 `high`, or the F32 master under
//                           fp32; of an adapter adapter/ in its place, of a block in its turn
//                           block/ (trained_weights.h)
//         state/            state.safetensors (low halves, both moments, by group; of compact state
//                           its planes as they are), state.json; with windows window.safetensors
//                           (checkpoint_window.h)
//         manifest.json     every other file with its bytes and XXH3-64 (checkpoint_manifest.h);
//                           written last
//
// Written under a name that begins with a dot, every file and folder fsynced, then renamed: a crash
// leaves either the whole checkpoint or a dot folder that the next write removes
// (checkpoint_folder.h).
//
// Threads  Engine thread, between steps; blocks on files.
// Errors   Io with file and reason, and the state that is safe. Nothing of the run is lost by a
//          failed write. examine, load: DataCorrupt or Io names the file that has other bytes than
//          were written; InvalidArgument: it is whole, but not this run's or not of the step in its
//          name.
// Source   decisions.md 3, 4, 20.

#pragma once

#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/save/checkpoint_folder.h"
#include "core/save/checkpoint_manifest.h"
#include "core/save/run_progress.h"
#include "core/step/step_executor.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace mr {

struct CheckpointContext {
    const ModelConfig& config;
    const ParamTable& table;
    RunMemory& memory;
    StepExecutor& executor;
    std::filesystem::path carryFrom; // where tokenizer and generation files come from
    std::string runId = {};          // owner of the checkpoints; empty: not looked at
    std::string chatTemplate = {};   // that the model was taught; empty: carryFrom's, if it has one
    std::string baseHash = {};       // of the model beside an adapter, which is that of carryFrom
};

struct CheckpointWritten {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    std::string manifestHash;
};

// `weightsHash`, `baseHash` and `runId` of `progress` are filled in.
Result<CheckpointWritten> writeCheckpoint(
    const CheckpointContext& context, const std::filesystem::path& runDir, RunProgress& progress);

// Is it whole, as far as `depth` looks, and of this run?
Result<RunProgress> examineCheckpoint(
    const std::filesystem::path& checkpoint, const std::string& runId, VerifyDepth depth);

// As below, of a checkpoint whose bytes were examined.
Status loadExamined(const CheckpointContext& context, const std::filesystem::path& checkpoint,
    const RunProgress& progress);

// Examines every byte, then loads tensors into `context` and makes the weights ops read. A model
// beside an adapter is not part of it.
Result<RunProgress> loadCheckpoint(
    const CheckpointContext& context, const std::filesystem::path& checkpoint);

} // namespace mr
