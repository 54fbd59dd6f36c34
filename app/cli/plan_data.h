// The data as a plan and a dry run read it.
//
// Errors  InvalidArgument and Io, as `train` reports them for the data.

#pragma once

#include <millrace/library.h>
#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <optional>
#include <string>
#include <vector>

namespace mr::app {

struct LookedAt {
    std::optional<DataReport> report; // none: no data was named, or it was not read whole
    std::vector<std::string> advice;
};

// Reads the data as a run would and sets the steps of a run given in epochs. If the data has more
// than 64 MiB, reads only the columns, and the advice says so.
Result<LookedAt> lookAtData(RunSpec& spec);

} // namespace mr::app
