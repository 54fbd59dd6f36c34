// Small things around a run folder: its place, its name, the clock of the record.
//
// Threads  Any; blocks on files.
// Errors   Io and DataCorrupt name the file.

#pragma once

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace mr {

// 32 hex digits from the system's random source.
std::string newUuid();
// Of the first source of training data, which a run is shown with; empty if there is none.
std::string datasetPath(const RunSpec& spec);
std::int64_t wallClockMs(); // since the epoch, UTC

// Creates the folder a run is kept in. An existing run there is refused: it is continued by
// resume, not written over.
Result<std::filesystem::path> makeRunDir(const RunSpec& spec);

} // namespace mr
