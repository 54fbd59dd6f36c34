// SchemaElement: a column of a Parquet file, or a group of columns, as the footer describes it.
//
// Threads  Functions of their arguments.
// Errors   Kept by the reader.
// Source   github.com/apache/parquet-format, src/main/thrift/parquet.thrift and LogicalTypes.md.

#pragma once

#include "core/parquet/compact_reader.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mr {

enum class ParquetType : std::uint8_t {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    FixedBytes,
};

// The meaning of a column, of its logical type or of the older converted type.
enum class ParquetMeaning : std::uint8_t {
    Plain, // that of its type; bytes are taken as text
    Text,
    Signed,
    Unsigned,
    List,
    Map,
    Date,
    Millis, // since 1970
    Micros,
    Nanos,
    Other, // one that is not read: SchemaElement::otherName
};

enum class ParquetRepeat : std::uint8_t { Required, Optional, Repeated };

struct SchemaElement {
    std::string name;
    std::optional<ParquetType> type; // none: a group
    ParquetRepeat repeat = ParquetRepeat::Required;
    ParquetMeaning meaning = ParquetMeaning::Plain;
    const char* otherName = "";
    std::int32_t children = 0;
    std::int32_t typeBytes = 0; // FixedBytes
};

SchemaElement readSchemaElement(CompactReader& reader);

// Nothing is an error that the reader keeps.
std::optional<ParquetType> readParquetType(CompactReader& reader, const CompactField& field);

} // namespace mr
