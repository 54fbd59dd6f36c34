#include "core/data/cell_look.h"

#include "core/api/json_text.h"
#include "core/data/untrainable.h"
#include "core/data/white_space.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostParsedBytes = std::size_t{256} << 10;

bool isDigit(char c) noexcept
{
    return c >= '0' && c <= '9';
}

bool isLetter(char c) noexcept
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string_view trimmed(std::string_view text)
{
    text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
    return text.substr(0, text.find_last_not_of(kWhite) + 1);
}

bool looksNumeric(std::string_view text)
{
    const std::string word = text.size() <= 5 ? lowerAscii(text) : std::string();
    if (word == "true" || word == "false")
        return true;
    const bool hasDigit = std::any_of(text.begin(), text.end(), isDigit);
    const bool isPlain = text.find_first_not_of("0123456789+-.,eE%") == std::string_view::npos;
    return hasDigit && isPlain && text.size() <= 32;
}

bool looksLikeLink(std::string_view text)
{
    const bool hasWhite = text.find_first_of(kWhite) != std::string_view::npos;
    const bool hasScheme = text.find("://") < 10 || text.starts_with("www.");
    const std::size_t slash = text.find('/');
    const std::size_t dot = text.rfind('.');
    const bool isPath = slash != std::string_view::npos && dot != std::string_view::npos &&
                        dot > slash && text.size() - dot <= 6;
    return !hasWhite && (hasScheme || isPath);
}

bool looksLikeDate(std::string_view text)
{
    if (text.size() < 8 || text.size() > 35 ||
        !std::all_of(text.begin(), text.begin() + 4, isDigit))
        return false;
    return (text[4] == '-' || text[4] == '/') && isDigit(text[5]) &&
           text.find_first_not_of("0123456789-/:. TZ+UC") == std::string_view::npos;
}

bool looksLikeIdentifier(std::string_view text)
{
    bool hasDigit = false;
    for (const char c : text) {
        hasDigit |= isDigit(c);
        if (!isDigit(c) && !isLetter(c) &&
            std::string_view("-_./:#").find(c) == std::string_view::npos)
            return false;
    }
    return hasDigit && text.size() <= 80;
}

// The first element of the JSON list `text`; empty where the list is, or where its end is missing.
std::string_view firstElement(std::string_view text)
{
    const std::size_t begin = text.find_first_not_of(kWhite, text.find('[') + 1);
    int depth = 0;
    bool isQuoted = false;
    for (std::size_t i = begin; i < text.size(); ++i) {
        const char c = text[i];
        if (isQuoted) {
            i += c == '\\' ? 1 : 0;
            isQuoted = c != '"';
            continue;
        }
        isQuoted = c == '"';
        depth += c == '{' || c == '[' ? 1 : 0;
        if (depth == 0 && (c == ',' || c == ']'))
            return text.substr(begin, i - begin);
        depth -= c == '}' || c == ']' ? 1 : 0;
    }
    return {};
}

Json parsed(std::string_view text)
{
    if (text.size() > kMostParsedBytes || nestsTooDeeply(text))
        return Json(Json::value_t::discarded);
    return Json::parse(text, nullptr, false);
}

struct MessageKeys {
    CellShape shape;
    std::string_view first;
    std::string_view second;
};

// A message may lack its content where it calls a tool.
constexpr std::array<MessageKeys, 7> kMessageKeys{
    {{CellShape::RoleContent, "role", "content"}, {CellShape::RoleContent, "role", "tool_calls"},
        {CellShape::FromValue, "from", "value"}, {CellShape::RoleContent, "role", "value"},
        {CellShape::RoleParts, "role", "parts"}, {CellShape::InputOutput, "input", "output"},
        {CellShape::HumanAssistant, "human", "assistant"}}};

FoundShape shapeOfObjects(const Json& first)
{
    FoundShape out{CellShape::Objects};
    for (const auto& [key, value] : first.items())
        if (out.keys.size() < 16)
            out.keys.push_back(key);
    for (const MessageKeys& keys : kMessageKeys)
        if (out.shape == CellShape::Objects && first.contains(keys.first) &&
            first.contains(keys.second))
            out.shape = keys.shape;
    return out;
}

