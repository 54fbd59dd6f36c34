// RunEdits: a person's changes of the history: names, notes, tags, exports, deleted runs.
//
// A deleted run is hidden (RunReader::deletedRuns()) and can be restored for thirty days. Only
// erase() removes files, and only for a size that somebody was shown and agreed to.
//
// Threads    Thread-safe. Every function waits for the database, filesOf() and erase() for files
//            too, so none is called on the UI thread.
// Ownership  Belongs to the store that gave it, which must live longer.
// Errors     InvalidArgument, with the name of the run: it does not exist, is going on, is not
//            deleted; or a text that cannot be taken. Io with the file.
// Order      Each call is all or nothing. Only erase() takes one run after the other, and the runs
//            it did not reach can still be restored.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// How long a deleted run can be restored.
inline constexpr std::int64_t kBinMs = std::int64_t{30} * 24 * 60 * 60 * 1000;

// Files of some runs on the disk. In folders of their own only the files that this program put
// there count.
struct RunFiles {
    std::uint64_t bytes = 0;
    std::int64_t files = 0;
    std::vector<std::string> folders;
    std::vector<std::string> neededBy; // names of other runs that were trained from a model there
};

struct ExportRow; // run_reader.h

class RunEdits
{
public:
    using Ids = std::span<const std::int64_t>;

    virtual ~RunEdits() = default;

    // One line, not empty, at most 200 bytes; blanks around it are dropped. Returns the old name.
    virtual Result<std::string> rename(std::int64_t runId, std::string_view name) = 0;
    // At most 64 KiB; empty: none. Returns the old note.
    virtual Result<std::string> setNote(std::int64_t runId, std::string_view note) = 0;
    // One line without commas, at most 60 bytes; "Keep" and "keep" are one tag. The runs that did
    // not have it (addTag) or had it (removeTag), in the order given.
    virtual Result<std::vector<std::int64_t>> addTag(Ids runs, std::string_view tag) = 0;
    virtual Result<std::vector<std::int64_t>> removeTag(Ids runs, std::string_view tag) = 0;
    // All that are used, by name.
    virtual Result<std::vector<std::string>> tags() = 0;
    // Exports are rows: a second one to the same path is a second row.
    virtual Status addExport(std::int64_t runId, const ExportRow& row) = 0;

    // Hides the runs. The ones that were not hidden before, in the order given.
    virtual Result<std::vector<std::int64_t>> remove(Ids runs) = 0;
    virtual Status restore(Ids runs) = 0;

    virtual Result<RunFiles> filesOf(Ids runs) = 0;
    // For good: rows and files of hidden runs. Refused where there is more on the disk than
    // `confirmedBytes`, so that nobody loses more than he agreed to.
    virtual Status erase(Ids runs, std::uint64_t confirmedBytes) = 0;
    // Forgets runs hidden at least `ageMs` ago. Files stay, and with a checkpoint on the disk the
    // hidden run does, too: it records the owner of the files.
    virtual Status expire(std::int64_t ageMs) = 0;
};

} // namespace mr
