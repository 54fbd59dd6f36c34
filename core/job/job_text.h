// job.json: what a job needs to know beside its files, and what it needs to find its way home.
//
// Threads  Pure functions.
// Errors   Reading: InvalidArgument or DataCorrupt names the text and the field.

#pragma once

#include "core/job/job_source.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace mr {

inline constexpr int kJobFormat = 1;

std::string jobText(const JobSource& source);

// The part that importing a job reads.
struct JobHeader {
    RunSpec spec; // of the run that the job continued, resolved
    std::string name;
    std::int64_t fromStep = 0;
    std::int64_t steps = 0;
    std::string baseHash; // of the model beside an adapter
    bool prompts = false;
};

Result<JobHeader> jobHeaderFrom(std::string_view text, const std::string& source);

} // namespace mr
