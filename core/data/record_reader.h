// Dataset files as a stream of records: named cells with the line they came from.
//
//     bytes -> RecordReader (JSON lines, JSON, CSV, text, Parquet) -> Record -> columns ->
//     documents
//
// Every format is read in one pass with one record in memory, so a file may be larger than memory.
// Files in gzip or zstd are unpacked on the way; lines and messages are those of their contents.
// A text file that is one document comes in records of some megabytes, each but the last with
// `goesOn`.
//
// Threads  Functions of their arguments; one call uses one thread.
// Errors   InvalidArgument names file and line and the right form; Io from the disk. A Status of a
//          sink ends the reading and is returned as it is. A row that cannot be read, while those
//          behind it can, goes to RecordOptions::onBadRow where there is one; a file with a broken
//          structure is an error in any case.

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
    std::string text; // numbers, booleans: the characters of the file; Nested: its JSON
    CellKind kind = CellKind::Text;
};

struct Record {
    std::int64_t row = 0;  // from 1
    std::int64_t line = 0; // where it begins, from 1; 0: the file has no lines (Parquet)
    std::vector<Cell> cells;
    bool goesOn = false; // the next record has the rest of this text

    const Cell* find(std::string_view name) const noexcept
    {
        for (const Cell& cell : cells)
            if (cell.name == name)
                return &cell;
        return nullptr;
    }
};

using RecordSink = std::function<Status(const Record&)>;

// Reasons why a row cannot be read.
enum class RowFault : std::uint8_t {
    Json,     // not JSON
    Utf8,     // not UTF-8
    Nul,      // a byte of value 0
    Shape,    // not an object or list as the rows before it
    Cells,    // CSV: more or fewer cells than the first row
    Columns,  // does not hold the content that its columns are used for
    Template, // the chat template cannot write it
    Excluded, // DataSource::excluded names it; no fault of the row
};

// "json", "utf8", "nul", "shape", "cells", "columns", "template", "excluded"
std::string_view name(RowFault fault) noexcept;

struct BadRow {
    std::int64_t row = 0; // as in Record
    std::int64_t line = 0;
    RowFault fault = RowFault::Json;
    std::string message; // names file and line
};

using BadRowSink = std::function<Status(const BadRow&)>;

struct RecordOptions {
    DataFormat format = DataFormat::Auto;
    // CSV: names that are meant to be columns. A first line that holds one of them is a header,
    // even if it looks like values.
    std::vector<std::string> wanted;
    std::string split;     // text: cut into documents here, white space around them dropped
    bool perLine = false;  // text: every line that is not blank is a document
    BadRowSink onBadRow{}; // empty: the first bad row is an error
};

// By content, under any name of the file; the extension decides where content is no evidence
// (format_guess.cpp). A file in gzip or zstd is judged by its contents. InvalidArgument: an empty
// or binary file, an archive, another compression, a git-lfs pointer, UTF-16, YAML; a file that may
// as well be a table as text, with the --format for either.
Result<DataFormat> findFormat(const std::filesystem::path& path, DataFormat asked);

// How the file is read, in words for a person: "CSV with semicolons, the first row is a header".
// Empty where it cannot be read.
std::string describeReading(const std::filesystem::path& path, const RecordOptions& options);

// Text gives records of one cell named "text", a list of texts the same. CSV without a header line
// and lists of texts name their columns "column1", "column2", ...; a list of objects within a list
// is a row with the one column "messages".
Status readRecords(
    const std::filesystem::path& path, const RecordOptions& options, const RecordSink& sink);

// "FILE, line 12: message"
Status dataError(const std::filesystem::path& path, std::int64_t line, const std::string& message);

struct RowPlace {
    std::int64_t row = 0; // as in Record
    std::int64_t line = 0;
};

// As above, or "FILE, row 12: message" where the file has no lines.
Status dataError(
    const std::filesystem::path& path, const RowPlace& place, const std::string& message);

// The first byte offset that is not UTF-8, or npos.
std::size_t firstBadUtf8(std::string_view text) noexcept;

} // namespace mr
