// RunSnapshot: all that the charts show of one run, at one moment.
//
// Threads  Made by the feed's worker, immutable afterwards, shared by pointer.

#pragma once

#include "math/step_series.h"
#include "models/machine_history.h"

#include <millrace/planner.h>
#include <millrace/run_reader.h>

#include <QMetaType>

#include <cstdint>
#include <memory>
#include <vector>

namespace mr::ui {

struct RunSnapshot {
    // Differs from the last one when rows that were already shown are no longer true (another run,
    // or a resumed run that went back to its checkpoint): charts start over.
    std::uint64_t generation = 0;
    RunRow run;
    StepSeries steps;
    std::vector<IntervalRow> intervals; // work of the run beside its steps
    std::vector<ScalarRow> evalLoss;
    std::vector<EventRow> events;
    std::vector<CheckpointRow> checkpoints;
    std::vector<ExportRow> exports;         // newest first
    std::vector<TraceInfo> traces;          // the steps whose timelines were kept
    std::shared_ptr<const PlanReport> plan; // null: the run has none that can be read
    MachineHistoryPtr machine;              // null: nothing was measured
};

using RunSnapshotPtr = std::shared_ptr<const RunSnapshot>;
using RunRowsPtr = std::shared_ptr<const std::vector<RunRow>>;

} // namespace mr::ui

Q_DECLARE_METATYPE(mr::ui::RunSnapshotPtr)
Q_DECLARE_METATYPE(mr::ui::RunRowsPtr)
