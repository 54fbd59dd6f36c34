// Decides the action of `millrace resume` on a run, in one place: for the lists of runs, which
// offer it, and for the engine, which does it.
//
// Threads  Any; blocks on files, of runs without a checkpoint in the history only.
// Errors   A refusal names the folder and the way out.

#pragma once

#include "core/store/run_leftovers.h"

#include <millrace/run_status.h>
#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace mr {

enum class ResumeAnswer : std::uint8_t {
    Refused,
    Continues,   // from its last checkpoint
    StartsAgain, // from the beginning: it ended before its first
};

struct ResumeFacts {
    RunStatus status = RunStatus::Starting;
    bool hasCheckpoint = false;  // a complete one, by the history
    RunPlaces places;            // with those checkpoints that the history has not as removed
    std::string_view configJson; // RunSpec, which may name another folder for checkpoints
};

ResumeAnswer resumeAnswer(const ResumeFacts& facts);

// Precondition: the run's folders hold no checkpoint. Refused if there was one (its disk may be
// back tomorrow) or the run's model is there.
Status mayStartAgain(const RunPlaces& places, const std::filesystem::path& saveDir);

} // namespace mr
