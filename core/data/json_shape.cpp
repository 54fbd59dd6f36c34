// Tells JSON and its form by the first words of a file.

#include "core/data/record_formats.h"
#include "core/data/white_space.h"

#include <simdjson.h>

#include <algorithm>

namespace mr {
namespace {

bool isAnyOf(char c, std::string_view set)
{
    return set.find(c) != std::string_view::npos;
}

// Whether the first words of a text could be those of JSON. Prose that begins with a bracket
// ("[citation needed]", "{name}") differs within a few.
class FirstWords
{
public:
    // `isWhole`: nothing comes behind `text`.
    FirstWords(std::string_view text, bool isWhole)
        : m_rest(text)
        , m_isWhole(isWhole)
    {
    }

    bool areJson()
    {
        constexpr int kWordsLookedAt = 4;
        for (int i = 0; i < kWordsLookedAt; ++i) {
            const std::size_t at = m_rest.find_first_not_of(kWhite);
            if (at == std::string_view::npos)
                return !m_isWhole || m_open.empty();
            m_rest.remove_prefix(at);
            if (!word())
                return false;
        }
        return true;
    }

private:
    enum class Next : std::uint8_t { Value, ValueOrEnd, Key, KeyOrEnd, Colon, CommaOrEnd, Nothing };

    bool word()
    {
        const char c = m_rest.front();
        switch (m_next) {
        case Next::Colon:
            return c == ':' && take(Next::Value);
        case Next::CommaOrEnd:
            if (c == ',')
                return take(m_open.back() == '{' ? Next::Key : Next::Value);
            return close(c);
        case Next::Key:
        case Next::KeyOrEnd:
            if (m_next == Next::KeyOrEnd && c == '}')
                return close(c);
            return c == '\'' ? isMeantAsJson() : c == '"' && takeText(Next::Colon);
        case Next::Nothing:
            return false;
        default:
            return m_next == Next::ValueOrEnd && c == ']' ? close(c) : value(c);
        }
    }

    bool take(Next next)
    {
        m_rest.remove_prefix(1);
        m_next = next;
        return true;
    }

    Next behindValue() const { return m_open.empty() ? Next::Nothing : Next::CommaOrEnd; }

    bool close(char c)
    {
        if (c != (m_open.back() == '{' ? '}' : ']'))
            return false;
        m_open.pop_back();
        return take(behindValue());
    }

    bool takeText(Next next)
    {
        for (std::size_t at = 1; at < m_rest.size(); ++at) {
            if (m_rest[at] == '\n')
                return false;
            if (m_rest[at] == '"') {
                m_rest.remove_prefix(at);
                return take(next);
            }
            at += m_rest[at] == '\\' ? 1 : 0;
        }
        m_rest = {};
        return !m_isWhole; // the string may go on behind the bytes given
    }

    // Python's way to write an object: the JSON reader reports the fault.
    bool isMeantAsJson()
    {
        m_rest = {};
        m_open.clear();
        return true;
    }

    bool value(char c)
    {
        if (c == '{' || c == '[') {
            m_open.push_back(c);
            return take(c == '{' ? Next::KeyOrEnd : Next::ValueOrEnd);
        }
        if (c == '"')
            return takeText(behindValue());
        const std::size_t end = std::min(m_rest.find_first_of(" \t\r\n,]}:"), m_rest.size());
        const std::string_view word = m_rest.substr(0, end);
        m_rest.remove_prefix(end);
        m_next = behindValue();
        return word == "true" || word == "false" || word == "null" ||
               (!word.empty() && (word.front() == '-' || isAnyOf(word.front(), "0123456789")) &&
                   word.find_first_not_of("0123456789+-.eE") == std::string_view::npos);
    }

    std::string_view m_rest;
    bool m_isWhole;
    std::string m_open; // brackets
    Next m_next = Next::Value;
};

bool isRow(simdjson::dom::parser& parser, std::string_view text)
{
    const std::size_t at = text.find_first_not_of(kWhite);
    simdjson::dom::element element;
    return isAnyOf(text[at], "{[") &&
           parser.parse(text.data(), text.size(), true).get(element) == simdjson::SUCCESS;
}

// The first lines, as far as they are whole: how many there are, and how many are objects or lists
// in themselves.
struct LineCount {
    std::size_t lines = 0;
    std::size_t values = 0;
};

LineCount countLines(std::string_view beginning, bool isWhole, char lineEnd)
{
    constexpr std::size_t kLines = 20;
    LineCount out;
    simdjson::dom::parser parser;
    while (!beginning.empty() && out.lines < kLines) {
        const std::size_t end = beginning.find(lineEnd);
        if (end == std::string_view::npos && !isWhole)
            break;
        const std::string_view line = beginning.substr(0, end);
        beginning.remove_prefix(std::min(end, beginning.size() - 1) + 1);
        if (line.find_first_not_of(kWhite) == std::string_view::npos)
            continue;
        ++out.lines;
        out.values += isRow(parser, line) ? 1 : 0;
    }
    return out;
}

// Whether something comes behind the first line of a file, which may be long.
bool goesOnBehindFirstLine(const std::filesystem::path& path)
{
    Result<ByteSource> source = ByteSource::open(path);
    if (!source.ok())
        return false;
    bool begun = false;
    bool ended = false;
    for (int c = source.value().take(); c != ByteSource::kEnd; c = source.value().take()) {
        const bool white = isAnyOf(static_cast<char>(c), kWhite);
        if (ended && !white)
            return true;
        begun |= !white;
        ended |= begun && c == source.value().lineEnd();
    }
    return false;
}

} // namespace

JsonShape jsonShape(const std::filesystem::path& path, std::string_view beginning, bool isWhole)
{
    if (beginning.starts_with("\xEF\xBB\xBF"))
        beginning.remove_prefix(3);
    beginning.remove_prefix(std::min(beginning.find_first_not_of(kWhite), beginning.size()));
    const bool list = beginning.starts_with('[');
    const std::size_t lineEnd = beginning.find_first_of("\r\n");
    const std::string_view first = beginning.substr(0, lineEnd);
    const bool areWords = FirstWords(beginning, isWhole).areJson();
    if ((!list && !beginning.starts_with('{')) || !(areWords || FirstWords(first, true).areJson()))
        return JsonShape::Other;
    const JsonShape whole = list ? JsonShape::List : JsonShape::Object;
    const bool returns = beginning.find('\n') == std::string_view::npos;
    const LineCount count = countLines(beginning, isWhole, returns ? '\r' : '\n');
    if (count.lines == 0)
        return !list && goesOnBehindFirstLine(path) ? JsonShape::Lines : whole;
    if (2 * count.values <= count.lines)
        return whole;
    return count.lines > 1 || goesOnBehindFirstLine(path) ? JsonShape::Lines : whole;
}

} // namespace mr
