// ParquetRowWriter: the rows of a row group as JSON, put together from all columns in step.
//
// Threads  Confined to its owner, which keeps schema and cursors alive.
// Errors   InvalidArgument without the name of the file: columns that contradict each other, a row
//          above the largest record. Io from the disk.
// Source   Melnik et al., Dremel (2010), section 4.2; github.com/apache/parquet-format.

#pragma once

#include "core/parquet/parquet_schema.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mr {

class ParquetRowWriter
{
public:
    static constexpr std::size_t kMostRowBytes = std::size_t{256} << 20;

    ParquetRowWriter(const ParquetSchema& schema, std::vector<ColumnCursor>& cursors)
        : m_schema(schema)
        , m_cursors(cursors)
    {
    }

    // The next row as an object.
    Status next(std::string& json);
    // The first column of the row whose text is not UTF-8; empty: none is.
    const std::string& notText() const noexcept { return m_notText; }
    // Whether all columns stand behind their last value.
    bool atEnd() const;

private:
    Status write(const ParquetNode& node, std::string& out);
    Status writeStruct(const ParquetNode& node, std::string& out);
    Status writeItems(const ParquetNode& node, std::string& out);
    Status writeItem(const ParquetNode& node, bool hasTextKeys, std::string& out);
    Status writeValue(const ParquetNode& node, std::string& out);
    Status advance(std::size_t leaf);
    Status advanceAll(const ParquetNode& node);
    Result<bool> isThere(const ParquetNode& node, std::uint32_t def) const;
    Result<bool> goesOn(const ParquetNode& node) const;
    Status contradiction(std::size_t leaf) const;

    const ParquetSchema& m_schema;
    std::vector<ColumnCursor>& m_cursors; // one a leaf
    std::string m_notText;
};

} // namespace mr
