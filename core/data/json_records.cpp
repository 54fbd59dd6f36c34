#include "core/data/record_formats.h"

#include <simdjson.h>

namespace mr {
namespace {

using simdjson::dom::element_type;

bool isWhite(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Parses one object at a time and hands it on as a Record whose memory is reused.
class ObjectParser
{
public:
    ObjectParser(const std::filesystem::path& path, const RecordSink& sink)
        : m_path(path)
        , m_sink(sink)
    {
    }

    // `text` begins on `line`. Its capacity may grow: the parser wants padding behind it.
    Status parse(std::string& text, std::int64_t line)
    {
        const std::size_t bytes = text.size();
        text.append(simdjson::SIMDJSON_PADDING, '\0');
        simdjson::dom::element element;
        const simdjson::error_code code = m_parser.parse(text.data(), bytes, false).get(element);
        ++m_record.row;
        m_record.line = line;
        if (code != simdjson::SUCCESS)
            return broken(std::string_view(text).substr(0, bytes), code);
        simdjson::dom::object object;
        if (element.get(object) != simdjson::SUCCESS)
            return dataError(m_path, line,
                "row " + std::to_string(m_record.row) +
                    R"( is not an object with named columns ({"prompt": ..., "response": ...}))");
        MR_TRY(fill(object));
        return m_sink(m_record);
    }

    std::int64_t row() const noexcept { return m_record.row; }

private:
    Status broken(std::string_view text, simdjson::error_code code) const
    {
        if (const std::size_t at = firstBadUtf8(text); at != std::string_view::npos) {
            const auto lines =
                std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
            return dataError(
                m_path, m_record.line + lines, "not valid UTF-8; save the file as UTF-8");
        }
        const char* why = simdjson::error_message(code);
        if (code == simdjson::DEPTH_ERROR)
            why = "nested too deeply";
        return dataError(m_path, m_record.line,
            "not valid JSON (row " + std::to_string(m_record.row) + "): " + why);
    }

    Status fill(simdjson::dom::object object)
    {
        std::size_t used = 0;
        for (const auto field : object) {
            // The last of two equal names counts, as everywhere else in JSON.
            std::size_t at = 0;
            while (at < used && m_record.cells[at].name != field.key)
                ++at;
            if (at == kMaxColumns)
                return dataError(m_path, m_record.line, "more than 4096 columns");
            if (at == m_record.cells.size())
                m_record.cells.emplace_back();
            used = std::max(used, at + 1);
            m_record.cells[at].name = field.key;
            assign(m_record.cells[at], field.value);
        }
        m_record.cells.resize(used);
        return {};
    }

    static void assign(Cell& cell, simdjson::dom::element value)
    {
        cell.text.clear();
        switch (value.type()) {
        case element_type::STRING:
            cell.kind = CellKind::Text;
            cell.text = std::string_view(value);
            return;
        case element_type::NULL_VALUE:
            cell.kind = CellKind::Null;
            return;
        case element_type::ARRAY:
        case element_type::OBJECT:
            cell.kind = CellKind::Nested;
            cell.text = simdjson::minify(value);
            return;
        default:
            cell.kind = CellKind::Number;
            cell.text = simdjson::minify(value);
            return;
        }
    }

    const std::filesystem::path& m_path;
    const RecordSink& m_sink;
    simdjson::dom::parser m_parser;
    Record m_record;
};

Status tooLong(const std::filesystem::path& path, std::int64_t line)
{
    return dataError(
        path, line, "a row longer than 256 MiB begins here; a quote or bracket may be missing");
}

void skipWhite(ByteSource& source)
{
    while (isWhite(source.peek()))
        source.take();
}

// Cuts the next element of a list out of the file: up to the comma or bracket that follows it at
// depth 0. Whether the element is JSON is the parser's business.
class ElementScanner
{
public:
    // True when an element was cut; false at the end of the file or a size above the limit.
    bool scan(ByteSource& source, std::string& out)
    {
        out.clear();
        std::int64_t depth = 0;
        bool inText = false;
        for (int c = source.peek(); c != ByteSource::kEnd; c = source.peek()) {
            if (!inText && depth == 0 && (c == ',' || c == ']'))
                return true;
            if (out.size() >= ByteSource::kMaxRecordBytes)
                return false;
            out.push_back(static_cast<char>(source.take()));
            if (inText && c == '\\' && source.peek() != ByteSource::kEnd)
                out.push_back(static_cast<char>(source.take()));
            else if (c == '"')
                inText = !inText;
            else if (!inText && (c == '{' || c == '['))
                ++depth;
            else if (!inText && (c == '}' || c == ']'))
                depth = std::max<std::int64_t>(depth - 1, 0);
        }
        return false;
    }
};

Status readElements(ByteSource& source, ObjectParser& parser)
{
    std::string text;
    ElementScanner scanner;
    while (true) {
        skipWhite(source);
        const std::int64_t line = source.line();
        const bool cut = scanner.scan(source, text);
        MR_TRY(source.status());
        if (!cut && text.size() >= ByteSource::kMaxRecordBytes)
            return tooLong(source.path(), line);
        if (!cut)
            return dataError(source.path(), line,
                "not valid JSON: the list is not closed; the file ends inside row " +
                    std::to_string(parser.row() + 1));
        if (text.empty())
            return dataError(
                source.path(), line, "not valid JSON: a row is missing between commas");
        MR_TRY(parser.parse(text, line));
        if (source.take() == ']')
            return {};
    }
}

} // namespace

JsonShape jsonShape(std::string_view beginning, bool isWhole)
{
    if (beginning.starts_with("\xEF\xBB\xBF"))
        beginning.remove_prefix(3);
    const std::size_t first = beginning.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos)
        return JsonShape::Other;
    beginning.remove_prefix(first);
    if (beginning.front() == '[') {
        const std::size_t next = beginning.find_first_not_of(" \t\r\n", 1);
        const bool list =
            next == std::string_view::npos || beginning[next] == '{' || beginning[next] == ']';
        return list ? JsonShape::List : JsonShape::Other;
    }
    if (beginning.front() != '{')
        return JsonShape::Other;
    const std::size_t lineEnd = beginning.find('\n');
    if (lineEnd == std::string_view::npos && !isWhole)
        return JsonShape::Lines; // a first row longer than what was looked at
    const std::string_view line = beginning.substr(0, lineEnd);
    simdjson::dom::parser parser;
    simdjson::dom::object object;
    const bool whole =
        parser.parse(line.data(), line.size(), true).get(object) == simdjson::SUCCESS;
    return whole ? JsonShape::Lines : JsonShape::Other;
}

Status readJsonLines(ByteSource& source, const RecordSink& sink)
{
    ObjectParser parser(source.path(), sink);
    std::string line;
    for (std::int64_t number = 1; source.takeLine(line); ++number)
        if (line.find_first_not_of(" \t\r") != std::string::npos)
            MR_TRY(parser.parse(line, number));
    return source.tooLong() ? tooLong(source.path(), source.line()) : source.status();
}

Status readJsonList(ByteSource& source, const RecordSink& sink)
{
    skipWhite(source);
    const std::int64_t line = source.line();
    if (source.take() != '[') {
        MR_TRY(source.status());
        return dataError(source.path(), line,
            "not a JSON list of rows; it should begin with [ and hold objects, or hold one object "
            "per line");
    }
    skipWhite(source);
    if (source.peek() == ']') {
        source.take();
    } else {
        ObjectParser parser(source.path(), sink);
        MR_TRY(readElements(source, parser));
    }
    skipWhite(source);
    MR_TRY(source.status());
    if (source.peek() != ByteSource::kEnd)
        return dataError(
            source.path(), source.line(), "not valid JSON: text after the end of the list");
    return {};
}

} // namespace mr
