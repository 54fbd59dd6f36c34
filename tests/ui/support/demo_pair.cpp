#include "ui/support/demo_pair.h"

#include "ui/support/demo_rows.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace mr::ui::test {

namespace {

constexpr std::int64_t kFirstId = 21;
constexpr std::int64_t kRestOfStall = 20; // one twentieth of the waiting is left under zenflow

// demoSteps() with a twentieth of the stalls, fewer bytes and a little more loss.
std::vector<StepRow> quickSteps(std::int64_t count)
{
    std::vector<StepRow> rows = demoSteps(count);
    std::int64_t timeMs = 0;
    for (StepRow& row : rows) {
        for (std::int64_t& us : row.stallUs)
            us /= kRestOfStall;
        row.wallUs = std::accumulate(row.stallUs.begin(), row.stallUs.end(), row.computeUs);
        row.timeMs = timeMs += row.wallUs / 1000;
        row.loss += 0.03;
        row.h2dBytes = row.h2dBytes * 2 / 5;
        row.d2hBytes = row.d2hBytes * 3 / 5;
        row.devicePeakBytes += std::int64_t{410} << 20;
        row.staleness = 7;
    }
    return rows;
}

RunSnapshot madeOf(std::vector<StepRow> steps, std::int64_t total, const char* policy)
{
    const auto count = static_cast<std::int64_t>(steps.size());
    RunSnapshot run =
        *demoSnapshot(count, total, count == total ? RunStatus::Done : RunStatus::Running);
    run.steps = {};
    run.steps.append(steps);
    run.traces.clear();
    auto plan = std::make_shared<PlanReport>(demoPlan());
    plan->policy = policy;
    run.plan = plan;
    run.run.name = std::string("Notes: ") + policy;
    run.run.lastStep = count;
    run.run.exitReason.clear();
    run.run.resumable = false;
    run.run.simulatedLink = false;
    run.run.configJson = std::string(R"({"seed":1,"steps":)") + std::to_string(total) +
                         R"(,"policy":")" + policy + R"("})";
    run.run.activeUs = steps.empty() ? 0 : steps.back().timeMs * 1000 + 9'000'000;
    run.run.devicePeakBytes = steps.empty() ? 0 : steps.back().devicePeakBytes;
    return run;
}

} // namespace

std::array<RunSnapshotPtr, 2> demoPair(std::int64_t secondSteps, std::int64_t total)
{
    RunSnapshot first = madeOf(demoSteps(total), total, "zero-offload");
    first.run.id = kFirstId;
    RunSnapshot second = madeOf(quickSteps(secondSteps), total, "zenflow");
    second.run.id = kFirstId + 1;
    auto plan = std::make_shared<PlanReport>(*second.plan);
    plan->exact = false;
    plan->maxStaleSteps = 7;
    second.plan = plan;
    for (ScalarRow& row : second.evalLoss)
        row.value += 0.03;
    if (!second.evalLoss.empty())
        second.run.bestEval = second.evalLoss.back().value;
    return {std::make_shared<const RunSnapshot>(std::move(first)),
        std::make_shared<const RunSnapshot>(std::move(second))};
}

} // namespace mr::ui::test
