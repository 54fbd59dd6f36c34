// The manifest of a checkpoint: what was written, so that what is read can be told from it.
//
//     { "files": { "state/state.json": { "bytes": 812, "xxh3": "..." }, ... },
//       "manifest": "hash of all this without this line", "version": 2 }
//
// Threads  Any; blocks on files.
// Errors   seal: Io. verify: DataCorrupt or Io, with the first file that is not as it was written
//          and what is wrong with it.
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
    std::uint64_t bytes = 0;  // of all files but the manifest
    std::string manifestHash; // of its file
};

// Lists every file below `folder` with its hash, fsyncs the folders, writes the manifest last.
Result<Sealed> sealCheckpoint(const std::filesystem::path& folder);

// As it was given when the folder was sealed, from a manifest that is whole. No other file is read.
Result<Sealed> readSeal(const std::filesystem::path& folder);

enum class VerifyDepth : std::uint8_t {
    Lengths, // the manifest is whole, and every file is there with its length
    Bytes,   // and has the bytes that were written: reads all of them
};

// Every bit counts, those of the manifest itself too, and what a loader would take that is not in
// it. `below`: only files whose name begins so ("model/").
Status verifyCheckpoint(
    const std::filesystem::path& folder, VerifyDepth depth, std::string_view below = {});

} // namespace mr
