// Parquet files as records: each row is read as the line of JSON that it would be.

#include "core/base/shown_text.h"
#include "core/data/json_rows.h"
#include "core/parquet/parquet_rows.h"

namespace mr {

Status readParquet(
    const std::filesystem::path& path, const RecordOptions& options, const RecordSink& sink)
{
    JsonRows rows(path, options, sink);
    return readParquetRows(path, [&](const ParquetRow& row) {
        return row.notText.empty()
                   ? rows.put(row.json, 0)
                   : rows.leaveOut(RowFault::Utf8, "column " + shownName(row.notText) +
                                                       " holds bytes that are not UTF-8 text; "
                                                       "write the file without it");
    });
}

} // namespace mr
