#include "models/run_progress.h"

#include <algorithm>
#include <limits>

namespace mr::ui {

bool isEnded(const RunRow& run)
{
    return hasEnded(run.status);
}

RunProgress progressOf(const RunSnapshot& snapshot)
{
    RunProgress progress;
    progress.lossNow = snapshot.run.lastLoss;
    progress.lossBefore = std::numeric_limits<double>::quiet_NaN();
    progress.step = snapshot.run.lastStep;
    progress.totalSteps = snapshot.run.totalSteps;
    if (snapshot.run.activeUs > 0)
        progress.elapsedSeconds = static_cast<double>(snapshot.run.activeUs) / 1e6;
    const StepSeries& steps = snapshot.steps;
    if (steps.empty())
        return progress;
    const StepRow& last = steps.back();
    progress.step = std::max(progress.step, last.step);
    progress.lossNow = last.loss;
    progress.elapsedSeconds =
        std::max(progress.elapsedSeconds, static_cast<double>(last.timeMs) / 1e3);
    const std::size_t first = steps.size() > kRecentSteps ? steps.size() - kRecentSteps : 0;
    if (first > 0)
        progress.lossBefore = steps[first - 1].loss;
    double wallUs = 0.0;
    double tokens = 0.0;
    for (std::size_t i = first; i < steps.size(); ++i) {
        wallUs += static_cast<double>(steps[i].wallUs);
        tokens += static_cast<double>(steps[i].tokens);
    }
    if (wallUs > 0.0)
        progress.tokensPerSecond = tokens / wallUs * 1e6;
    const bool isMoving = !isEnded(snapshot.run) && snapshot.run.status != RunStatus::Paused;
    if (isMoving && progress.totalSteps >= progress.step)
        progress.remainingSeconds = wallUs / 1e6 / static_cast<double>(steps.size() - first) *
                                    static_cast<double>(progress.totalSteps - progress.step);
    return progress;
}

} // namespace mr::ui
