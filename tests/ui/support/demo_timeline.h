// Made-up steps of a model with 22 layers, as telemetry would have measured them, and where the
// bytes of such a model lie. The same arguments give the same spans.

#pragma once

#include <millrace/planner.h>
#include <millrace/step_timeline.h>

#include <cstdint>
#include <vector>

namespace mr::ui::test {

enum class DemoPolicy { Resident, ZeroOffload, Streamed };

StepTimeline demoTimeline(DemoPolicy policy, std::int64_t step);
// `count` tasks that follow each other on each of three lanes.
StepTimeline largeTimeline(std::int64_t count);

// Groups of demoPlan(); their bytes add up to its tiers. Streamed: blocks split over three tiers.
std::vector<PlanGroup> demoGroups(DemoPolicy policy);

} // namespace mr::ui::test
