// out/losses.jsonl: the steps and evaluations of a job.
//
//     {"step":7,"loss":3.1,"lr":0.001,"grad_norm":1.2,"tokens":96,"loss_tokens":90,"wall_ms":12.5}
//     {"step":8,"eval_loss":3.2}
//
// Threads  Pure.
// Errors   DataCorrupt names the file, the line and the field.

#pragma once

#include "core/store/run_store.h"

#include <millrace/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct JobLosses {
    std::vector<StepRow> steps; // ascending
    std::vector<ScalarRow> evaluations;
};

Result<JobLosses> parseJobLosses(std::string_view text, const std::string& source);

} // namespace mr
