// ColumnCursor: the values of one column of a row group, from its first to its last, with their
// levels.
//
// One page of the column is in memory at a time, and its dictionary. All columns of a file share a
// budget of memory, so a row group may be larger than memory.
//
// Threads  Confined to its owner, which keeps file and budget alive.
// Errors   InvalidArgument without the name of the file: damaged, not read, or above the budget.
//          Io from the disk.
// Source   github.com/apache/parquet-format, README.md (nested encoding, data pages).

#pragma once

#include "core/base/file.h"
#include "core/parquet/bit_runs.h"
#include "core/parquet/page_head.h"
#include "core/parquet/parquet_meta.h"
#include "core/parquet/value_reader.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mr {

struct PageBudget {
    // Pages are about a megabyte; a text as long as a record may be has a page of its own.
    static constexpr std::uint64_t kMostPageBytes = std::uint64_t{256} << 20;
    static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

    std::uint64_t used = 0;
};

struct LeafShape {
    ParquetStorage storage;
    std::uint32_t mostDef = 0; // the level of a value that is there
    std::uint32_t mostRep = 0;
};

class ColumnCursor
{
public:
    ColumnCursor(const File& file, PageBudget& budget, const LeafShape& shape)
        : m_file(file)
        , m_budget(budget)
        , m_shape(shape)
    {
    }

    // Stands on the first value then, or at the end.
    Status open(const ColumnChunk& chunk);
    Status advance();

    bool atEnd() const noexcept { return m_atEnd; }
    std::uint32_t rep() const noexcept { return m_rep; }
    std::uint32_t def() const noexcept { return m_def; }
    // Valid if def() is the shape's mostDef, until advance().
    const ParquetValue& value() const noexcept { return m_value; }

private:
    using Bytes = std::vector<char>;

    Status nextPage();
    Status readHead(PageHead& head);
    Status readBody(const PageHead& head);
    Status unpack(const PageHead& head, Bytes& out);
    Status resize(Bytes& buffer, std::uint64_t bytes);
    Status takeDictionary(const PageHead& head);
    Status beginPage(const PageHead& head);
    Status takeLevels(const PageHead& head, std::string_view& bytes);

    const File& m_file;
    PageBudget& m_budget;
    LeafShape m_shape;
    std::int32_t m_codec = 0;
    std::uint64_t m_at = 0; // in the file, of the next page
    std::uint64_t m_end = 0;
    std::int64_t m_valuesLeft = 0; // of the column, behind this page
    std::int32_t m_inPage = 0;     // left, the current one not counted
    Bytes m_body;                  // as it is in the file
    Bytes m_page;
    Bytes m_dictionaryPage;
    ParquetDictionary m_dictionary;
    bool m_hasDictionary = false;
    HybridRuns m_reps;
    HybridRuns m_defs;
    std::unique_ptr<ParquetValueReader> m_values;
    bool m_atEnd = true;
    std::uint32_t m_rep = 0;
    std::uint32_t m_def = 0;
    ParquetValue m_value;
};

} // namespace mr
