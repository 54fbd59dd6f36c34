// The bare loop: requests one after the other over a stretch of a file, and nothing else. It gives
// the disk's rate without looking at a byte; DiskStore is judged by it.
//
// Threads  One.
// Errors   Io, with the first request that failed.
// Units    Bytes, seconds.

#pragma once

#include "core/tier/disk_io.h"

#include <millrace/status.h>

namespace mr {

enum class DiskMix : std::uint8_t { Read, Write, Mixed }; // Mixed: `depth` of each

struct DiskSample {
    double bytesPerSecond = 0.0;
    double cores = 0.0;
};

struct DiskBareSpec {
    DiskMix mix = DiskMix::Read;
    std::uint64_t offset = 0; // begin of the stretch, in file 0
    std::uint64_t bytes = 0;
    std::uint32_t requestBytes = kDiskRequestBytes;
    int depth = 16; // each way
    double seconds = 0.5;
    std::byte* memory = nullptr; // 2 * depth * requestBytes, aligned
};

Result<DiskSample> runBare(DiskIo& io, const DiskBareSpec& spec);

// Processor time of all threads of this process.
double processorSeconds();

} // namespace mr
