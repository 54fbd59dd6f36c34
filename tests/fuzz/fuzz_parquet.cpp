#include "core/parquet/parquet_rows.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <nlohmann/json.hpp>

namespace mr::fuzz {

// A few bytes may claim any number of rows, so only the first ones are read.
void parquet(std::string_view bytes)
{
    constexpr std::int64_t kRowsRead = 2000;
    static const FuzzFolder folder;
    const auto path = folder.write("rows.parquet", bytes);
    std::int64_t rows = 0;
    (void)check(readParquetRows(path, [&](const ParquetRow& row) {
        require(row.row == ++rows, "rows out of order");
        constexpr std::size_t kBytesParsed = std::size_t{64} << 10;
        if (row.json.size() < kBytesParsed && row.notText.empty())
            require(nlohmann::json::accept(row.json), "a row is no JSON");
        return rows < kRowsRead ? Status() : Status::error(ErrorKind::Cancelled, "rows enough");
    }));
    folder.remove("rows.parquet");
}

} // namespace mr::fuzz
