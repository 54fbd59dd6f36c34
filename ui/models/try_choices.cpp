#include "models/try_choices.h"

#include <algorithm>
#include <string_view>

namespace mr::ui {

namespace {

// The live run of another program is asked there; a run that made no step has nothing to ask.
bool mayHaveModel(const RunRow& run)
{
    return run.status == RunStatus::Done || (run.resumable && !run.startsAgain);
}

} // namespace

std::vector<TryChoice> TryChoices::models(const std::vector<RunRow>& runs)
{
    std::vector<TryChoice> out;
    for (const RunRow& run : runs) {
        const bool isFolder =
            !run.modelPath.empty() && !std::string_view(run.modelPath).ends_with(".json");
        const auto same = [&](const TryChoice& c) { return c.path == run.modelPath; };
        if (isFolder && std::none_of(out.begin(), out.end(), same))
            out.push_back({QString::fromStdString(run.modelName), run.modelPath, 0, false});
    }
    return out;
}

std::vector<TryChoice> TryChoices::runs(const std::vector<RunRow>& runs, qint64 liveRun)
{
    std::vector<TryChoice> out;
    for (const RunRow& run : runs) {
        const QString name = QString::fromStdString(run.name);
        if (run.id == liveRun)
            out.insert(out.begin(), {tr("%1, as it is now").arg(name), {}, run.id, true});
        else if (mayHaveModel(run))
            out.push_back({name, run.dir, run.id, false});
    }
    return out;
}

} // namespace mr::ui
