// The manifest of a checkpoint: the files written, so that a reader can tell any change.
//
//     { "files": { "state/state.json": { "bytes": 812, "xxh3": "..." }, ... },
//       "manifest": "hash of all this without this line", "version": 2 }
//
// Threads  Any; blocks on files.
// Errors   seal: Io. verify: DataCorrupt or Io, with the first file that is not as it was written
//          and its fault.
// Units    Bytes.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace mr {

// How much of a file is in memory at once.
inline constexpr std::size_t kCheckpointPieceBytes = std::size_t{1} << 20;
inline constexpr const char* kManifestFile = "manifest.json";

struct Sealed {
    std::uint64_t bytes = 0;  // all files but the manifest
    std::string manifestHash; // hash of the manifest file
};

// XXH3-64 of a file, 16 hex digits.
Result<std::string> hashOfFile(const std::filesystem::path& path);

// Lists every file below `folder` with its hash, fsyncs the folders, writes the manifest last.
Result<Sealed> sealCheckpoint(const std::filesystem::path& folder);

// As it was given when the folder was sealed, from a manifest that is whole. No other file is read.
Result<Sealed> readSeal(const std::filesystem::path& folder);

enum class VerifyDepth : std::uint8_t {
    Lengths, // the manifest is whole, and every file is there with its length
    Bytes,   // and has the bytes that were written: reads all of them
};

// Checks every bit, the manifest's own too, and files that a loader would take but the manifest
// does not list. `below`: only files with names that begin so ("model/").
Status verifyCheckpoint(
    const std::filesystem::path& folder, VerifyDepth depth, std::string_view below = {});

} // namespace mr
