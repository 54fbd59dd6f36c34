// Weights of the model itself that an adapter trains: the embedding or the head as a whole (PEFT's
// modules_to_save), or rows of the embedding (trainable_token_indices).
//
// The trained copy stands in the model's place: a module that is trained whole is not held a second
// time. Rows are trained apart and copied into the embedding before it is read; the head of a tied
// model then has them, too.
//
// Threads  Pure.
// Units    Elements.

#pragma once

#include "core/model/frozen_model.h"

#include <millrace/status.h>

#include <cstdint>
#include <vector>

namespace mr {

// InvalidArgument: a module that cannot be trained whole, one of two that are tied, rows beside the
// whole, a token that the model has not or that is named twice.
Status checkSaved(const ParamTable& model, const AdapterSettings& settings);

// Adds to the last group of `table` what is trained of this group of the model, and notes in
// `frozen` what it stands for. Precondition: checkSaved().
void placeSaved(FrozenModel& frozen, ParamTable& table);

// Rows of the vocabulary that follow each other, and where they begin among the trained rows.
struct TokenRun {
    std::int64_t firstToken = 0;
    std::int64_t firstRow = 0;
    std::int64_t count = 0;
};

// Empty where no rows are trained alone.
std::vector<TokenRun> tokenRuns(const ParamTable& trained);

// Is the matrix of logits trained as a whole?
bool trainsHeadMatrix(const ParamTable& trained) noexcept;

} // namespace mr
