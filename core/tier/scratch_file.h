// ScratchFile: one file of the SSD tier: claimed, filled once, and known to be ours.
//
// Its first page names its owner: magic, run, index, bytes, layout, and an XXH3 of the page. A
// lock (flock) says that somebody uses it. Every byte is written once before the first step,
// because overwriting written extents is 1.4 to 1.9 times faster than filling allocated ones
// (reference: ssd_offload, 5.4); a file that has been filled is not filled again.
//
// Threads   open() and destruction by the owner; the rest const, by any.
// Ownership Owns descriptor and lock. The file stays on the disk until removeOnClose() was called
//           or somebody calls removeStaleScratch().
// Errors    InvalidArgument: no such folder, or a foreign file of this name (left untouched).
//           OutOfMemory: it does not fit the disk. Io: in use, or the system refuses. Cancelled.
// Lifetime  A file that open() created or emptied is removed again if open() fails.
// Units     Bytes.

#pragma once

#include "core/tier/disk_file.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace mr {

struct ScratchSpec {
    std::filesystem::path folder;
    std::string runId;       // letters, digits, '-', '_'; at most 64
    int index = 0;           // number of the file within its run
    std::uint64_t bytes = 0; // with the header page; a multiple of 4,096
    std::uint64_t layoutHash = 0;
};

struct ScratchOptions {
    // Called after every MiB that was filled, and at the end.
    std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
    std::function<bool()> cancelled = {};
    bool direct = true; // false: never O_DIRECT
};

class ScratchFile : public DiskFile
{
public:
    ScratchFile() = default;
    ScratchFile(ScratchFile&& other) noexcept;
    ScratchFile& operator=(ScratchFile&& other) noexcept;
    ~ScratchFile();

    // Blocks: fills the file. What is in it is to be thought of as noise, always.
    static Result<ScratchFile> open(const ScratchSpec& spec, const ScratchOptions& options = {});

    bool reused() const noexcept { return m_reused; } // it had been filled before
    void removeOnClose() noexcept { m_remove = true; }

private:
    Status claim(const ScratchSpec& spec, const ScratchOptions& options);
    Status lock(const ScratchSpec& spec, const ScratchOptions& options) const;
    Status prepare(const ScratchSpec& spec, const ScratchOptions& options);
    Status reserve(const ScratchSpec& spec) const;
    Status fill(const ScratchOptions& options) const;

    bool m_reused = false;
    bool m_remove = false;
};

// A scratch file of Millrace that lies in a folder.
struct FoundScratch {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    bool inUse = false;
};

// Foreign files are not listed, even with our kind of name. Ascending by name.
Result<std::vector<FoundScratch>> listScratch(const std::filesystem::path& folder);
// Removes files that nobody uses, except those of run `keep`, and returns them.
Result<std::vector<FoundScratch>> removeStaleScratch(
    const std::filesystem::path& folder, const std::string& keep = {});

} // namespace mr
