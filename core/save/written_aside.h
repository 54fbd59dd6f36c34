// A file or folder that appears under its name when it is whole.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument: something of that name is there. Io. Else what `write` answers, and
//          nothing is left behind.

#pragma once

#include <millrace/status.h>

#include <filesystem>
#include <functional>

namespace mr {

// `write` makes it under the path that it is given, which lies beside `out` and begins with a dot.
Status writeAside(const std::filesystem::path& out,
    const std::function<Status(const std::filesystem::path& made)>& write);

} // namespace mr
