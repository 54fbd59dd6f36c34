// The measured rates of scratch folders, as the planner asks for them (scratch_set.h).
//
// Threads  Any; blocks (files).
// Errors   Those of RateCache::save().

#pragma once

#include "core/choose/rate_cache.h"
#include "core/tier/disk_bench.h"
#include "core/tier/scratch_folder.h"

#include <string>

namespace mr {

// Key of a folder's rates in the cache: device, file system and mount point. File systems of one
// drive may differ in speed, and so may the drives that one mount point has had.
std::string rateKey(const ScratchFolder& folder);

// Writes rates to the user's cache, for the plans to come. Each way gets half of the mixed rate.
Result<ScratchSpeed> keepDiskRates(const ScratchFolder& folder, const DiskRates& rates);

} // namespace mr
