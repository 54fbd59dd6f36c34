// The texts of a checkpoint, state.json and manifest.json, checked before anything is indexed by
// them: a checkpoint may come from anywhere, as a copy that broke or a stranger's.
//
// Threads  Pure functions.
// Errors   DataCorrupt names the text and the place, field or file.

#pragma once

#include <millrace/status.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mr {

// Every field that resuming needs is there, of its type and within its range. Fields that are not
// known are let through.
Result<nlohmann::json> parseStateText(std::string_view text, const std::string& source);

// "files" is an object of files below the folder, each with the hash it was written with; those of
// the state are listed.
Result<nlohmann::json> parseManifestText(std::string_view text, const std::string& source);

} // namespace mr
