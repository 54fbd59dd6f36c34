// Records as lines of JSON, for the command line and the run folder.
//
// Milliseconds are written with exactly three decimals, so that compute_ms and the stall_ms still
// add up to wall_ms. Values that are no finite number are null.
//
// Threads  Pure.
// Errors   The readers: DataCorrupt names the field.

#pragma once

#include "core/store/run_store.h"

#include <millrace/run_reader.h>
#include <millrace/status.h>

#include <string>
#include <string_view>

namespace mr {

// {"event":"step",...}, one line without its end.
std::string toJson(const StepRow& row);
// timeMs is not part of the line and stays 0.
Result<StepRow> stepFromJson(std::string_view line);

// {"event":"interval","kind":"evaluation",...}
std::string toJson(const IntervalRow& row);
Result<IntervalRow> intervalFromJson(std::string_view line);

// {"event":"info"|"warning"|"error","code":..,"step":..,"time_ms":..,"text":..}
std::string toJson(const EventRow& row);
// {"event":"scalar","metric":..,"step":..,"time_ms":..,"value":..}
std::string toJson(std::string_view metric, const ScalarRow& row);
// {"event":"sample","time_ms":..,"host.cpu":..}: the measured values, by the name of the metric.
std::string toJson(const MachineSample& sample);
Result<MachineSample> sampleFromJson(std::string_view line);
// Adds the record in a line of events.jsonl to `batch`.
Status eventFromJson(std::string_view line, StoreBatch& batch);

} // namespace mr
