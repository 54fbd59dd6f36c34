// The folder that policies with state on an SSD would use: its drive and file system, and its
// speed.
//
// Threads  Any; blocking (files, and for a measurement the disk). The UI calls them from workers.
// Errors   Io: no such folder. InvalidArgument, OutOfMemory: nothing can be measured there.
//          Cancelled.
// Units    In the names; mixed rates are the rate of one direction while both are at work.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mr {

// Bytes per second; 0: not measured.
struct ScratchSpeed {
    double readBytesPerSecond = 0.0; // alone
    double writeBytesPerSecond = 0.0;
    double mixedReadBytesPerSecond = 0.0; // half of the requests read, half write, as in a step
    double mixedWriteBytesPerSecond = 0.0;
};

struct ScratchInfo {
    std::string path; // canonical
    std::string fileSystem;
    std::string drive;            // "nvme0n1"; empty: not known
    std::uint64_t driveBytes = 0; // 0: not known
    std::uint64_t freeBytes = 0;
    std::optional<double> temperatureCelsius;
    bool usable = true;                // it can be written
    std::vector<std::string> warnings; // sentences, each with the way out
    ScratchSpeed speed;                // measured before, on this machine
};

Result<ScratchInfo> inspectScratch(const std::string& path);

struct ScratchMeasuring {
    double seconds = 2.0;                         // without filling the file that is measured on
    std::uint64_t bytes = std::uint64_t{1} << 30; // size of that file; less where less is free
    std::function<void(double share)> progress = {};
    std::function<bool()> cancelled = {};
};

// By the means that a run would use, on a file that is removed again. The rates are kept for the
// planner and for inspectScratch(), which both find them by drive and mount.
Result<ScratchSpeed> measureScratch(const std::string& path, const ScratchMeasuring& how = {});

} // namespace mr
