// The measured rates of scratch folders, as the planner asks for them (scratch_set.h).
//
// Threads  Any; blocks (files).
// Errors   Those of RateBook::save().

#pragma once

#include "core/choose/rate_book.h"
#include "core/tier/disk_bench.h"
#include "core/tier/scratch_folder.h"

#include <string>

namespace mr {

// What a folder's rates are kept by: file systems of one drive may differ in speed, and so may the
// drives that one mount point has had.
std::string rateKey(const ScratchFolder& folder);

// In the user's book, for the plans to come. What is asked of a mix is half of it each way.
Result<ScratchSpeed> keepDiskRates(const ScratchFolder& folder, const DiskRates& rates);

} // namespace mr
