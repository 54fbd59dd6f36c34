#include "core/store/run_leftovers.h"

#include "core/base/file.h"
#include "core/base/folder_lock.h"
#include "core/store/trained_folders.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{64} << 20;
constexpr const char* kRecord = "run.json";

bool isPart(const std::string& name)
{
    for (const char* own : {"steps.jsonl", "events.jsonl", "samples.jsonl", FolderLock::kFile}) {
        if (name == own)
            return true;
    }
    if (std::ranges::count(kTrainedFolders, name) > 0 || name == kBlocksFolder)
        return true;
    return name.starts_with("trace-") && name.ends_with(".json");
}

bool isCheckpoint(const std::string& name)
{
    return name.starts_with("step-") || name.starts_with(".step-");
}

void addThose(const fs::path& folder, bool (*wanted)(const std::string&), std::vector<fs::path>& to)
{
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
        if (wanted(entry.path().filename().string()))
            to.push_back(entry.path());
    }
}

// In the order they are to go.
std::vector<fs::path> partsOf(const RunPlaces& places)
{
    std::vector<fs::path> parts;
    for (const fs::path& checkpoint : places.checkpoints) {
        std::error_code failed;
        if (isCheckpoint(checkpoint.filename().string()) && fs::exists(checkpoint, failed))
            parts.push_back(checkpoint);
    }
    for (const fs::path& folder : runFolders(places)) {
        if (!isOwnFolder(folder, places.uuid))
            continue;
        addThose(folder / kCheckpointsFolder, &isCheckpoint, parts);
        addThose(folder, &isPart, parts);
        parts.push_back(folder / kRecord);
    }
    // A checkpoint may have been found twice.
    std::vector<fs::path> once;
    for (const fs::path& part : parts) {
        if (std::find(once.begin(), once.end(), part) == once.end())
            once.push_back(part);
    }
    return once;
}

void addFile(const fs::directory_entry& entry, RunFiles& files)
{
    std::error_code failed;
    if (entry.is_symlink(failed) || !entry.is_regular_file(failed))
        return;
    const std::uintmax_t bytes = entry.file_size(failed);
    files.bytes += failed ? 0 : bytes;
    ++files.files;
}

} // namespace

bool isOwnFolder(const fs::path& folder, const std::string& uuid)
{
    Result<std::string> text = readWholeFile(folder / kRecord, kMaxRecordBytes);
    if (!text.ok())
        return false;
    const nlohmann::json record = nlohmann::json::parse(text.value(), nullptr, false);
    const auto found = record.is_object() ? record.find("uuid") : record.end();
    return found != record.end() && found->is_string() && found->get<std::string>() == uuid;
}

std::vector<fs::path> runFolders(const RunPlaces& places)
{
    std::vector<fs::path> folders;
    const auto add = [&folders](const fs::path& folder) {
        if (!folder.empty() && std::find(folders.begin(), folders.end(), folder) == folders.end())
            folders.push_back(folder);
    };
    add(places.runFolder);
    for (const fs::path& checkpoint : places.checkpoints)
        add(checkpoint.parent_path().parent_path());
    return folders;
}

void measureLeftovers(const RunPlaces& places, RunFiles& files)
{
    std::error_code failed;
    for (const fs::path& part : partsOf(places)) {
        addFile(fs::directory_entry(part, failed), files);
        if (fs::is_symlink(part, failed) || !fs::is_directory(part, failed))
            continue;
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(part, failed))
            addFile(entry, files);
    }
    for (const fs::path& folder : runFolders(places)) {
        if (fs::exists(folder, failed))
            files.folders.push_back(folder.string());
    }
}

Status removeLeftovers(const RunPlaces& places)
{
    std::error_code failed;
    std::vector<FolderLock> locks; // a run that another history knows may go on there
    for (const fs::path& folder : runFolders(places)) {
        if (!isOwnFolder(folder, places.uuid))
            continue;
        MR_ASSIGN(FolderLock lock, FolderLock::take(folder));
        locks.push_back(std::move(lock));
    }
    for (const fs::path& part : partsOf(places)) {
        fs::remove_all(part, failed);
        if (failed)
            return Status::error(ErrorKind::Io, part.string() +
                                                    " cannot be removed: " + failed.message() +
                                                    "; the run stays in the bin");
    }
    for (const fs::path& folder : runFolders(places)) {
        fs::remove(folder / kCheckpointsFolder, failed); // only if empty
        fs::remove(folder, failed);
    }
    return {};
}

} // namespace mr
