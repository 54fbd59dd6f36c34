// Answers that runs gave while they went on, in the tables `prompt` and `sample`.
//
// The prompt is a row of `prompt`, set "try", so that one text asked of several steps or runs is
// one row; figures and system text are JSON beside the answer.
//
// Threads  As Database.
// Errors   As Database. writeAnswer() expects an open transaction; figures that cannot be read
//          become those of a default Prompt.

#pragma once

#include "core/store/sqlite.h"

#include <millrace/run_reader.h>

#include <cstdint>
#include <vector>

namespace mr {

// Replaces the one to the same text after the same step.
Status writeAnswer(Database& database, std::int64_t runId, const AnswerRow& row);
Result<std::vector<AnswerRow>> readAnswers(Database& database, std::int64_t runId);

} // namespace mr
