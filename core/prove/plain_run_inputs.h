// Made-up weights and tokens for runs that are only timed.
//
// Threads  The engine thread of the run.
// Errors   Those of the device.

#pragma once

#include "core/prove/plain_run.h"

#include <vector>

namespace mr {

// Matrices random, norms 1, biases 0; the same in every run.
Status installCheapWeights(PlainRun& run);

// One step of full sequences of random tokens, all trained.
std::vector<MicroBatchData> randomBatch(std::int64_t vocab, const MicroShape& micro);

} // namespace mr
