// openScratchFiles(): the scratch files of a run, several side by side, each filled by a thread of
// its own, because each is to lie on another drive.
//
// Threads  Blocks; `options` are asked and called on the calling thread, for all files together.
// Errors   Those of ScratchFile::open; of several, the first in order. Then none is left behind.

#pragma once

#include "core/tier/scratch_file.h"

#include <span>
#include <vector>

namespace mr {

// Closing a file removes it: its content is worthless without this process. Where room lacks, files
// that crashed runs left in that folder are removed first.
Result<std::vector<ScratchFile>> openScratchFiles(
    std::span<const ScratchSpec> wanted, const ScratchOptions& options);

} // namespace mr
