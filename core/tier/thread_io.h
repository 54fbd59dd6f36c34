// DiskIo by a pool of threads that call pread and pwrite: works wherever files do.
//
// Threads  As DiskIo; its own are named "disk-io-0", ...
// Errors   A thread that cannot be started throws std::system_error.
// Units    As DiskIo.

#pragma once

#include "core/tier/disk_io.h"

#include <memory>
#include <vector>

namespace mr {

inline constexpr int kDiskThreads = 8; // 8 to 16 keep an NVMe busy with requests of 1 MiB

// Nothing is allocated after this.
std::unique_ptr<DiskIo> makeThreadIo(std::vector<int> descriptors, int threads = kDiskThreads);

} // namespace mr
