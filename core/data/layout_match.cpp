#include "core/data/layout_match.h"

#include "core/base/shown_text.h"
#include "core/data/cell_value.h"
#include "core/data/untrainable.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace mr {
namespace {

constexpr double kShortColumnBytes = 80.0;

std::vector<std::string_view> split(std::string_view text, std::string_view at)
{
    std::vector<std::string_view> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(at), text.size());
        if (end > 0)
            out.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + at.size(), text.size()));
    }
    return out;
}

struct ColumnSpec {
    std::string_view name;
    std::string_view kind = "text";
    bool isOptional = false;
};

// "name?:kind"
ColumnSpec readSpec(std::string_view text)
{
    ColumnSpec out;
    const std::size_t colon = text.find(':');
    out.name = text.substr(0, colon);
    if (colon != std::string_view::npos)
        out.kind = text.substr(colon + 1);
    out.isOptional = out.name.ends_with('?');
    out.name.remove_suffix(out.isOptional ? 1 : 0);
    return out;
}

bool isShort(const ColumnFacts& c)
{
    return !c.nested && c.meanBytes <= kShortColumnBytes;
}

bool hasValue(const ColumnFacts& c, std::string_view value)
{
    return std::find(c.values.begin(), c.values.end(), value) != c.values.end();
}

// A to Z, and nothing else.
bool isLetter(const ColumnFacts& c)
{
    return !c.values.empty() &&
           std::all_of(c.values.begin(), c.values.end(), [](const std::string& value) {
               return value.size() == 1 && value[0] >= 'a' && value[0] <= 'z';
           });
}

struct KindTest {
    std::string_view name;
    bool (*fits)(const ColumnFacts&);
};

constexpr std::array<KindTest, 16> kKinds{{
    {"text", [](const ColumnFacts& c) { return c.text && !isConversation(c.shape); }},
    {"number", [](const ColumnFacts& c) { return c.isNumeric() && !c.truth; }},
    {"truth", [](const ColumnFacts& c) { return c.truth; }},
    {"scalar", [](const ColumnFacts& c) { return !c.nested; }},
    {"short", &isShort},
    {"chat", [](const ColumnFacts& c) { return isConversation(c.shape) && !c.isMixed; }},
    {"turns",
        [](const ColumnFacts& c) { return c.shape == CellShape::Texts && c.isEven && !c.isMixed; }},
    {"texts", [](const ColumnFacts& c) { return c.nested && c.shape == CellShape::Texts; }},
    {"objects", [](const ColumnFacts& c) { return c.nested && c.shape == CellShape::Objects; }},
    {"list", [](const ColumnFacts& c) { return c.nested && c.shape != CellShape::Object; }},
    {"object", [](const ColumnFacts& c) { return c.shape == CellShape::Object; }},
    {"letter", &isLetter},
    // A list's places count from 0 for certain only where 0 occurs, and from 1 where the last does.
    {"place",
        [](const ColumnFacts& c) { return isLetter(c) || (c.isNumeric() && hasValue(c, "0")); }},
    {"upto2", [](const ColumnFacts& c) { return hasValue(c, "2") && !hasValue(c, "0"); }},
    {"upto3", [](const ColumnFacts& c) { return hasValue(c, "3") && !hasValue(c, "0"); }},
    {"any", [](const ColumnFacts&) { return true; }},
}};

// A column that is empty in every row may be of any kind.
bool fits(const ColumnFacts& column, std::string_view kind)
{
    const auto found = std::find_if(
        kKinds.begin(), kKinds.end(), [&](const KindTest& test) { return test.name == kind; });
    return column.rows == 0 || (found != kKinds.end() && found->fits(column));
}

// `expression` with the file's spelling of its columns; empty where one is not there.
std::string spelled(std::string_view expression, const NamedFacts& facts)
{
    std::string out(expression);
    for (const NamedPart& part : partsOf(expression)) {
        const ColumnFacts* const column = facts.find(part.column);
        if (column == nullptr)
            return {};
        const bool hasKey =
            column->keys.empty() || part.key.empty() ||
            std::find(column->keys.begin(), column->keys.end(), part.key) != column->keys.end();
        if (!hasKey)
            return {};
        if (const std::size_t at = out.find(part.column); column->name != part.column)
            out.replace(at, part.column.size(), column->name);
    }
    return out;
}

