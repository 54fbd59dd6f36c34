// The texts of a checkpoint, state.json and manifest.json, checked before anything is indexed by
// them: a checkpoint may come from anywhere, as a copy that broke or a stranger's.
//
// Threads  Pure functions.
// Errors   DataCorrupt names the text and the place, field or file.

#pragma once

#include <millrace/status.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace mr {

// Every field that resuming needs is there, of its type and within its range. Fields that are not
// known are let through.
Result<nlohmann::json> parseStateText(std::string_view text, const std::string& source);

// "files" is an object of files below the folder, each with the hash it was written with; those of
// the state are listed.
Result<nlohmann::json> parseManifestText(std::string_view text, const std::string& source);

// A number to the last bit, of type double or float. JSON has no infinities: they are written as
// their bits, "0x7ff0000000000000", and so is a NaN other than the usual one, which is null.
template <typename Number>
nlohmann::json exactly(Number value);
// None: it is neither, or is larger than the type holds.
template <typename Number>
std::optional<Number> readExact(const nlohmann::json& json);

} // namespace mr
