// Files that a run left on the disk, found and removed by name: a run folder may be one that the
// user chose, with other things in it.
//
// A folder is the run's own if its run.json says so. In a folder that lost its run.json, or is
// another run's by now, only the checkpoints that the history has as this run's are touched. Links
// are removed, their targets are not.
//
// Threads  Any; blocks on files.
// Errors   Io with the file that could not be removed; files removed by then are gone.
// Order    run.json goes last, so that an interrupted removal can be done again.

#pragma once

#include <millrace/run_edits.h>

#include <filesystem>
#include <string>
#include <vector>

namespace mr {

constexpr const char* kCheckpointsFolder = "checkpoints"; // in a run folder

struct RunPlaces {
    std::string uuid;
    std::filesystem::path runFolder;                // empty: it has none
    std::vector<std::filesystem::path> checkpoints; // as in the history
};

// By its run.json.
bool isOwnFolder(const std::filesystem::path& folder, const std::string& uuid);
// Folders that a model of this run may be in: its own, and those its checkpoints were moved to.
std::vector<std::filesystem::path> runFolders(const RunPlaces& places);
// Adds to `files`.
void measureLeftovers(const RunPlaces& places, RunFiles& files);
// Folders go too where nothing else is in them.
Status removeLeftovers(const RunPlaces& places);

} // namespace mr
