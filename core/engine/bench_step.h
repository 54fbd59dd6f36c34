// A whole optimizer step against the matrix peak of the machine.
//
// Threads  As in core/device/bench.h.

#pragma once

#include "core/device/bench.h"

namespace mr {

// Models of 6 and 50 million parameters, random weights, fp32 and bf16: GFLOP/s of the step's
// matrix products and attention, everything else counted as time only.
Result<std::vector<BenchRow>> benchStep(Device& device);

} // namespace mr