FoundShape shapeOfList(std::string_view text)
{
    const Json first = parsed(firstElement(text));
    if (first.is_object())
        return shapeOfObjects(first);
    if (first.is_string()) {
        const Json all = parsed(text);
        return {CellShape::Texts, {}, !all.is_array() || all.size() % 2 == 0};
    }
    if (first.is_array() && first.size() == 2 && first[0].is_string() && first[1].is_string())
        return {CellShape::TextPairs};
    return {first.is_discarded() ? CellShape::None : CellShape::Values};
}

void appendTexts(const Json& value, std::string& out)
{
    if (value.is_string())
        out += value.get_ref<const std::string&>() + "\n";
    else if (value.is_structured())
        for (const Json& one : value)
            appendTexts(one, out);
}

bool saysWord(const Cell& cell, std::string_view word)
{
    return cell.kind != CellKind::Nested && cell.text.size() == word.size() &&
           lowerAscii(cell.text) == word;
}

} // namespace

std::uint8_t marksOf(std::string_view text)
{
    text = trimmed(text);
    std::uint8_t marks = 0;
    const auto mark = [&marks](bool is, std::uint8_t bit) {
        marks = static_cast<std::uint8_t>(marks | (is ? bit : 0));
    };
    const bool isBeyondAscii = std::any_of(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80U; });
    mark(isBeyondAscii || text.find_first_of(kWhite) != std::string_view::npos, kSpaced);
    mark(looksNumeric(text), kNumber);
    mark(looksLikeLink(text), kLink);
    mark(looksLikeDate(text), kDate);
    mark(looksLikeIdentifier(text), kIdentifier);
    return marks;
}

FoundShape shapeOf(const Cell& cell)
{
    const std::string_view text = trimmed(cell.text);
    if (cell.kind == CellKind::Text)
        return beginsAsList(text) ? shapeOfList(text) : FoundShape();
    if (cell.kind != CellKind::Nested || isBlank(cell))
        return {};
    if (text.starts_with('['))
        return shapeOfList(text);
    FoundShape out{CellShape::Object};
    const Json whole = parsed(text);
    if (whole.is_object())
        out.keys = shapeOfObjects(whole).keys;
    return out;
}

// A list or object of nothing but brackets holds nothing.
bool isBlank(const Cell& cell)
{
    const std::string_view nothing = cell.kind == CellKind::Nested ? "[]{} \t\r\n" : kWhite;
    return cell.kind == CellKind::Null || cell.text.find_first_not_of(nothing) == std::string::npos;
}

bool isFilled(const Cell& cell)
{
    const bool mayBe = cell.kind == CellKind::Nested || cell.kind == CellKind::Text;
    return mayBe && !isBlank(cell) &&
           (cell.kind == CellKind::Nested ||
               cell.text.find_first_not_of("[] \t\r\n") != std::string::npos);
}

bool beginsAsList(std::string_view text)
{
    text = trimmed(text);
    return text.starts_with('[') && trimmed(text.substr(1)).starts_with('{');
}

bool isFalse(const Cell& cell)
{
    return saysWord(cell, "false");
}

void noteKinds(const Cell& cell, ColumnFacts& facts)
{
    const bool yes = saysWord(cell, "true");
    const bool no = isFalse(cell);
    facts.plain &= cell.kind != CellKind::Number;
    facts.nested |= cell.kind == CellKind::Nested;
    facts.text = facts.plain && !facts.nested;
    facts.listed |= cell.kind == CellKind::Text && beginsAsList(cell.text);
    facts.filled |= isFilled(cell);
    facts.bad |= no;
    facts.other |= !yes && !no && cell.kind != CellKind::Null;
    facts.truth = (facts.truth || yes || no) && !facts.other;
}

std::string exampleOf(const Cell& cell)
{
    constexpr std::size_t kShown = 200;
    return std::string(trimmed(cell.text).substr(0, kShown));
}

std::string flatText(const Cell& cell)
{
    if (isBlank(cell) || cell.text.size() > kMostParsedBytes)
        return {};
    if (cell.kind != CellKind::Nested)
        return std::string(trimmed(cell.text));
    std::string out;
    appendTexts(parsed(cell.text), out);
    return std::string(trimmed(out));
}

} // namespace mr
