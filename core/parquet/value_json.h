// Values of Parquet columns as JSON.
//
// Numbers are the shortest that give the value again, as JSON lines have them; NaN and infinity,
// which JSON lacks, are null. Dates and times are texts of ISO 8601 without a zone.
//
// Threads  Pure functions.
// Errors   InvalidArgument: a date outside the years 0 to 9999.

#pragma once

#include "core/parquet/parquet_schema.h"

#include <string>
#include <string_view>

namespace mr {

// In quotes.
std::string jsonText(std::string_view text);
void appendJsonText(std::string_view text, std::string& out);

Status appendJsonValue(const ParquetLeaf& leaf, const ParquetValue& value, std::string& out);

// Whether values of the leaf are texts, which must be UTF-8.
bool holdsText(const ParquetLeaf& leaf);

} // namespace mr
