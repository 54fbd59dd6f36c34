#include "core/data/csv_scanner.h"

#include <simdjson.h>

namespace mr {

Result<bool> CsvScanner::next()
{
    do {
        if (m_source.peek() == ByteSource::kEnd)
            return endOr(false);
        m_line = m_source.line();
        m_cells.clear();
        m_bytes = 0;
        m_quotedRecord = false;
        bool more = true;
        while (more)
            MR_TRY(takeCell(more));
    } while (m_cells.size() == 1 && m_cells[0].empty() && !m_quotedRecord);
    return endOr(true);
}

std::optional<BadRow> CsvScanner::badBytes() const
{
    for (const std::string& cell : m_cells) {
        if (!simdjson::validate_utf8(cell.data(), cell.size()))
            return BadRow{0, m_line, RowFault::Utf8,
                error(m_line, "not valid UTF-8; save the file as UTF-8").message()};
        if (cell.find('\0') != std::string::npos)
            return BadRow{0, m_line, RowFault::Nul,
                error(m_line, "holds a byte of value 0, which no text has").message()};
    }
    return std::nullopt;
}

Status CsvScanner::error(std::int64_t line, const std::string& message) const
{
    return dataError(m_source.path(), line, message);
}

Result<bool> CsvScanner::endOr(bool value) const
{
    if (!m_source.status().ok())
        return m_source.status();
    return value;
}

Status CsvScanner::add(std::string& cell, int c)
{
    if (++m_bytes > ByteSource::kMaxRecordBytes)
        return error(m_line, "a row longer than 256 MiB begins here; a quote may be missing");
    cell.push_back(static_cast<char>(c));
    return {};
}

Status CsvScanner::takeCell(bool& more)
{
    if (m_cells.size() == kMaxColumns)
        return error(m_line, "more than 4096 columns");
    std::string& cell = m_cells.emplace_back();
    const bool quoted = m_source.peek() == '"';
    m_quotedRecord |= quoted;
    if (quoted)
        MR_TRY(takeQuoted(cell));
    for (int c = m_source.take(); c != ByteSource::kEnd; c = m_source.take()) {
        more = c == static_cast<unsigned char>(m_delimiter);
        if (more || c == m_source.lineEnd())
            return {};
        if (c == '\r' && (m_source.peek() == '\n' || m_source.peek() == ByteSource::kEnd))
            continue;
        if (quoted)
            return error(m_source.line(),
                "text after a closing quote; a quote inside a cell is written twice");
        MR_TRY(add(cell, c));
    }
    more = false;
    return m_source.status();
}

Status CsvScanner::takeQuoted(std::string& cell)
{
    const std::int64_t line = m_source.line();
    m_source.take();
    for (int c = m_source.take(); c != ByteSource::kEnd; c = m_source.take()) {
        if (c == '"') {
            if (m_source.peek() != '"')
                return {};
            m_source.take();
        }
        MR_TRY(add(cell, c));
    }
    MR_TRY(m_source.status());
    return error(line, "the quote that begins here is never closed");
}

} // namespace mr
