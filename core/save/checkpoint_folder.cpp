#include "core/save/checkpoint_folder.h"

#include "core/base/file.h"
#include "core/save/checkpoint_manifest.h"
#include "core/store/trained_folders.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kNamePrefix = "step-";
constexpr std::string_view kLeftPrefix = ".step-";
constexpr std::string_view kBrokenPrefix = "broken-";
constexpr std::string_view kOtherPrefix = "other-";
constexpr std::size_t kDigits = 8; // at least
constexpr std::uint64_t kMostProgressBytes = 1 << 20;

// Folders of checkpoints, beginning with the one that the run moved to.
std::vector<fs::path> foldersOf(const fs::path& runDir, const fs::path& saveDir)
{
    if (saveDir.empty() || saveDir == runDir)
        return {runDir / "checkpoints"};
    return {saveDir / "checkpoints", runDir / "checkpoints"};
}

// The step of "step-00000300"; none: another name, as "step-copy".
std::optional<std::int64_t> stepOf(std::string_view name)
{
    if (!name.starts_with(kNamePrefix) || name.size() < kNamePrefix.size() + kDigits)
        return std::nullopt;
    std::int64_t step = 0;
    const char* end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kNamePrefix.size(), end, step);
    if (read.ec != std::errc() || read.ptr != end || checkpointName(step) != name)
        return std::nullopt;
    return step;
}

std::vector<CheckpointInfo> named(const fs::path& runDir, const fs::path& saveDir)
{
    std::vector<CheckpointInfo> found;
    std::error_code error;
    for (const fs::path& folder : foldersOf(runDir, saveDir))
        for (const auto& entry : fs::directory_iterator(folder, error))
            if (const auto step = stepOf(entry.path().filename().string()))
                found.push_back({entry.path(), *step});
    std::stable_sort(found.begin(), found.end(),
        [](const CheckpointInfo& a, const CheckpointInfo& b) { return a.step > b.step; });
    return found;
}

std::vector<CheckpointInfo> complete(const fs::path& runDir, const fs::path& saveDir)
{
    std::vector<CheckpointInfo> found = named(runDir, saveDir);
    std::erase_if(found, [](const CheckpointInfo& one) {
        std::error_code error;
        return !fs::exists(one.path / kManifestFile, error);
    });
    return found;
}

std::vector<fs::path> pathsOf(const std::vector<CheckpointInfo>& checkpoints)
{
    std::vector<fs::path> paths;
    for (const CheckpointInfo& one : checkpoints)
        paths.push_back(one.path);
    return paths;
}

Status failed(const char* what, const fs::path& path, const std::error_code& error)
{
    return Status::error(
        ErrorKind::Io, std::string(what) + " " + path.string() + ": " + error.message());
}

// Renames first, so the checkpoint is gone at once; a crash leaves a leftover.
bool removeWhole(const fs::path& path)
{
    std::string name = path.filename().string();
    name.erase(0, name.find(kNamePrefix));
    const fs::path doomed = path.parent_path() / ("." + name);
    std::error_code error;
    fs::remove_all(doomed, error);
    fs::rename(path, doomed, error);
    if (error)
        return false;
    fs::remove_all(doomed, error);
    return true;
}

bool isOfRun(const fs::path& checkpoint, const std::string& runId)
{
    auto progress = readProgress(checkpoint);
    return progress.ok() && (progress.value().runId == runId || progress.value().runId.empty());
}

// Both names change hands at once.
bool exchange(const fs::path& a, const fs::path& b)
{
    return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

// Holds only files of a checkpoint: somebody's own files may lie under such a name, too.
bool hasOnlyItsOwn(const fs::path& checkpoint)
{
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(checkpoint, error)) {
        const std::string name = entry.path().filename().string();
        if (name != kManifestFile && name != "state" &&
            std::ranges::count(kTrainedFolders, name) == 0)
            return false;
    }
    return !error;
}

std::vector<fs::path> removeBroken(const std::vector<fs::path>& aside, std::int64_t newestWhole)
{
    std::vector<fs::path> removed;
    for (const fs::path& path : aside) {
        const std::string name = path.filename().string();
        if (!name.starts_with(kBrokenPrefix))
            continue;
        const std::string_view bare = std::string_view(name).substr(kBrokenPrefix.size());
        const auto step = stepOf(bare.substr(0, bare.find('.')));
        if (step && *step <= newestWhole && removeWhole(path))
            removed.push_back(path);
    }
    return removed;
}

} // namespace

std::string checkpointName(std::int64_t step)
{
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "step-%08" PRId64, step);
    return text.data();
}

