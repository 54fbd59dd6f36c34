// The advice of a plan: single changes that would make it fit, or faster.
//
// Threads  Any; plans other runs, which read files and measure nothing.

#pragma once

#include "core/choose/run_setup.h"

namespace mr {

// Adds to `report.advice` what changes would bring.
void addAdvice(const RunSetup& setup, PlanReport& report);

} // namespace mr
