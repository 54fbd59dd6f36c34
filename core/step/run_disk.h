// The disk of a run: its tiles as a layout, and the files and the store that hold them.
//
// Threads    Engine thread.
// Ownership  The store owns its files. `slots` and the latch are lent and outlive it.
// Errors     InvalidArgument: no folder was named. Those of ScratchFile and DiskStore, which name
//            file, bytes and the way out.
// Units      Bytes.

#pragma once

#include "core/plan/memory_plan.h"
#include "core/step/frozen_pieces.h"
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
    BaseFiles base;                             // for a plan with frozen weights on disk
    ScratchOptions scratch; // asked and called on the calling thread; of all files together
};

// The stored parts of each of the plan's tiles, numbered as DiskCuts::stored does, and boundaries
// behind them. Files get tiles in proportion to `shares`; there are none where nothing is written.
Result<DiskLayout> runDiskLayout(const MemoryPlan& plan, std::span<const double> shares);

// The memory and the pieces that the store is opened for, beside the plan.
struct RunDiskNeeds {
    std::span<std::byte> slots;
    const FrozenPieces& frozen; // stored behind all else
};
// Fills the scratch files, all at once, which takes as long as writing them does. They are removed
// with the store. Files of frozen weights are opened to be read.
Result<std::unique_ptr<DiskStore>> openRunDisk(const MemoryPlan& plan, const RunDiskSpec& spec,
    const RunDiskNeeds& needs, FailureLatch& latch);

} // namespace mr
