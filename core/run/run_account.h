// RunAccount: the time and the bytes of a run, row by row without a gap.
//
// A row is a step or an interval (evaluation, checkpoint, ...). It begins where the row before it
// ended and has the bytes moved since then, so rows add up to the run, whichever work moved the
// bytes.
//
// Threads  Engine thread. Allocates nothing.
// Units    Nanoseconds on the steady clock, bytes.

#pragma once

#include "core/telemetry/stall_ledger.h"

#include <millrace/run_reader.h>

#include <cstdint>

namespace mr {

// All that was moved since the run was opened.
struct MovedBytes {
    std::int64_t toDevice = 0;
    std::int64_t toHost = 0;
    std::int64_t diskRead = 0; // whole pages
    std::int64_t diskWritten = 0;
};

class RunAccount
{
public:
    // The first row begins here.
    void begin(std::int64_t nowNs, const MovedBytes& moved) noexcept;
    // Where the last row ended.
    std::int64_t endNs() const noexcept { return m_endNs; }

    // Adds the time split of a plan that ran between steps, to the interval that ends next.
    void addRun(const StallSplit& split) noexcept;
    // Its beginUs is 0: the caller has the clock. Time that no plan explains is StallCause::Other.
    IntervalRow closeInterval(
        IntervalKind kind, std::int64_t nowNs, const MovedBytes& moved) noexcept;
    // Ends a row that is a step. Returns the bytes moved since the row before; its times come from
    // its ledger.
    MovedBytes closeStep(std::int64_t endNs, const MovedBytes& moved) noexcept;

private:
    std::int64_t m_endNs = 0;
    MovedBytes m_moved;
    StallSplit m_split;
};

} // namespace mr
