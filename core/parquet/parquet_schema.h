// ParquetSchema: the columns of a Parquet file as a tree of values, structures, lists and maps.
//
// The format stores leaves only, with two levels for each value: how much of its path is there
// (def), and which list goes on (rep). The tree says what the levels mean.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument without the name of the file: a tree that makes no sense, or a column of
//          a type that is not read; names the column.
// Source   github.com/apache/parquet-format, LogicalTypes.md (lists and their older forms, maps).

#pragma once

#include "core/parquet/column_cursor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mr {

enum class ParquetShape : std::uint8_t { Value, Struct, List, Map };

struct ParquetNode {
    ParquetShape shape = ParquetShape::Value;
    std::string key; // its name as JSON, with the colon
    bool isOptional = false;
    std::uint32_t def = 0;     // from this level on it is not null
    std::uint32_t itemDef = 0; // List, Map: from this level on there is an item
    std::uint32_t itemRep = 0; // List, Map: the level of another item
    std::size_t firstLeaf = 0; // leaves below it, or itself
    std::size_t endLeaf = 0;
    std::vector<ParquetNode> children; // Struct: members; List: its item; Map: key and value
};

struct ParquetLeaf {
    std::string path; // names joined by dots
    LeafShape shape;
    ParquetMeaning meaning = ParquetMeaning::Plain;
};

struct ParquetSchema {
    ParquetNode root; // a Struct
    std::vector<ParquetLeaf> leaves;
};

Result<ParquetSchema> makeParquetSchema(const std::vector<SchemaElement>& elements);

} // namespace mr
