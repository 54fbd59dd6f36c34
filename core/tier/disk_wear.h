// Compares the bytes that a run writes with the rating of its drive and the limit of the user.
//
// A drive's rated endurance (TBW) is in its data sheet and nowhere else: where it is not given, it
// is assumed from the drive's size, and the sentence says so.
//
// Threads  Pure.
// Errors   checkDiskWrites(): InvalidArgument with both numbers and the way out.
// Units    Bytes; in sentences powers of 1000, as endurance is given.

#pragma once

#include "core/tier/disk_health.h"

#include <millrace/status.h>

#include <cstdint>
#include <string>

namespace mr {

// Usual for consumer drives of three-bit cells: a 2 TB Samsung 990 PRO is rated for 1200 TB.
inline constexpr std::uint64_t kAssumedWritesPerByte = 600;

struct DiskWear {
    std::uint64_t writeBytesPerStep = 0;
    std::int64_t steps = 0;       // 0: not known
    double stepSeconds = 0.0;     // 0: not known
    std::uint64_t ratedBytes = 0; // 0: assumed from the size of the drive
};

// Sentences: the bytes that the run writes to the drive and when they reach its rating. Empty where
// a step writes nothing.
std::string wearLine(const DiskWear& wear, const DiskHealth& health);

// `runBytes`: all that the run would write. `mostBytes` 0: no limit.
Status checkDiskWrites(std::uint64_t runBytes, std::uint64_t mostBytes);

} // namespace mr
