#include "core/save/model_folder.h"

#include "core/save/checkpoint.h"
#include "core/telemetry/run_folder.h"

#include <millrace/session.h>

#include <filesystem>

namespace mr {
namespace {

namespace fs = std::filesystem;

bool isModel(const fs::path& folder)
{
    std::error_code ignored;
    return fs::exists(folder / "config.json", ignored);
}

} // namespace

Result<std::string> modelFolderOf(const std::string& path)
{
    const fs::path folder = path;
    std::error_code ignored;
    if (isModel(folder))
        return path;
    const bool isRun = fs::exists(folder / "run.json", ignored);
    fs::path saved; // where the run saves to if that is another folder
    if (isRun) {
        const auto spec = readRunSpec(path);
        MR_TRY(spec.status());
        saved = Result(spec).value().saveDir;
    }
    for (const fs::path& place : {saved, folder})
        if (!place.empty() && isModel(place / "model"))
            return (place / "model").string();
    const auto checkpoints = listCheckpoints(folder, saved);
    if (!checkpoints.empty())
        return (checkpoints.front() / "model").string();
    if (isRun)
        return Status::error(
            ErrorKind::InvalidArgument, path + ": this run has no model yet; it writes one with "
                                               "every checkpoint and at its end");
    return path;
}

bool isTrainedOnPrompts(const std::string& path)
{
    std::error_code failed;
    fs::path folder = fs::weakly_canonical(path, failed);
    // RUN/checkpoints/step-N/model is the deepest.
    constexpr int kLevels = 4;
    for (int level = 0; level < kLevels && !failed; ++level) {
        if (fs::is_regular_file(folder / "run.json", failed)) {
            const auto run = readRunRecord(folder.string());
            return run.ok() && Result(run).value().prompts;
        }
        failed.clear();
        folder = folder.parent_path();
    }
    return false;
}

} // namespace mr