// Nothing where prompt, response, text or messages have no column.
std::optional<LayoutReading> readingOf(
    const Layout& layout, std::string_view mapping, const NamedFacts& facts)
{
    LayoutReading out{std::string(layout.name), {}};
    for (const std::string_view pair : split(mapping, ",")) {
        const std::string role(pair.substr(0, pair.find('=')));
        const std::string value = spelled(pair.substr(pair.find('=') + 1), facts);
        const bool isNeeded =
            role == "prompt" || role == "response" || role == "text" || role == "messages";
        if (value.empty() && isNeeded)
            return std::nullopt;
        if (!value.empty())
            out.mapping[role] = value;
    }
    return out;
}

} // namespace

NamedFacts::NamedFacts(const std::vector<ColumnFacts>& facts)
    : m_facts(facts)
{
    for (const ColumnFacts& column : facts)
        m_byName.try_emplace(lowerAscii(column.name), &column);
}

const ColumnFacts* NamedFacts::find(std::string_view name) const
{
    const auto found = m_byName.find(lowerAscii(name));
    return found == m_byName.end() ? nullptr : found->second;
}

std::vector<std::string> columnsUsed(
    const std::map<std::string, std::string>& mapping, const std::vector<ColumnFacts>& facts)
{
    std::vector<std::string> out;
    const auto isColumn = [&](std::string_view name) {
        return std::any_of(
            facts.begin(), facts.end(), [&](const ColumnFacts& c) { return c.name == name; });
    };
    for (const auto& [role, value] : mapping)
        for (std::string& column : columnsOf(value, isColumn))
            out.push_back(std::move(column));
    return out;
}

ReadingUse useOf(
    const std::map<std::string, std::string>& mapping, const std::vector<ColumnFacts>& facts)
{
    const ReadingUse::Kind kind = mapping.contains("messages") ? ReadingUse::Kind::Conversation
                                  : mapping.contains("text")   ? ReadingUse::Kind::Text
                                                               : ReadingUse::Kind::Pair;
    ReadingUse use{kind};
    for (const std::string& name : columnsUsed(mapping, facts)) {
        const auto found = std::find_if(
            facts.begin(), facts.end(), [&](const ColumnFacts& c) { return c.name == name; });
        if (found != facts.end())
            use.columns.push_back(&*found);
    }
    return use;
}

std::string firstLeftOut(const std::vector<ColumnFacts>& facts, const ReadingUse& use,
    const std::vector<std::string>& known)
{
    const auto isIn = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const ColumnFacts& column : facts) {
        if (use.has(column) || isIn(known, column.name))
            continue;
        if (const std::string why = whyNotLeftOut(column, use); !why.empty())
            return shownName(column.name) + " " + why;
    }
    return {};
}

std::optional<LayoutMatch> matchLayout(const Layout& layout, const NamedFacts& facts)
{
    LayoutMatch out{&layout};
    std::vector<std::string> known;
    for (const std::string_view text : split(layout.columns, " ")) {
        const ColumnSpec spec = readSpec(text);
        const ColumnFacts* const column = facts.find(spec.name);
        const bool isFitting = column != nullptr && fits(*column, spec.kind);
        if (!isFitting && !spec.isOptional)
            return std::nullopt;
        if (isFitting)
            known.push_back(column->name);
    }
    out.named = known.size();
    for (const std::string_view mapping : split(layout.mapping, " | "))
        if (auto reading = readingOf(layout, mapping, facts)) {
            reading->leftOut =
                firstLeftOut(facts.all(), useOf(reading->mapping, facts.all()), known);
            out.readings.push_back(std::move(*reading));
        }
    out.isComplete = !out.readings.empty() &&
                     std::all_of(out.readings.begin(), out.readings.end(),
                         [](const LayoutReading& reading) { return reading.leftOut.empty(); });
    return !layout.mapping.empty() && out.readings.empty() ? std::nullopt
                                                           : std::optional(std::move(out));
}

} // namespace mr
