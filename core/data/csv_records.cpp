#include "core/data/record_formats.h"

#include <simdjson.h>

#include <array>
#include <set>

namespace mr {
namespace {

// One CSV record after another into reused cells.
class CsvScanner
{
public:
    explicit CsvScanner(ByteSource& source)
        : m_source(source)
    {
    }

    void setDelimiter(char delimiter) { m_delimiter = delimiter; }
    const std::vector<std::string>& cells() const noexcept { return m_cells; }
    std::int64_t line() const noexcept { return m_line; }

    // False at the end of the file. Blank lines are skipped.
    Result<bool> next()
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
        for (const std::string& cell : m_cells)
            if (!simdjson::validate_utf8(cell.data(), cell.size()))
                return error(m_line, "not valid UTF-8; save the file as UTF-8");
        return endOr(true);
    }

private:
    Status error(std::int64_t line, const std::string& message) const
    {
        return dataError(m_source.path(), line, message);
    }

    Result<bool> endOr(bool value) const
    {
        if (!m_source.status().ok())
            return m_source.status();
        return value;
    }

    Status add(std::string& cell, int c)
    {
        if (++m_bytes > ByteSource::kMaxRecordBytes)
            return error(m_line, "a row longer than 256 MiB begins here; a quote may be missing");
        cell.push_back(static_cast<char>(c));
        return {};
    }

    // One cell and the delimiter or line end behind it.
    Status takeCell(bool& more)
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
            if (more || c == '\n')
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

    Status takeQuoted(std::string& cell)
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

    ByteSource& m_source;
    std::vector<std::string> m_cells;
    char m_delimiter = ',';
    std::int64_t m_line = 1;
    std::size_t m_bytes = 0;
    bool m_quotedRecord = false;
};

bool looksLikeNumber(std::string_view text)
{
    return !text.empty() && text.find_first_not_of("0123456789.,-+% ") == std::string_view::npos;
}

// A header is made of short, different, single-line names without sentences or numbers.
bool looksLikeHeader(const std::vector<std::string>& cells, const std::vector<std::string>& wanted)
{
    constexpr std::size_t kLongestName = 48;
    for (const std::string& name : wanted)
        if (std::find(cells.begin(), cells.end(), name) != cells.end())
            return true;
    std::set<std::string_view> seen;
    for (const std::string& cell : cells) {
        const bool sentence = cell.find_first_of("\n?!") != std::string::npos ||
                              cell.ends_with('.') || std::count(cell.begin(), cell.end(), ' ') > 3;
        if (cell.empty() || cell.size() > kLongestName || sentence || looksLikeNumber(cell) ||
            !seen.insert(cell).second)
            return false;
    }
    return true;
}

// The separator that is most frequent in the first line outside quotes; comma when none is there.
Result<char> findDelimiter(const std::filesystem::path& path)
{
    Result<ByteSource> source = ByteSource::open(path);
    if (!source.ok())
        return source.status();
    constexpr std::array kDelimiters{',', ';', '\t'};
    constexpr std::int64_t kLookBytes = std::int64_t{1} << 20;
    std::array<std::int64_t, kDelimiters.size()> counts{};
    bool quoted = false;
    for (std::int64_t i = 0; i < kLookBytes; ++i) {
        const int c = source.value().take();
        if (c == ByteSource::kEnd || (c == '\n' && !quoted))
            break;
        quoted ^= c == '"';
        for (std::size_t d = 0; d < kDelimiters.size(); ++d)
            counts.at(d) += !quoted && c == kDelimiters.at(d) ? 1 : 0;
    }
    const auto best = std::max_element(counts.begin(), counts.end()) - counts.begin();
    return kDelimiters.at(static_cast<std::size_t>(best));
}

Status checkCount(
    const std::filesystem::path& path, const CsvScanner& scanner, std::size_t expected)
{
    if (scanner.cells().size() == expected)
        return {};
    return dataError(path, scanner.line(),
        "has " + std::to_string(scanner.cells().size()) + " cells where the first row has " +
            std::to_string(expected) + "; a cell with a separator or a quote in it must be quoted");
}

} // namespace

Status readCsv(ByteSource& source, const RecordOptions& options, const RecordSink& sink)
{
    Result<char> delimiter = findDelimiter(source.path());
    if (!delimiter.ok())
        return delimiter.status();
    CsvScanner scanner(source);
    scanner.setDelimiter(delimiter.value());
    Result<bool> more = scanner.next();
    Record record;
    const bool header =
        more.ok() && more.value() && looksLikeHeader(scanner.cells(), options.wanted);
    if (more.ok() && more.value()) {
        record.cells.resize(scanner.cells().size());
        for (std::size_t i = 0; i < record.cells.size(); ++i)
            record.cells[i].name = header ? scanner.cells()[i] : "column" + std::to_string(i + 1);
    }
    if (header)
        more = scanner.next();
    for (; more.ok() && more.value(); more = scanner.next()) {
        MR_TRY(checkCount(source.path(), scanner, record.cells.size()));
        ++record.row;
        record.line = scanner.line();
        for (std::size_t i = 0; i < record.cells.size(); ++i)
            record.cells[i].text = scanner.cells()[i];
        MR_TRY(sink(record));
    }
    return more.status();
}

} // namespace mr
