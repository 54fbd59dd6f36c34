// The data as a plan and a dry run look at it.
//
// Errors  InvalidArgument and Io: what `train` refuses of the data.

#pragma once

#include <millrace/library.h>
#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <optional>
#include <string>

namespace mr::app {

struct LookedAt {
    std::optional<DataReport> report; // none: no data was named, or it was not read whole
    std::string advice;
};

// Reads the data as a run would and, where the run is told in epochs, sets its steps. Of more than
// 64 MiB only the columns are looked at, and the advice says so.
Result<LookedAt> lookAtData(RunSpec& spec);

} // namespace mr::app
