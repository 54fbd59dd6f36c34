// The matrix products of a run, tried before its memory is taken (core/prove/product_check.h).
//
// Threads    The thread that opens the run.
// Errors     Those of checkProducts(). OutOfMemory: no room for the scratch of products that are
//            added apart; says how much and what helps.

#pragma once

#include "core/run/run_context.h"

namespace mr {

// On a device that picks algorithms. Writes run.products and run.productScratch. What the record
// says is added apart stays so, on every device.
Status checkRunProducts(RunContext& run);

} // namespace mr
