// CsvScanner: one record of a CSV file after another, cut into cells; nothing is known of names.
//
// Threads  Confined to its owner, which keeps the source alive.
// Errors   InvalidArgument: quotes that leave open where the row ends, more than kMaxColumns cells,
//          a row above the largest that a source allows.

#pragma once

#include "core/data/record_formats.h"

#include <optional>
#include <string>
#include <vector>

namespace mr {

class CsvScanner
{
public:
    CsvScanner(ByteSource& source, char delimiter)
        : m_source(source)
        , m_delimiter(delimiter)
    {
    }

    const std::vector<std::string>& cells() const noexcept { return m_cells; } // reused
    std::int64_t line() const noexcept { return m_line; }

    // False at the end of the file. Blank lines are skipped.
    Result<bool> next();

    // The fault in the bytes of this record; empty: none.
    std::optional<BadRow> badBytes() const;

private:
    Status error(std::int64_t line, const std::string& message) const;
    Result<bool> endOr(bool value) const;
    Status add(std::string& cell, int c);
    // One cell and the delimiter or line end behind it.
    Status takeCell(bool& more);
    Status takeQuoted(std::string& cell);

    ByteSource& m_source;
    char m_delimiter = ',';
    std::vector<std::string> m_cells;
    std::int64_t m_line = 1;
    std::size_t m_bytes = 0;
    bool m_quotedRecord = false;
};

} // namespace mr
