// How large a checkpoint of a run will be, before the run begins.
//
// Threads  Any; looks at the sizes of the files a model folder carries along.
// Errors   None: a file that cannot be looked at is counted as empty.
// Units    Bytes of all files of one checkpoint; a few KiB too many, for names, and never too few.

#pragma once

#include "core/engine/run_setup.h"

#include <cstdint>

namespace mr {

std::uint64_t checkpointBytes(const RunSetup& setup);

} // namespace mr
