// The first page of a scratch file.
//
// Threads  Any; descriptors are the caller's.
// Errors   Io with the system's reason.

#pragma once

#include "core/tier/scratch_file.h"

#include <cstdint>

namespace mr {

enum class ScratchHeaderKind : std::uint8_t {
    Foreign, // not written by us: hands off
    Empty,   // no byte in it: nothing to lose
    Stale,   // ours, but damaged or of another version or run
    Ours,    // this run and index
};

struct ScratchHeader {
    ScratchHeaderKind kind = ScratchHeaderKind::Foreign;
    std::uint64_t bytes = 0;
    bool filled = false; // every byte was written once and is on the disk
};

// With O_DIRECT or without. `spec` tells ours of this run from a stale one.
Result<ScratchHeader> readScratchHeader(
    int descriptor, const std::filesystem::path& path, const ScratchSpec& spec);
Status writeScratchHeader(
    int descriptor, const std::filesystem::path& path, const ScratchSpec& spec, bool filled);

// "cannot fill /x/y: no space left": for everything that scratch files do.
Status scratchError(const std::string& what, const std::filesystem::path& path, int error);

} // namespace mr
