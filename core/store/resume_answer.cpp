#include "core/store/resume_answer.h"

#include "core/store/trained_folders.h"

#include <millrace/run_spec.h>

#include <string>
#include <system_error>

namespace mr {
namespace fs = std::filesystem;
namespace {

struct Found {
    bool complete = false; // by its name
    bool any = false;      // also those that were set aside
};

fs::path saveDirOf(std::string_view configJson)
{
    Result<RunSpec> spec = runSpecFromJson(configJson);
    return spec.ok() ? fs::path(spec.value().saveDir) : fs::path();
}

void findCheckpoints(const fs::path& folder, Found& found)
{
    std::error_code failed;
    for (const fs::directory_entry& entry :
        fs::directory_iterator(folder / kCheckpointsFolder, failed)) {
        const std::string name = entry.path().filename().string();
        const bool isComplete = name.starts_with("step-");
        found.complete |= isComplete;
        found.any |= isComplete || !name.starts_with(".");
    }
}

} // namespace

ResumeAnswer resumeAnswer(const ResumeFacts& facts)
{
    if (!endedEarly(facts.status))
        return ResumeAnswer::Refused;
    if (facts.hasCheckpoint)
        return ResumeAnswer::Continues;
    if (!facts.places.checkpoints.empty() ||
        !isOwnFolder(facts.places.runFolder, facts.places.uuid))
        return ResumeAnswer::Refused;
    // A crash right after a checkpoint was written, and a history made from run folders, leave
    // checkpoints that the history does not have.
    Found found;
    findCheckpoints(facts.places.runFolder, found);
    const fs::path saveDir = saveDirOf(facts.configJson);
    if (!saveDir.empty())
        findCheckpoints(saveDir, found);
    if (found.complete)
        return ResumeAnswer::Continues;
    if (found.any || !mayStartAgain(facts.places, saveDir).ok())
        return ResumeAnswer::Refused;
    return ResumeAnswer::StartsAgain;
}

Status mayStartAgain(const RunPlaces& places, const fs::path& saveDir)
{
    for (const fs::path& dir : {places.runFolder, saveDir}) {
        const fs::path trained = dir.empty() ? fs::path() : trainedFolderIn(dir);
        if (!trained.empty())
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("{}: has its {} and no checkpoint any more; there is nothing to "
                            "resume. Train on with --{} {}",
                    dir.string(), trained.filename().string(), trained.filename().string(),
                    trained.string()));
    }
    if (!places.checkpoints.empty())
        return Status::error(ErrorKind::InvalidArgument,
            places.runFolder.string() + ": the checkpoints of this run are gone (the history has " +
                places.checkpoints.front().string() +
                "); bring them back, or train again from the beginning with "
                "`millrace train --out`");
    return {};
}

} // namespace mr
