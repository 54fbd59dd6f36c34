// Dataset files as a stream of records: named cells with the line they came from.
//
//     bytes -> RecordReader (JSON lines, JSON list, CSV, text) -> Record -> columns -> documents
//
// Every format is read in one pass with one record in memory, so a file may be larger than memory;
// only a text file that is one document is held whole.
//
// Threads  Functions of their arguments; one call uses one thread.
// Errors   InvalidArgument names file and line and says what would be right; Io from the disk.
//          A Status of the sink ends the reading and is returned as it is.

#pragma once

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

enum class CellKind : std::uint8_t { Text, Number, Null, Nested }; // Nested: a list or an object

struct Cell {
    std::string name;
    std::string text; // of numbers and booleans the characters of the file; of Nested its JSON
    CellKind kind = CellKind::Text;
};

struct Record {
    std::int64_t row = 0;  // from 1
    std::int64_t line = 0; // where it begins, from 1
    std::vector<Cell> cells;

    const Cell* find(std::string_view name) const noexcept
    {
        for (const Cell& cell : cells)
            if (cell.name == name)
                return &cell;
        return nullptr;
    }
};

using RecordSink = std::function<Status(const Record&)>;

struct RecordOptions {
    DataFormat format = DataFormat::Auto;
    // CSV: names that are meant to be columns; where the first line holds one of them, it is a
    // header whatever it looks like.
    std::vector<std::string> wanted;
    std::string split;    // text: cut into documents here, white space around them dropped
    bool perLine = false; // text: every line that is not blank is a document
};

// By content, helped by the file's extension where content leaves a choice. InvalidArgument: empty
// file, binary file, compressed file, git-lfs pointer, UTF-16.
Result<DataFormat> findFormat(const std::filesystem::path& path, DataFormat asked);

// Text gives records of one cell named "text". CSV without a header line names its columns
// "column1", "column2", ...
Status readRecords(
    const std::filesystem::path& path, const RecordOptions& options, const RecordSink& sink);

// "FILE, line 12: message"
Status dataError(const std::filesystem::path& path, std::int64_t line, const std::string& message);

// The first byte offset that is not UTF-8, or npos.
std::size_t firstBadUtf8(std::string_view text) noexcept;

} // namespace mr
