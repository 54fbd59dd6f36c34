// Strict JSON text to values, for the run record and for files from strangers.
//
// Stricter than the library alone: duplicate keys, raw NUL bytes and nesting beyond
// kJsonDepth are refused, so no later code has to think of them.
//
// Threads  Pure functions.
// Errors   DataCorrupt names the source and the line and column where reading stopped.

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mr {

// No file we read nests deeper than five.
inline constexpr std::size_t kJsonDepth = 64;

// `source` names the text in messages.
Result<nlohmann::json> parseJson(std::string_view text, const std::string& source);

// Whether brackets nest deeper than kJsonDepth, JSON or not: copying and writing values recurses.
// For texts that are parsed without parseJson().
bool nestsTooDeeply(std::string_view text) noexcept;

// "line 3, column 14" of a byte position.
std::string jsonPlace(std::string_view text, std::size_t position);

} // namespace mr
