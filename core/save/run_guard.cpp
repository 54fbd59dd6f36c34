#include "core/save/run_guard.h"

#include "core/store/run_leftovers.h"
#include "core/telemetry/run_folder.h"

#include <millrace/run_reader.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <system_error>
#include <vector>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr std::array<const char*, 3> kLogs = {"steps.jsonl", "events.jsonl", "samples.jsonl"};
constexpr std::array<const char*, 3> kFolders = {"model", "adapter", "checkpoints"};

Status refuseForeign(const fs::path& dir)
{
    std::error_code error;
    const auto refuse = [](const fs::path& path, const char* what) {
        return Status::error(ErrorKind::InvalidArgument,
            path.string() + ": is " + what +
                "; a run folder has files and folders of its own. Put what belongs there in its "
                "place, or remove it");
    };
    for (const char* name : kLogs) {
        const fs::file_type type = fs::symlink_status(dir / name, error).type();
        if (type == fs::file_type::symlink)
            return refuse(dir / name, "a link");
        if (type != fs::file_type::regular && type != fs::file_type::not_found)
            return refuse(dir / name, "no regular file");
    }
    for (const char* name : kFolders)
        if (fs::symlink_status(dir / name, error).type() == fs::file_type::symlink)
            return refuse(dir / name, "a link");
    return {};
}

// "config.json.tmp-1234"
bool isTemporary(std::string_view name, bool isTrained)
{
    if (isTrained && name.starts_with('.') && name.ends_with(".part"))
        return true;
    const std::size_t dot = name.rfind(".tmp-");
    if (dot == std::string_view::npos)
        return false;
    const std::string_view digits = name.substr(dot + 5);
    const std::string_view of = name.substr(0, dot);
    return !digits.empty() &&
           std::all_of(digits.begin(), digits.end(),
               [](unsigned char c) { return std::isdigit(c) != 0; }) &&
           of.ends_with(".json") && (isTrained || of == "run.json" || of.starts_with("trace-"));
}

bool isWithin(const fs::path& path, const fs::path& folder)
{
    std::error_code error;
    const fs::path inner = fs::weakly_canonical(path, error);
    const fs::path outer = fs::weakly_canonical(folder, error);
    const auto ends = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
    return !error && ends.first == outer.end();
}

bool hasRun(const std::string& database, const std::string& uuid)
{
    std::error_code error;
    if (!fs::is_regular_file(database, error)) // a pipe would never be opened
        return false;
    auto reader = RunReader::open(database);
    auto runs = reader.ok() ? reader.value()->runs() : Result<std::vector<RunRow>>(reader.status());
    return runs.ok() && std::any_of(runs.value().begin(), runs.value().end(),
                            [&uuid](const RunRow& run) { return run.uuid == uuid; });
}

} // namespace

Result<FolderLock> claimRunFolder(const fs::path& dir)
{
    auto lock = FolderLock::take(dir);
    MR_TRY(lock.status());
    MR_TRY(refuseForeign(dir));
    removeTemporaries(dir);
    return lock;
}

void removeTemporaries(const fs::path& dir)
{
    std::vector<fs::path> left;
    std::error_code error;
    for (const fs::path& folder : {dir, dir / "model", dir / "adapter"})
        for (const auto& entry : fs::directory_iterator(folder, error))
            if (isTemporary(entry.path().filename().string(), folder != dir) &&
                fs::symlink_status(entry.path(), error).type() != fs::file_type::directory)
                left.push_back(entry.path());
    for (const fs::path& path : left)
        fs::remove(path, error);
}

bool mayUseSaveDir(const fs::path& saveDir, const fs::path& runDir, const std::string& uuid)
{
    return isWithin(saveDir, runDir) || isOwnFolder(saveDir, uuid);
}

Status mayUseDatabase(const RunSpec& spec, const fs::path& runDir)
{
    if (spec.database.empty() || spec.database == defaultDatabasePath() ||
        isWithin(spec.database, runDir))
        return {};
    MR_ASSIGN(auto record, readRunRecord(runDir.string()));
    if (hasRun(spec.database, record.uuid))
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        (runDir / "run.json").string() + ": field \"database\" names the history " + spec.database +
            ", which does not have this run. If it is to be entered there, say so with --db " +
            spec.database + ", or name another history with --db");
}

} // namespace mr
