// A made-up run for tests and screenshots: a falling loss, every cause of waiting, evaluations,
// checkpoints. The same seed gives the same rows.

#pragma once

#include "models/run_snapshot.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mr::ui::test {

// Steps 1 to `count`; each is complete: compute and stalls add up to the wall time.
std::vector<StepRow> demoSteps(std::int64_t count, std::uint64_t seed = 1);
// Intervals of such a run: opening, evaluations, checkpoints.
std::vector<IntervalRow> demoIntervals(std::int64_t count);
// Events of such a run; ids ascend from 1.
std::vector<EventRow> demoEvents(std::int64_t count);
// eval_loss every 60 steps.
std::vector<ScalarRow> demoEvals(std::int64_t count);
// A plan with three tiers; the device tier's total is the peak in demoSteps.
PlanReport demoPlan();
// A machine with a GPU that such a run keeps busy, seconds 1 to `count`.
std::vector<MachineSample> demoSamples(std::int64_t count);
// demoSamples() as the charts take them; null for 0.
MachineHistoryPtr demoMachine(std::int64_t count);
// All of it. `status` as in RunRow; a run that ended has all `total` steps.
RunSnapshotPtr demoSnapshot(
    std::int64_t count, std::int64_t total, RunStatus status = RunStatus::Running);
// One that is done and was exported three times; the last one failed its check.
RunSnapshotPtr demoExported(std::int64_t count);
// One that waits at its last step: for room for a checkpoint, or for its folder.
RunSnapshotPtr demoPaused(std::int64_t count, std::int64_t total, bool isFull);
// Seven runs in seven states for a history.
RunRowsPtr demoRuns();

} // namespace mr::ui::test
