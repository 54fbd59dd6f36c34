// Another plan for a run that was begun: with other options, or because it found less memory than
// the one it was planned with.
//
// Where memory lacks, first its own policy, with what the user left open; then other policies. What
// changes bits stays as it was: the order of work that was asked for, the codec of the state.
//
// Threads  Pure but for the reading of rates.
// Errors   OutOfMemory: nothing fits, with what lacks least.
// Units    Bytes.

#pragma once

#include "core/choose/run_setup.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace mr {

struct MemoryShortage {
    Tier tier{};
    std::optional<std::size_t> freeBytes; // that the tier has now, if that is known
};

// Which other policies may take over.
enum class ReplanScope : std::uint8_t {
    Any,        // all the user allows: nothing was trained yet
    Exact,      // those that go on from a checkpoint of any exact policy
    SamePolicy, // none: what a window left pending means nothing to another
};

// The plan of `before` with what `shortage` leaves: what is free, or, if that is not known or would
// have been enough, a tenth less than was planned.
Result<RunSetup> replan(const RunSetup& before, const MemoryShortage& shortage, ReplanScope scope);

// The run as it is, with these numbers of its policy, of which none is left open, and by these
// rates. That it does not fit is no error: see its `limit`.
Result<RunSetup> withNumbers(
    const RunSetup& before, const PolicyNumbers& numbers, const Feedback& rates);

} // namespace mr
