// RunOutcome: whether training made a model better or worse, by the evaluations of its run.
//
// A run that reached its last step is "done" even if it ruined the model. Whoever shows a run says
// so beside that word.
//
// Threads  Pure.
// Errors   None: a run that was not evaluated before and after training has no verdict.
// Units    Losses in nats per token.

#pragma once

#include <millrace/run_reader.h>

#include <cstdint>
#include <limits>
#include <string>

namespace mr {

enum class RunVerdict : std::uint8_t { Unknown, Better, Same, Worse };

enum class WorseCause : std::uint8_t {
    None,
    LearningRate, // it never got clearly better, or blew up: the learning rate is probably too high
    TooManySteps, // it was clearly better on its way, and got worse again
};

struct Evaluations {
    double before = std::numeric_limits<double>::quiet_NaN(); // at step 0; NaN: there was none
    double last = std::numeric_limits<double>::quiet_NaN();
    std::int64_t lastStep = -1;                             // -1: there was none after step 0
    double best = std::numeric_limits<double>::quiet_NaN(); // after step 0
    std::int64_t bestStep = -1;
};

struct RunOutcome {
    RunVerdict verdict = RunVerdict::Unknown;
    WorseCause cause = WorseCause::None;
    Evaluations evaluations;
};

Evaluations evaluationsOf(const RunRow& run);

// Better and Worse need a clear margin: 5 %, and 0.02 nats, so that the noise of a small evaluation
// set is neither. A last evaluation that is not finite is Worse.
RunOutcome judge(const Evaluations& evaluations);

// "Worse than before training: 2,403 against 1.83 at step 0. The learning rate is probably too
// high." Empty unless the verdict is Worse.
std::string describeOutcome(const RunOutcome& outcome);

} // namespace mr
