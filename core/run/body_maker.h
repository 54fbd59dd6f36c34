// BodyMaker: the body of a run (memory, executor, plans) with its weights in it, from the model the
// run begins with or from a checkpoint.
//
// Where groups of weights take turns, it also brings the next group into the same body: weights
// that were trained are in the files of turned_groups.h by then.
//
// Threads    Engine thread; before start(), the thread that opens the run.
// Ownership  Owns nothing; borrows context and parts. The body is the context's.
// Errors     OutOfMemory: `lacking` says in which tier. Cancelled if a stop is wanted while files
//            are filled. Others unchanged.

#pragma once

#include "core/run/checkpoint_fallback.h"
#include "core/run/run_saver.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace mr {

// Where weights and state come from.
enum class BodySource : std::uint8_t { Model, Checkpoint };

class BodyMaker
{
public:
    BodyMaker(RunContext& run, RunSaver& saver, CheckpointFallback& fallback);

    // Precondition: there is no body.
    Status make(BodySource source, Tier& lacking);
    // Goes on with the group of `turn`; the one that was trained until now has a file. After an
    // error there is no body.
    Status turnTo(std::int64_t turn);

private:
    using Master = std::unique_ptr<MasterReader>;

    Result<TrainingStateParts> partsOf(const std::vector<TurnedGroup>& turned, RunDiskSpec& disk);
    Status load();
    Status startFromModel();
    Status startWeights();
    Status startAdapter();
    Status installBase();
    Status checkFiles();
    Status prepareTurn(const RunProgress& progress, MasterReader& first);
    Status exchangeGroup(std::int64_t turn, const std::vector<TurnedGroup>& turned);
    Status takeNext(std::int64_t turn);
    Result<BaseFiles> baseFiles(const ScratchOptions& options);
    ScratchOptions scratchOptions();

    RunContext& m_run;
    RunSaver& m_saver;
    CheckpointFallback& m_fallback;
    std::optional<BaseFiles> m_base; // of the model; turns share it
};

} // namespace mr
