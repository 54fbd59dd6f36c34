// The series of a run in the history database, and the summary columns that keep the list of runs
// from ever reading them.
//
// Shared by the writer (run_store.cpp) and the reader (run_reader.cpp). Appending is idempotent by
// (run, step): rows that are there stay and are not counted twice.
//
// Threads  As Database.
// Errors   As Database. Functions that write expect an open transaction.

#pragma once

#include "core/store/run_store.h"
#include "core/store/sqlite.h"

#include <millrace/run_reader.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace mr {

// A step's key: 24 bits of run, 40 bits of step.
constexpr std::int64_t stepId(std::int64_t runId, std::int64_t step) noexcept
{
    return (runId << 40) | step;
}

constexpr std::int64_t stepOfId(std::int64_t id) noexcept
{
    return id & ((std::int64_t{1} << 40) - 1);
}

Status appendBatch(Database& database, std::int64_t runId, const StoreBatch& batch);
Result<std::vector<StepRow>> readSteps(
    Database& database, std::int64_t runId, std::int64_t afterStep, std::int64_t limit);

Result<std::vector<IntervalRow>> readIntervals(
    Database& database, std::int64_t runId, std::int64_t afterUs);

// Steps, intervals, scalars, traces, answers and samples after `step` go; the summary is computed
// again from the remaining rows.
Status removeAfter(Database& database, std::int64_t runId, std::int64_t step);
// The small curve of the list of runs: at most 64 losses, evenly spaced, as floats.
Status updateSpark(Database& database, std::int64_t runId);

// One batch of at most 5,000 rows of the series of `runId`; false when there was nothing left.
Result<bool> removeSeriesBatch(Database& database, std::int64_t runId);

} // namespace mr
