// JSON files: one list of rows, an object that holds one, or a single row; and JSON lines.

#include "core/data/json_object_file.h"
#include "core/data/json_rows.h"
#include "core/data/json_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mr {
namespace {

bool isWhite(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

Status tooLong(const std::filesystem::path& path, std::int64_t line)
{
    return dataError(
        path, line, "a row longer than 256 MiB begins here; a quote or bracket may be missing");
}

// The elements up to the bracket that closes the list, which is taken.
Status readElements(ByteSource& source, JsonRows& rows)
{
    std::string text;
    JsonScanner scanner(source);
    while (true) {
        scanner.skipWhite();
        const std::int64_t line = source.line();
        const bool cut = scanner.value(']', &text);
        MR_TRY(source.status());
        if (!cut && scanner.tooLong())
            return tooLong(source.path(), line);
        if (!cut)
            return jsonError(source.path(), line,
                fmt::format("not valid JSON: the list is not closed; the file ends inside row {}",
                    rows.row() + 1));
        if (text.empty())
            return jsonError(
                source.path(), line, "not valid JSON: a row is missing between commas");
        MR_TRY(rows.put(text, line));
        if (source.take() == ']')
            return {};
    }
}

Status readList(ByteSource& source, JsonRows& rows)
{
    JsonScanner scanner(source);
    source.take();
    scanner.skipWhite();
    if (source.peek() != ']')
        return readElements(source, rows);
    source.take();
    return {};
}

Status readObject(ByteSource& source, const JsonObjectFile& file, JsonRows& rows)
{
    JsonScanner scanner(source);
    const std::int64_t line = source.line();
    std::string text;
    if (file.rows.empty()) {
        const bool cut = scanner.value('\0', &text);
        MR_TRY(source.status());
        if (!cut && scanner.tooLong())
            return tooLong(source.path(), line);
        return rows.put(text, line);
    }
    JsonMembers members(source);
    JsonMember member;
    Result<bool> more = members.next(member);
    for (; more.ok() && more.value(); more = members.next(member))
        MR_TRY(member.key == file.rows ? readList(source, rows) : members.skip());
    return more.status();
}

} // namespace

bool JsonScanner::value(char closer, std::string* out)
{
    if (out != nullptr)
        out->clear();
    std::size_t bytes = 0;
    std::int64_t depth = 0;
    bool inText = false;
    const auto take = [&] {
        const auto c = static_cast<char>(m_source.take());
        if (out != nullptr)
            out->push_back(c);
        bytes += out != nullptr ? 1 : 0;
    };
    for (int c = m_source.peek(); c != ByteSource::kEnd; c = m_source.peek()) {
        if (!inText && depth == 0 && ((c == ',' && closer != '\0') || c == closer))
            return true;
        m_tooLong = bytes >= ByteSource::kMaxRecordBytes;
        if (m_tooLong)
            return false;
        take();
        if (inText && c == '\\' && m_source.peek() != ByteSource::kEnd)
            take();
        else if (c == '"')
            inText = !inText;
        else if (!inText && (c == '{' || c == '['))
            ++depth;
        else if (!inText && (c == '}' || c == ']'))
            depth = std::max<std::int64_t>(depth - 1, 0);
        if (closer == '\0' && depth == 0)
            return true;
    }
    return false;
}

void JsonScanner::skipWhite()
{
    while (isWhite(m_source.peek()))
        m_source.take();
}

Status jsonError(const std::filesystem::path& path, std::int64_t line, const std::string& message)
{
    constexpr std::array<std::string_view, 3> kNames{".json", ".jsonl", ".ndjson"};
    const std::string extension = formatExtension(path);
    const bool isJson = std::find(kNames.begin(), kNames.end(), extension) != kNames.end();
    return dataError(path, line,
        isJson ? message
               : message + "; the file begins as JSON does: say --format text if it is a text");
}

Status readJsonLines(ByteSource& source, const RecordOptions& options, const RecordSink& sink)
{
    JsonRows rows(source.path(), options, sink);
    std::string line;
    for (std::int64_t number = 1; source.takeLine(line); ++number)
        if (line.find_first_not_of(" \t\r") != std::string::npos)
            MR_TRY(rows.put(line, number));
    return source.tooLong() ? tooLong(source.path(), source.line()) : source.status();
}

Status readJson(ByteSource& source, const RecordOptions& options, const RecordSink& sink)
{
    JsonScanner scanner(source);
    scanner.skipWhite();
    const int first = source.peek();
    JsonRows rows(source.path(), options, sink);
    if (first == '{') {
        MR_ASSIGN(JsonObjectFile file, lookAtJsonObject(source.path()));
        MR_TRY(readObject(source, file, rows));
    } else if (first == '[') {
        MR_TRY(readList(source, rows));
    } else {
        MR_TRY(source.status());
        return dataError(source.path(), source.line(),
            "not a JSON list of rows; it should begin with [ and hold objects, or hold one object "
            "per line");
    }
    scanner.skipWhite();
    MR_TRY(source.status());
    if (source.peek() != ByteSource::kEnd)
        return jsonError(source.path(), source.line(),
            std::string("not valid JSON: text after the end of the ") +
                (first == '{' ? "object; write one object per line, or a list of them" : "list"));
    return {};
}

} // namespace mr
