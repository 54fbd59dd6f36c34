#include "core/run/run_history.h"

#include "core/save/checkpoint_folder.h"
#include "core/save/checkpoint_manifest.h"
#include "core/save/run_guard.h"
#include "core/telemetry/run_folder.h"

#include <millrace/run_reader.h>
#include <millrace/session.h>

#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <vector>

namespace mr {
namespace fs = std::filesystem;
namespace {

std::int64_t writtenMs(const fs::path& path)
{
    struct stat info {
    };
    if (::stat(path.c_str(), &info) != 0)
        return 0;
    return std::int64_t{info.st_mtim.tv_sec} * 1000 + info.st_mtim.tv_nsec / 1'000'000;
}

Status enterCheckpoint(RunStore& store, std::int64_t runId, const CheckpointInfo& info)
{
    auto sealed = readSeal(info.path);
    if (!sealed.ok())
        return {}; // broken: a run that resumes reports it
    CheckpointRow row;
    row.step = info.step;
    row.path = info.path.string();
    row.bytes = static_cast<std::int64_t>(sealed.value().bytes);
    row.state = "complete";
    row.createdMs = writtenMs(info.path / kManifestFile);
    row.evalLoss = info.evalLoss;
    return store.addCheckpoint(runId, row, sealed.value().manifestHash);
}

bool isGone(const fs::path& checkpoint)
{
    std::error_code error;
    return fs::is_directory(checkpoint.parent_path(), error) && !fs::exists(checkpoint, error) &&
           !error;
}

} // namespace

Status enterCheckpoints(
    RunStore& store, std::int64_t runId, const fs::path& runDir, const fs::path& saveDir)
{
    MR_ASSIGN(auto reader, RunReader::open(store.path()));
    MR_ASSIGN(auto rows, reader->checkpoints(runId));
    const auto isKept = [](const CheckpointRow& row) {
        return row.state == "complete" || row.state == "verified";
    };
    for (const CheckpointRow& row : rows)
        if (isKept(row) && isGone(row.path))
            MR_TRY(store.setCheckpointState(row.path, "deleted"));
    for (const CheckpointInfo& info : describeCheckpoints(runDir, saveDir)) {
        const bool isKnown = std::any_of(rows.begin(), rows.end(), [&](const CheckpointRow& row) {
            return row.path == info.path && row.state != "deleted";
        });
        if (!isKnown)
            MR_TRY(enterCheckpoint(store, runId, info));
    }
    return {};
}

Status enterMissingSteps(
    RunStore& store, std::int64_t runId, const fs::path& runDir, std::int64_t step)
{
    MR_ASSIGN(auto known, store.countSteps(runId, step));
    if (known >= step)
        return {};
    return rebuildFromRunFolder(store, runDir.string()).status();
}

Result<std::int64_t> rebuildHistory(RunStore& store, const fs::path& runDir)
{
    MR_ASSIGN(auto spec, readRunSpec(runDir.string()));
    auto lock = claimRunFolder(runDir);
    MR_TRY(lock.status());
    MR_ASSIGN(auto record, readRunRecord(runDir.string()));
    auto id = rebuildFromRunFolder(store, runDir.string());
    MR_TRY(id.status());
    const fs::path saveDir = spec.saveDir;
    const bool isUsed = mayUseSaveDir(saveDir, runDir, record.uuid);
    MR_TRY(enterCheckpoints(store, id.value(), runDir, isUsed ? saveDir : fs::path()));
    return id;
}

} // namespace mr
