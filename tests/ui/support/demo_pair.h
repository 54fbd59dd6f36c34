// A made-up comparison for tests and screenshots: the same training under zero-offload, which waits
// for a large part of each step, and under zenflow, which hardly waits and is not exact.

#pragma once

#include "models/run_snapshot.h"

#include <array>
#include <cstdint>

namespace mr::ui::test {

// Both of `total` steps; the first is done, the second has `secondSteps` of them and is done when
// that is all.
std::array<RunSnapshotPtr, 2> demoPair(std::int64_t secondSteps, std::int64_t total);

} // namespace mr::ui::test
