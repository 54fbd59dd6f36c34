// A file or folder that appears under its name when it is whole, and was read back.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument: something of that name is there. Io. Else what `write` answers, and
//          nothing is left behind.

#pragma once

#include "core/model/master.h"
#include "core/model/param_table.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>

namespace mr {

// `write` makes it under the path that it is given, which lies beside `out` and begins with a dot.
Status writeAside(const std::filesystem::path& out,
    const std::function<Status(const std::filesystem::path& made)>& write);

// Bytes of the files in a folder; those of folders in it are not counted.
std::uint64_t bytesOfFiles(const std::filesystem::path& folder);

// Reads all tensors of both. DataCorrupt names the first one of which `written`, which is in
// `file`, has other values than were made.
Status compareWritten(const std::filesystem::path& file, const ParamTable& table,
    MasterReader& made, MasterReader& written);

} // namespace mr
