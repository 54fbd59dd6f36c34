#include "core/save/run_files.h"

#include "core/data/columns.h"
#include "core/plan/policies.h"
#include "core/save/checkpoint_folder.h"
#include "core/save/run_guard.h"
#include "core/store/trained_folders.h"
#include "core/telemetry/run_folder.h"

#include <millrace/run_reader.h>
#include <millrace/session.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <random>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRunFile = "run.json";

std::string slug(const std::string& name)
{
    std::string out;
    for (const char c : name) {
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (plain)
            out += c;
        else if (!out.empty() && out.back() != '-')
            out += '-';
    }
    return out.empty() ? "run" : out;
}

std::string timeStamp()
{
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 32> text{};
    (void)std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
    return text.data();
}

// Does the run in `dir` have checkpoints, also set aside, or a model: work to resume or use?
bool hasWork(const fs::path& dir, const std::string& configJson)
{
    auto spec = runSpecFromJson(configJson);
    const fs::path saveDir = spec.ok() ? fs::path(spec.value().saveDir) : fs::path();
    return !namedCheckpoints(dir, saveDir).empty() || !asideCheckpoints(dir, saveDir).empty() ||
           !trainedFolderIn(dir).empty() || (!saveDir.empty() && !trainedFolderIn(saveDir).empty());
}

} // namespace

std::string newUuid()
{
    std::random_device random;
    std::string uuid;
    for (int i = 0; i < 4; ++i) {
        std::array<char, 9> text{};
        (void)std::snprintf(text.data(), text.size(), "%08x", random());
        uuid += text.data();
    }
    return uuid;
}

std::string datasetPath(const RunSpec& spec)
{
    return spec.data.empty() ? std::string() : spec.data.front().path;
}

std::int64_t wallClockMs()
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch())
        .count();
}

Result<RunPlace> makeRunDir(const RunSpec& spec)
{
    fs::path dir = spec.outDir;
    if (dir.empty())
        dir = fs::path(defaultRunsFolder()) / (timeStamp() + "-" + slug(spec.name));
    std::error_code error;
    dir = fs::absolute(dir, error);
    if (fs::create_directories(dir, error))
        fs::permissions(dir, fs::perms::owner_all, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create run folder " + dir.string() + ": " + error.message());
    MR_ASSIGN(auto lock, claimRunFolder(dir));
    RunPlace place{dir, std::move(lock), {}};
    if (fs::exists(dir / kRunFile, error)) {
        auto record = readRunRecord(dir.string());
        if (record.ok() && !hasWork(dir, record.value().configJson))
            place.uuidBefore = record.value().uuid;
    }
    if (fs::exists(dir / kRunFile, error) && place.uuidBefore.empty())
        return Status::error(ErrorKind::InvalidArgument,
            dir.string() + ": already holds a run; continue it with `millrace resume " +
                dir.string() + "`, or choose another folder");
    return place;
}

RunSpec withPathsOf(const RunSpec& resolved, RunSpec asked)
{
    const auto take = [](std::string& path, const std::string& absolute) {
        if (!path.empty())
            path = absolute;
    };
    take(asked.modelDir, resolved.modelDir);
    take(asked.scratchConfig, resolved.scratchConfig);
    take(asked.scratchTokenizer, resolved.scratchTokenizer);
    take(asked.outDir, resolved.outDir);
    take(asked.database, resolved.database);
    for (std::size_t i = 0; i < std::min(asked.data.size(), resolved.data.size()); ++i)
        asked.data[i].path = resolved.data[i].path;
    for (std::size_t i = 0; i < std::min(asked.evalData.size(), resolved.evalData.size()); ++i)
        asked.evalData[i].path = resolved.evalData[i].path;
    if (asked.diskPaths.size() == resolved.diskPaths.size())
        asked.diskPaths = resolved.diskPaths;
    return asked;
}

bool isChanged(const ResumeChanges& changes) noexcept
{
    return changes.threads > 0 || changes.deviceMemoryBytes > 0 || changes.hostMemoryBytes > 0 ||
           changes.threadedDevice || !changes.columns.empty();
}

RunSpec changed(RunSpec spec, const ResumeChanges& changes)
{
    if (changes.threads > 0)
        spec.threads = changes.threads;
    if (changes.deviceMemoryBytes > 0)
        spec.deviceMemoryBytes = changes.deviceMemoryBytes;
    if (changes.hostMemoryBytes > 0)
        spec.hostMemoryBytes = changes.hostMemoryBytes;
    spec.threadedDevice = changes.threadedDevice.value_or(spec.threadedDevice);
    for (auto* sources : {&spec.data, &spec.evalData})
        for (DataSource& source : *sources)
            if (columnsAsked(source).empty())
                source.columns.insert(changes.columns.begin(), changes.columns.end());
    return spec;
}

Result<RunSpec> readRunSpec(const std::string& runDir)
{
    std::error_code error;
    if (!fs::exists(fs::path(runDir) / kRunFile, error))
        return Status::error(ErrorKind::InvalidArgument,
            runDir + ": is not a run folder (it has no run.json); give the folder that "
                     "`train --out` wrote");
    MR_ASSIGN(auto record, readRunRecord(runDir));
    auto spec = runSpecFromJson(record.configJson);
    if (!spec.ok())
        return Status::error(ErrorKind::DataCorrupt,
            (fs::path(runDir) / kRunFile).string() + ": " + spec.status().message());
    // A run that an earlier program began goes on with its bits.
    const PolicyInfo* policy = findPolicy(spec.value().policy);
    if (!record.ascendingSums && policy != nullptr && policy->usesDisk)
        spec.value().policyOptions.try_emplace("order", "by-layer-flip");
    return spec;
}

} // namespace mr
