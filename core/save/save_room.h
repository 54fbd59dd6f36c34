// Checks whether a folder has room for data that a run is about to save, and words the pause if it
// has not.
//
// Threads  Any; blocks on the file system for as long as it takes to ask.
// Errors   Io: the folder is gone, may not be written, or has too little room; with both numbers.
// Units    Bytes.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace mr {

// Checks room before the first byte is written, so the usual full disk fails here and loses no
// space. `folder` itself must exist: if its disk was taken away, making it again would write to the
// disk it was mounted on.
Status roomFor(const std::filesystem::path& folder, std::uint64_t neededBytes);

// Answer of the system to setting the bytes aside; nothing is written. A quota shows only so: by
// free bytes alone there is room. For use after a write has failed.
enum class SpaceLack : std::uint8_t { None, Disk, Quota };
SpaceLack lackOfSpace(const std::filesystem::path& folder, std::uint64_t bytes);

// Why a run is paused.
struct PauseReport {
    bool isModel = false; // not a checkpoint but the trained model
    std::int64_t step = 0;
    std::filesystem::path folder;
    std::uint64_t neededBytes = 0;
    std::uint64_t freeBytes = 0; // 0: also where nobody can say
    bool isFull = false;         // else it is for another reason that it cannot be written
    bool isQuota = false;        // full for this user alone: the free bytes are not theirs
    std::string why;
};

// `folder` is looked at now.
PauseReport pauseReport(bool isModel, std::int64_t step, const std::filesystem::path& folder,
    std::uint64_t neededBytes, const Status& why);

std::string nameOf(const PauseReport& report); // "the checkpoint of step 300"
std::string textOf(const PauseReport& report); // for a person, with the ways on
std::string toJson(const PauseReport& report); // EventRow::data

} // namespace mr
