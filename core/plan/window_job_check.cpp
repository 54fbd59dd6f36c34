#include "core/plan/window_job_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {

Status JobUnderCheck::isWhole(const PlanUnderCheck& check, bool ends) const
{
    if (!exists)
        return {};
    std::int32_t done = before;
    bool gap = false;
    for (std::size_t t = static_cast<std::size_t>(before); t < updates.size(); ++t) {
        gap = gap || (updates[t] && static_cast<std::int32_t>(t) != done);
        done += updates[t] ? 1 : 0;
    }
    const bool uploaded = std::all_of(scatters.begin(), scatters.end(),
        [&](const MaybeTask& scatter) { return scatter.has_value() == ends; });
    const bool complete = done == static_cast<std::int32_t>(updates.size());
    const bool left = !ends && check.out.hostJob && check.out.hostJob->tilesDone == done;
    if (gap || !uploaded || !(ends ? complete : left))
        return check.broken(PlanRule::UpdatedOnce,
            fmt::format(
                "the window that ended with step {} is not updated and uploaded once", version));
    return {};
}

} // namespace mr
