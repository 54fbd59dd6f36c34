// Another plan for a run that was begun: with other options, or because it found less memory than
// the one it was planned with.
//
// Where memory lacks, tries first the run's own policy, with the options the user left open; then
// other policies. Options that change bits stay: the order of work that was asked for, the codec of
// the state.
//
// Threads  Pure, except that it reads rates.
// Errors   OutOfMemory: nothing fits, with the limit of the plan that lacks least.
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
    Exact,      // exact ones, which go on from a checkpoint of any exact policy
    SamePolicy, // none: a window's pending state means nothing to another
};

// The plan of `before` with the memory that `shortage` leaves: the free bytes, or, if those are not
// known or would have been enough, a tenth less than was planned.
Result<RunSetup> replan(const RunSetup& before, const MemoryShortage& shortage, ReplanScope scope);

// The run as it is, with these numbers of its policy, of which none is left open, and by these
// rates. That it does not fit is no error: see its `limit`.
Result<RunSetup> withNumbers(
    const RunSetup& before, const PolicyNumbers& numbers, const Feedback& rates);

} // namespace mr
