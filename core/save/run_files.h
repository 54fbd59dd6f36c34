// Small things around a run folder: its place, its name, the clock of the record.
//
// Threads  Any; blocks on files.
// Errors   Io and DataCorrupt name the file.

#pragma once

#include "core/base/folder_lock.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace mr {

// 32 hex digits from the system's random source.
std::string newUuid();
// Path of the first source of training data, which the user sees beside the run; empty: none.
std::string datasetPath(const RunSpec& spec);
std::int64_t wallClockMs(); // since the epoch, UTC

// Where a run is kept.
struct RunPlace {
    std::filesystem::path dir;
    FolderLock lock;        // taken before anything there was read
    std::string uuidBefore; // run that lies there with nothing to go on from; else empty
};

// Creates the folder, for its owner alone: data, prompts and answers are private. A run that is
// there and has a checkpoint or a model is refused: it is continued by resume, not written over.
Result<RunPlace> makeRunDir(const RunSpec& spec);

// Settings of a resumed run that replace those of its record. None changes a bit.
struct ResumeChanges {
    std::int64_t threads = 0; // 0: as in the record, and so on
    std::uint64_t deviceMemoryBytes = 0;
    std::uint64_t hostMemoryBytes = 0;
    std::optional<bool> threadedDevice;
    // Role -> column, as DataSource::columns, for sources with no columns in the record: an earlier
    // program guessed them. The data's hash proves that they are those the run began with.
    std::map<std::string, std::string> columns{};
};

bool isChanged(const ResumeChanges& changes) noexcept;
// `asked`, with the places that `resolved` has made absolute: it may be read elsewhere.
RunSpec withPathsOf(const RunSpec& resolved, RunSpec asked);
RunSpec changed(RunSpec spec, const ResumeChanges& changes);

} // namespace mr
