// The disk of a run: its tiles as a layout, and the files and the store that hold them.
//
// Threads    Engine thread.
// Ownership  The store owns its files. `slots` and the latch are lent and outlive it.
// Errors     InvalidArgument: no folder was named. Those of ScratchFile and DiskStore, which name
//            file, bytes and the way out.
// Units      Bytes.

#pragma once

#include "core/plan/memory_plan.h"
#include "core/tier/disk_store.h"

#include <millrace/status.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mr {

struct RunDiskSpec {
    std::vector<std::filesystem::path> folders; // a file in each
    std::vector<double> shares;                 // share of bytes for each folder; empty: equal ones
    std::string runId = "run";                  // names the files
    DiskOptions store;                          // all except its memory
    ScratchOptions scratch; // asked and called on the calling thread; of all files together
};

// The stored parts of each of the plan's tiles, numbered as DiskCuts::stored does, and boundaries
// behind them. Files get tiles in proportion to `shares`.
Result<DiskLayout> runDiskLayout(const MemoryPlan& plan, std::span<const double> shares);

// Fills the files, all at once, which takes as long as writing them does. They are removed with the
// store.
Result<std::unique_ptr<DiskStore>> openRunDisk(const MemoryPlan& plan, const RunDiskSpec& spec,
    std::span<std::byte> slots, FailureLatch& latch);

} // namespace mr