std::vector<fs::path> listCheckpoints(const fs::path& runDir, const fs::path& saveDir)
{
    return pathsOf(complete(runDir, saveDir));
}

std::vector<fs::path> namedCheckpoints(const fs::path& runDir, const fs::path& saveDir)
{
    return pathsOf(named(runDir, saveDir));
}

std::vector<fs::path> asideCheckpoints(const fs::path& runDir, const fs::path& saveDir)
{
    std::vector<fs::path> found;
    std::error_code error;
    for (const fs::path& folder : foldersOf(runDir, saveDir))
        for (const auto& entry : fs::directory_iterator(folder, error)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with(kBrokenPrefix) || name.starts_with(kOtherPrefix))
                found.push_back(entry.path());
        }
    std::sort(found.begin(), found.end());
    return found;
}

Result<RunProgress> readProgress(const fs::path& checkpoint)
{
    const fs::path path = checkpoint / "state" / "state.json";
    MR_ASSIGN(auto text, readWholeFile(path, kMostProgressBytes));
    return progressFromJson(text, path);
}

std::vector<CheckpointInfo> describeCheckpoints(const fs::path& runDir, const fs::path& saveDir)
{
    std::vector<CheckpointInfo> found = complete(runDir, saveDir);
    CheckpointInfo* best = nullptr;
    for (CheckpointInfo& one : found) {
        auto progress = readProgress(one.path);
        if (progress.ok())
            one.evalLoss = progress.value().evalLoss;
        if (std::isfinite(one.evalLoss) && (!best || one.evalLoss < best->evalLoss))
            best = &one;
    }
    if (best)
        best->isBest = true;
    return found;
}

double bestEvalLoss(const fs::path& runDir, const fs::path& saveDir)
{
    for (const CheckpointInfo& one : describeCheckpoints(runDir, saveDir))
        if (one.isBest)
            return one.evalLoss;
    return std::numeric_limits<double>::quiet_NaN();
}

Status installCheckpoint(const fs::path& sealed, const fs::path& final)
{
    std::error_code error;
    if (fs::exists(fs::symlink_status(final, error))) {
        MR_ASSIGN(auto progress, readProgress(sealed));
        if (!isOfRun(final, progress.runId)) {
            MR_TRY(setAside(final, SetAside::Other).status());
        } else if (exchange(sealed, final)) {
            MR_TRY(syncFolder(final.parent_path()));
            fs::remove_all(sealed, error);
            return {};
        } else { // a file system that cannot
            fs::remove_all(final, error);
        }
    }
    fs::rename(sealed, final, error);
    if (error)
        return failed("rename to", final, error);
    MR_TRY(syncFolder(final.parent_path()));
    return syncFolder(final.parent_path().parent_path()); // the first one made its folder
}

Result<fs::path> setAside(const fs::path& checkpoint, SetAside why)
{
    const bool isBroken = why == SetAside::Broken && hasOnlyItsOwn(checkpoint);
    const std::string prefix(isBroken ? kBrokenPrefix : kOtherPrefix);
    const std::string name = prefix + checkpoint.filename().string();
    fs::path place = checkpoint.parent_path() / name;
    std::error_code error;
    for (int i = 2; fs::exists(fs::symlink_status(place, error)); ++i)
        place = checkpoint.parent_path() / (fmt::format("{}.{}", name, i));
    fs::rename(checkpoint, place, error);
    if (error)
        return failed("set aside", checkpoint, error);
    MR_TRY(syncFolder(place.parent_path()));
    return place;
}

Pruned pruneCheckpoints(const fs::path& runDir, std::int64_t keep, const fs::path& saveDir)
{
    removeLeftovers(runDir, saveDir);
    Pruned pruned;
    const std::vector<CheckpointInfo> found = describeCheckpoints(runDir, saveDir);
    for (std::size_t i = static_cast<std::size_t>(std::max<std::int64_t>(keep, 1));
         i < found.size(); ++i)
        if (!found[i].isBest && removeWhole(found[i].path))
            pruned.older.push_back(found[i].path);
    if (!found.empty())
        pruned.broken = removeBroken(asideCheckpoints(runDir, saveDir), found.front().step);
    return pruned;
}

void removeLeftovers(const fs::path& runDir, const fs::path& saveDir)
{
    std::vector<fs::path> left;
    std::error_code error;
    for (const fs::path& folder : foldersOf(runDir, saveDir))
        for (const auto& entry : fs::directory_iterator(folder, error))
            if (entry.path().filename().string().starts_with(kLeftPrefix))
                left.push_back(entry.path());
    for (const fs::path& path : left)
        fs::remove_all(path, error);
}

} // namespace mr
