// What a run keeps on disk: its tiles as a layout, and the files and the store that hold them.
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

namespace mr {

struct RunDiskSpec {
    std::filesystem::path folder;
    std::string runId = "run"; // names the file
    DiskOptions store;         // but for its memory
    ScratchOptions scratch;
};

// What is stored of each of the plan's tiles, numbered as DiskCuts::stored does, and behind that of
// boundaries.
Result<DiskLayout> runDiskLayout(const MemoryPlan& plan);

// Fills the file, which takes as long as writing it does. It is removed with the store.
Result<std::unique_ptr<DiskStore>> openRunDisk(const MemoryPlan& plan, const RunDiskSpec& spec,
    std::span<std::byte> slots, FailureLatch& latch);

} // namespace mr
