// Choosing the means of I/O: io_uring where the system grants it and it passes a test on the real
// files, else threads, with the choice and its reason in words.
//
// Threads  On the thread that will do the I/O.
// Errors   Io: the means asked for is refused. DataCorrupt: the files do not give back the bytes
//          written, by any means.
// Units    Bytes.

#pragma once

#include "core/tier/disk_file.h"
#include "core/tier/thread_io.h"
#include "core/tier/uring_setup.h"

#include <memory>
#include <span>
#include <string>

namespace mr {

enum class DiskEngine : std::uint8_t { Auto, Uring, Threads };

struct DiskEngineWish {
    DiskEngine engine = DiskEngine::Auto;
    int threads = kDiskThreads;
    std::span<const std::span<std::byte>> memory = {}; // to register with io_uring
};

struct DiskEngineChoice {
    std::unique_ptr<DiskIo> io;
    std::string about; // for the log and the plan
};

// Overwrites the beginning of each file that is not read alone: there must be nothing in them yet.
Result<DiskEngineChoice> chooseDiskEngine(
    DiskFiles files, const DiskEngineWish& wish, const UringCalls& calls = systemUringCalls());

// Writes up to 1 MiB at the beginning of each file, reads it into other memory and compares; of a
// file that is read alone, compares its beginning with what the system reads.
Status testDiskIo(DiskIo& io, DiskFiles files);

} // namespace mr
