// Exports of runs, in the table `export`; the sentences of a verdict are JSON beside the columns.
//
// Threads  As Database.
// Errors   As Database. A history of an earlier format has no exports; a verdict that cannot be
//          read has no sentences.

#pragma once

#include "core/store/sqlite.h"

#include <millrace/run_reader.h>

#include <cstdint>
#include <vector>

namespace mr {

Status insertExport(Database& database, std::int64_t runId, const ExportRow& row);
// Newest first.
Result<std::vector<ExportRow>> readExports(Database& database, std::int64_t runId);

} // namespace mr
