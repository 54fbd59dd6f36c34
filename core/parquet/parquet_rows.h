// The rows of a Parquet file as JSON objects, one after the other.
//
//     footer (ParquetMeta) -> ParquetSchema -> a ColumnCursor a leaf -> ParquetRowWriter -> rows
//
// Read are files of one part: columns of texts, numbers, booleans, dates and times, nested in any
// depth; pages plain, snappy, gzip, zstd or lz4. A row group may be larger than memory: of each
// column a page is held.
//
// Threads  A function of its arguments, on one thread.
// Errors   InvalidArgument names the file and the way out: damaged, cut off, encrypted, or in a
//          form that is not read. Io from the disk. A Status of the sink ends the reading and is
//          returned as it is.
// Source   github.com/apache/parquet-format.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace mr {

struct ParquetRow {
    std::int64_t row = 0; // from 1
    std::string& json;    // may be written to
    // A column that holds bytes which are no text, so that `json` is not all of the row.
    const std::string& notText;
};

using ParquetRowSink = std::function<Status(const ParquetRow&)>;

Status readParquetRows(const std::filesystem::path& path, const ParquetRowSink& sink);

} // namespace mr
