// The once-a-second series of a run as rows of `chunk`: the measured values, and two coarser levels
// for charts of many hours.
//
//   level  an entry stands for  and is              a row spans
//   0      1 s                  the value           256 s
//   1      16 s                 (min, max, mean)    68 min
//   2      256 s                (min, max, mean)    18 h
//
// A row holds up to 256 entries of float32, little-endian, NaN where nothing was measured, and
// begins at a multiple of its span. So a sample has one place: writing it again changes nothing,
// and the coarser entries follow from one row of level 0.
//
// Threads  As Database.
// Errors   As Database. Functions that write expect an open transaction.
// Units    Milliseconds of active time since the run began.

#pragma once

#include "core/store/sqlite.h"

#include <millrace/machine_metrics.h>
#include <millrace/run_reader.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mr {

// Also sets energy_j of the run: the device's power, each sample for its second.
Status appendSamples(
    Database& database, std::int64_t runId, std::span<const MachineSample> samples);
// Samples later than `timeMs` go; -1: all.
Status removeSamplesAfter(Database& database, std::int64_t runId, std::int64_t timeMs);

Result<std::vector<CounterInfo>> readCounters(Database& database, std::int64_t runId);
Result<CounterSeries> readCounter(
    Database& database, std::int64_t runId, std::string_view metric, const CounterWindow& window);

} // namespace mr
