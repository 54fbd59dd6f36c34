// Evaluation of a token set: its mean cross-entropy, and how many of its pairs are answered right.
//
// Carries out evaluation plans with the executor of the run, in the memory of the run; reads the
// weights the next forward would read and changes nothing (decisions.md 3).
//
// Threads  Engine thread, between steps.
// Errors   Those of the executor; InvalidArgument if the set has no trained token.

#pragma once

#include "core/data/batch_stream.h"
#include "core/step/plan_sequence.h"
#include "core/step/step_executor.h"

#include <millrace/status.h>

#include <cstdint>
#include <functional>

namespace mr {

struct EvalResult {
    double loss = 0.0; // nats per trained token
    std::int64_t tokens = 0;
    std::int64_t sequences = 0;
};

// Makes the rotary tables fit `tokens` of a sequence that will have `whole`
// (ConstantTables::turnFor). Without it they stay as training has them, for any length of a
// sequence.
using TurnFor = std::function<Result<bool>(std::int64_t tokens, std::int64_t whole)>;

// `plan` is that of buildEvaluation for `shape`; every sequence is at most shape.seqLen + 1 tokens.
// `watch` sees each run of it.
Result<EvalResult> evaluate(StepExecutor& executor, const StepPlan& plan, const TokenSet& set,
    const BatchShape& shape, const RunWatch& watch = {}, const TurnFor& turnFor = {});

struct AnswerScore {
    std::int64_t asked = 0;
    std::int64_t right = 0; // every token of the response, its end included, as in the data
};

// Continues the prompt of the first `limit` pairs greedily and compares with the response. Text
// without a prompt is passed over. `room` tokens are kept for keys and values; 0 asked without.
Result<AnswerScore> scoreAnswers(StepExecutor& executor, const TokenSet& set, std::int64_t vocab,
    std::int64_t room, std::int64_t limit, const TurnFor& turnFor = {});

} // namespace mr
