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
#include "core/model/weights.h"

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

// Host memory for the master of a whole model, zeroed: what loading fills.
class MasterBuffers
{
public:
    explicit MasterBuffers(const ParamTable& table);
    std::span<const MasterView> views() const noexcept { return m_views; }

private:
    std::vector<std::vector<std::uint16_t>> m_high;
    std::vector<std::vector<std::int16_t>> m_low;
    std::vector<MasterView> m_views;
};

// The master halves of all groups in host memory: copied off the device where they live there,
// lent where the host has them, decoded where state is compact (compact_master.h); columns that the
// device owns are its own, which are plain in either codec.
class MasterSnapshot
{
public:
    static Result<MasterSnapshot> take(StepExecutor& executor, const RunMemory& memory);
    // What the next forward would read, where the host may be ahead: in BF16 the high halves alone.
    static Result<MasterSnapshot> takeWeights(StepExecutor& executor, const RunMemory& memory);

    std::span<const MasterView> views() const noexcept { return m_views; }

private:
    static Result<MasterSnapshot> decode(StepExecutor& executor, const RunMemory& memory);

    std::vector<std::vector<std::uint16_t>> m_high;
    std::vector<std::vector<std::int16_t>> m_low;
    std::vector<MasterView> m_views;
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

// Complete checkpoint folders, newest first.
std::vector<std::filesystem::path> listCheckpoints(const std::filesystem::path& runDir);

// Removes all but the newest `keep`, and leftovers of interrupted writes. Returns what was removed.
std::vector<std::filesystem::path> pruneCheckpoints(
    const std::filesystem::path& runDir, std::int64_t keep);

// Puts loaded or initialised weights where the policy keeps them, moments zero.
Status installMaster(
    StepExecutor& executor, const RunMemory& memory, std::span<const MasterView> views);

} // namespace mr
