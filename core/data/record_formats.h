// The readers behind readRecords(), one per format.
//
// Threads, Errors  As in record_reader.h.

#pragma once

#include "core/data/byte_source.h"
#include "core/data/record_reader.h"

namespace mr {

inline constexpr std::size_t kMaxColumns = 4096;

// One object per line; blank lines are skipped.
Status readJsonLines(ByteSource& source, const RecordOptions& options, const RecordSink& sink);

// One list of rows, an object that holds one, or a single row. Elements are cut out by our own
// scanner and parsed one at a time, so the list may be larger than memory and an error knows its
// line.
Status readJson(ByteSource& source, const RecordOptions& options, const RecordSink& sink);

// RFC 4180: quotes, doubled quotes, line ends in quotes; comma, semicolon, tab or vertical bar.
Status readCsv(ByteSource& source, const RecordOptions& options, const RecordSink& sink);

// One row as an object. Rows have no line.
Status readParquet(
    const std::filesystem::path& path, const RecordOptions& options, const RecordSink& sink);

// The form of a JSON file, by its first words.
enum class JsonShape : std::uint8_t {
    List,   // [ ...
    Lines,  // an object or a list on each of the first lines
    Object, // { ... over several lines, or on one that is the whole file
    Other,  // not JSON
};
JsonShape jsonShape(const std::filesystem::path& path, std::string_view beginning, bool isWhole);

// dataError() of a JSON file; one that is not called so may be a text.
Status jsonError(const std::filesystem::path& path, std::int64_t line, const std::string& message);

// Gives a bad row to options.onBadRow; without one, returns it as an error.
Status putBadRow(const RecordOptions& options, BadRow row);

} // namespace mr
