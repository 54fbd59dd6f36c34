// The folder for what can be made again: $XDG_CACHE_HOME/millrace, else ~/.cache/millrace.
//
// Threads  Any.
// Errors   Io names the folder and the way out.

#pragma once

#include <millrace/status.h>

#include <filesystem>

namespace mr {

// Made if it is not there.
Result<std::filesystem::path> cacheFolder();

} // namespace mr
