// The readers behind readRecords(), one per format.
//
// Threads, Errors  As in record_reader.h.

#pragma once

#include "core/data/byte_source.h"
#include "core/data/record_reader.h"

namespace mr {

inline constexpr std::size_t kMaxColumns = 4096;

// One object per line; blank lines are skipped.
Status readJsonLines(ByteSource& source, const RecordSink& sink);

// One list of objects. Elements are cut out by our own scanner and parsed one at a time, so the
// list may be larger than memory and an error knows its line.
Status readJsonList(ByteSource& source, const RecordSink& sink);

// RFC 4180: quotes, doubled quotes, line ends in quotes; comma, semicolon or tab.
Status readCsv(ByteSource& source, const RecordOptions& options, const RecordSink& sink);

// What a JSON file begins with decides between list and lines.
enum class JsonShape : std::uint8_t { List, Lines, Other };
JsonShape jsonShape(std::string_view beginning, bool isWhole);

} // namespace mr
