// The rates a forecast needs, measured when they are first asked for and kept for later.
//
// Threads  Any; blocks for as long as a few steps of two blocks of the model take.

#pragma once

#include <millrace/run_spec.h>
#include <millrace/status.h>

namespace mr::app {

// `complete`: a spec from completeForMachine(). Does nothing if the user's RateCache has the rates
// and they are neither old nor of a busy moment. On an error there are none, and forecasts stay
// unknown; everything else works.
Status measureIfMissing(const RunSpec& complete);
// Measures although the cache has rates, and replaces them.
Status measureAgain(const RunSpec& complete);

} // namespace mr::app
