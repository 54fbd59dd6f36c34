// Ways to train every weight in less memory than AdamW as it is, in the order in which they are
// offered, and the choice among them where a run allows it (--allow other-optimizer).
//
// Each changes the results, so none is taken unasked.
//
// Threads  Any; plans other runs, which read files and measure nothing.
// Errors   Those of setUpRun(), of the run as it was asked for.

#pragma once

#include "core/choose/run_setup.h"

#include <millrace/planner.h>

#include <cstdint>
#include <vector>

namespace mr {

// Does AdamW's state lack memory, or is it written to an SSD in every step?
bool wantsLighter(const RunSetup& setup) noexcept;

// The ways that fit, the nearest to AdamW first. No step of theirs writes to an SSD.
std::vector<LighterWay> fittingWays(const RunSetup& setup);

// The setup, or where it wants something lighter and its spec allows that, the first that fits.
Result<RunSetup> withAllowedWay(RunSetup setup, std::int64_t trainRows, const MachineInfo& machine);

} // namespace mr
