// The footer of a Parquet file: its columns, and where their pages lie.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument without the name of the file: damaged, encrypted, or in other files.
// Source   github.com/apache/parquet-format, src/main/thrift/parquet.thrift.

#pragma once

#include "core/parquet/schema_element.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace mr {

struct ColumnChunk {
    ParquetType type = ParquetType::Boolean;
    std::int32_t codec = 0;
    std::int64_t values = 0; // nulls included
    std::uint64_t begin = 0; // in the file, of its first page
    std::uint64_t bytes = 0;
};

struct RowGroup {
    std::int64_t rows = 0;
    std::vector<ColumnChunk> columns;
};

struct ParquetMeta {
    std::vector<SchemaElement> schema; // depth first, the root in front
    std::int64_t rows = 0;
    std::vector<RowGroup> groups;
};

Result<ParquetMeta> readParquetMeta(std::string_view footer);

} // namespace mr
