// How large the checkpoints of a run will be, before the run begins.
//
// Threads  Any; looks at the sizes of the files a model folder carries along.
// Errors   None: a file that cannot be looked at is counted as empty.
// Units    Bytes of all files; a few KiB too many for each checkpoint, for names, and never too
// few.

#pragma once

#include "core/choose/run_setup.h"

#include <cstdint>

namespace mr {

std::uint64_t checkpointBytes(const RunSetup& setup);

// Bytes of the trained model, as it is exported at the end.
std::uint64_t exportBytes(const RunSetup& setup);

// The most checkpoints on disk between two writes: as many as are kept, and the best by evaluation
// where it may be an older one. During a write there is one more.
std::int64_t checkpointsKept(const RunSetup& setup);

// Bytes in the run's folder at a time: a checkpoint beside the one before, or the model beside a
// checkpoint; and the files of groups that take turns.
std::uint64_t roomNeeded(const RunSetup& setup);

// Bytes that a whole run writes at most: checkpoints, the last one and the best ones included, and
// the trained model. 0: its steps are not known. The forecast of a step, where there is one, counts
// the checkpoints by time. Checkpoints that a choice or a lack of memory adds are not counted.
std::uint64_t savedBytesOfRun(const RunSetup& setup);

} // namespace mr
