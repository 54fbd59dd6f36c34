// Measures a folder's disk on a real scratch file: through the DiskStore, and by a bare loop over
// the same engine, which is its limit.
//
// Data sheets give short bursts into an empty drive, one direction at a time. Training reads and
// writes at once, for hours; so the mix is measured too, and as long as one asks.
//
// The file has two halves: the store's tiles, and as much for the bare loop. Both have the same
// number of requests in flight, in the same size, and take turns, so that other load and the
// drive's moods hit both alike; medians are reported.
//
// Threads  The caller's, which blocks; the store's; nothing else may use the disk.
// Errors   Those of ScratchFile and DiskStore; Cancelled.
// Units    Bytes per second; the mix is the sum of both directions.

#pragma once

#include "core/tier/disk_engine.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace mr {

inline constexpr std::uint64_t kLeastDiskBenchBytes = std::uint64_t{24} << 20;

struct DiskBenchSpec {
    std::filesystem::path folder = ".";
    std::uint64_t bytes = std::uint64_t{1} << 30; // size of the file
    double seconds = 15.0;                        // time of measuring, all samples together
    int rounds = 5;
    DiskEngine engine = DiskEngine::Auto;
    std::uint32_t requestBytes = kDiskRequestBytes;
    int depth = 16;    // requests in flight each way
    bool tune = false; // try {256K, 512K, 1M} x {8, 16, 32, 64} first, and take the best mix
    bool limit = true; // false: the store only, with all of `seconds`; limits are 0
    // Both are asked a few times a second at least, but not while `tune` tries.
    std::function<void(double share)> progress = {};
    std::function<bool()> cancelled = {};
};

struct DiskBenchRow {
    std::string name; // "read", "write", "mixed"
    double ours = 0.0;
    double limit = 0.0;
    double ourCores = 0.0; // processor time of the whole process over the time of the sample
    double limitCores = 0.0;
};

// For the planner.
struct DiskRates {
    double readBytesPerSecond = 0.0;
    double writeBytesPerSecond = 0.0;
    double mixedBytesPerSecond = 0.0;
    std::string engine;
};

struct DiskBenchResult {
    std::vector<DiskBenchRow> rows;
    DiskRates rates;
    std::string about;
    std::uint32_t requestBytes = 0;
    int depth = 0;
};

// The scratch file is removed at the end.
Result<DiskBenchResult> benchDisk(const DiskBenchSpec& spec);

} // namespace mr
