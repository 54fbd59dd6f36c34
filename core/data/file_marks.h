// The first bytes of a dataset file, and what they say that it is.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument names the file and the way out; Io from the disk.

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace mr {

inline constexpr std::size_t kSniffBytes = std::size_t{64} << 10;

// At most kSniffBytes; of the contents, where the file is compressed. InvalidArgument: none.
Result<std::string> readBeginning(const std::filesystem::path& path);

// InvalidArgument: an archive, a compression that is not read, UTF-16, a git-lfs pointer, or bytes
// that are no text.
Status checkBeginning(const std::filesystem::path& path, std::string_view beginning);

// Whether the file itself is Parquet: one compresses its pages, so it is not compressed.
Result<bool> isParquet(const std::filesystem::path& path);

} // namespace mr
