#include "pages/plan_question.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace mr::ui {

namespace {

// Free bytes on the disk that would hold `folder`, which may not exist yet; 0 where the system does
// not say. Not QStorageInfo: it looks for the mount by its path, which a chroot does not have.
std::uint64_t freeBytes(const std::string& folder)
{
    std::error_code error;
    std::filesystem::path place = std::filesystem::absolute(folder, error);
    while (!place.empty() && !std::filesystem::exists(place, error) && place != place.parent_path())
        place = place.parent_path();
    const auto space = std::filesystem::space(place, error);
    return error ? 0 : space.available;
}

Result<PlanView> planOne(const UiServices& services, const RunSpec& spec, std::int64_t trainRows)
{
    MR_TRY(services.checkSpec(spec));
    Result<RunSpec> resolved = services.resolveSpec(spec, trainRows);
    MR_TRY(resolved.status());
    // As it was asked for: of a resolved one nobody knows any more why its policy was chosen.
    RunSpec asked = spec;
    asked.steps = resolved.value().steps;
    Result<PlanReport> report = services.planRun(asked);
    MR_TRY(report.status());
    PlanView view;
    view.report = std::move(report).value();
    view.keepCheckpoints = std::max(resolved.value().keepCheckpoints, view.report.checkpointsKept);
    view.diskFreeBytes = freeBytes(spec.outDir.empty() ? services.runsFolder : spec.outDir);
    return view;
}

} // namespace

PlanAnswer planAnswer(const UiServices& services, const PlanQuestion& question)
{
    PlanAnswer answer;
    std::uint64_t taken = 0;
    for (const RunSpec& spec : question.runs) {
        Result<PlanView> view = planOne(services, spec, question.trainRows);
        if (!view.ok()) {
            answer.problem = view.status();
            break;
        }
        PlanView& one = answer.views.emplace_back(std::move(view).value());
        one.diskFreeBytes -= std::min(taken, one.diskFreeBytes);
        taken += one.report.checkpointBytes * static_cast<std::uint64_t>(one.keepCheckpoints);
    }
    // Afterwards, because the run's own plan measures the rates that are missing.
    if (auto methods = services.planAllMethods(question.methods); methods.ok())
        answer.methods = std::move(methods).value();
    return answer;
}

} // namespace mr::ui
