// ScratchSet: the folders that a run keeps its scratch files in, one file in each.
//
// Files hold bytes in proportion to the speed of their folders, so that all are done at the same
// time, as far as each has room. Folders of one drive share its speed, and those of one file system
// its room; so a second folder on the same drive is of no use, and of no harm.
//
// Threads  Any; values. inspectScratchSet() blocks on files.
// Errors   Io: a folder cannot be looked at. InvalidArgument: one is named twice.
// Units    Bytes; bytes per second.

#pragma once

#include "core/choose/rate_cache.h"
#include "core/tier/scratch_folder.h"

#include <millrace/scratch.h>
#include <millrace/status.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mr {

struct ScratchMember {
    ScratchFolder folder;
    std::uint64_t roomBytes = 0; // free, or held by files of runs that crashed
    ScratchSpeed speed;          // 0: not measured
};

struct ScratchSet {
    std::vector<ScratchMember> members;

    std::uint64_t roomBytes() const noexcept;
    bool isMeasured() const noexcept; // all of them
    // How many of `bytes` each is to hold. Where one was not measured, all count as equally fast.
    std::vector<double> divide(std::uint64_t bytes) const;
    // At which rates `bytes`, divided so, are read and written; left alone where they are not
    // known.
    void addRates(std::uint64_t bytes, Feedback& rates) const;
};

Result<ScratchSet> inspectScratchSet(std::span<const std::string> folders, const RateCache& cache);

} // namespace mr
