#include "core/data/untrainable.h"

#include <algorithm>
#include <array>

namespace mr {
namespace {

constexpr std::array<std::string_view, 3> kVerdictNames{"label", "kto_tag", "kto_label"};
constexpr std::array<std::string_view, 3> kMediaNames{"images", "videos", "audios"};
constexpr std::array<std::string_view, 3> kMediaMarks{"<image>", "<video>", "<audio>"};

bool beginsAsList(std::string_view text)
{
    constexpr std::string_view kWhite = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
    if (!text.starts_with('['))
        return false;
    const std::size_t next = text.find_first_not_of(kWhite, 1);
    return next != std::string_view::npos && text[next] == '{';
}

// The mark that stands for a picture where a text begins or ends with it; "" if there is none. In
// the middle of a text it may be somebody's XML.
std::string_view mediaMark(std::string_view text)
{
    constexpr std::string_view kWhite = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
    text = text.substr(0, text.find_last_not_of(kWhite) + 1);
    for (const std::string_view mark : kMediaMarks)
        if (text.starts_with(mark) || text.ends_with(mark))
            return mark;
    return {};
}

bool isWord(const Cell& cell, std::string_view word)
{
    return cell.kind != CellKind::Nested && cell.text.size() == word.size() &&
           lowerAscii(cell.text) == word;
}

bool isFalse(const Cell& cell)
{
    return isWord(cell, "false");
}

// A list or an object with something in it, or a text.
bool isFilled(const Cell& cell)
{
    if (cell.kind == CellKind::Nested)
        return cell.text.find_first_not_of("[]{} \t\r\n") != std::string::npos;
    return cell.kind == CellKind::Text &&
           cell.text.find_first_not_of(" \t\r\n[]") != std::string::npos;
}

// Of a conversation the JSON of its messages: a mark that begins or ends a content stands beside
// its quotes.
std::string_view mediaMarkOfMessages(std::string_view json)
{
    const auto isQuote = [json](std::size_t at) {
        return at < json.size() && json[at] == '"' && (at == 0 || json[at - 1] != '\\');
    };
    for (const std::string_view mark : kMediaMarks)
        for (std::size_t at = json.find(mark); at != std::string_view::npos;
             at = json.find(mark, at + 1))
            if (isQuote(at - 1) || isQuote(at + mark.size()))
                return mark;
    return {};
}

} // namespace

std::string lowerAscii(std::string_view text)
{
    std::string out(text);
    for (char& c : out)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

std::optional<Refusal> preferencesIn(
    const std::vector<ColumnFacts>& facts, const std::string& prompt, const std::string& chat)
{
    const auto beginning = [&](std::string_view begin) {
        return std::find_if(facts.begin(), facts.end(),
            [&](const ColumnFacts& c) { return lowerAscii(c.name).starts_with(begin); });
    };
    const auto chosen = beginning("chosen");
    const auto rejected = beginning("rejected");
    if (chosen == facts.end() || rejected == facts.end())
        return std::nullopt;
    std::string way = "say so with --map ";
    if (!prompt.empty())
        way += "prompt=" + prompt + ",response=" + chosen->name;
    else if (!chat.empty())
        way = "make each row a conversation that ends with the chosen one";
    else
        way += (chosen->nested ? "messages=" : "text=") + chosen->name;
    return Refusal{DataRefusal::Preferences,
        "holds preferences (columns " + shownName(chosen->name) + " and " +
            shownName(rejected->name) +
            "), which are not supported: training would teach both answers or the wrong one. To "
            "train the chosen answers alone, " +
            way};
}

std::optional<Refusal> untrainableIn(const std::vector<ColumnFacts>& facts, ColumnMap& map)
{
    for (const ColumnFacts& column : facts) {
        const std::string name = lowerAscii(column.name);
        const bool judges =
            std::find(kVerdictNames.begin(), kVerdictNames.end(), name) != kVerdictNames.end();
        const bool isMedia =
            std::find(kMediaNames.begin(), kMediaNames.end(), name) != kMediaNames.end();
        if (judges && column.truth)
            map.verdict = column.name;
        if (isMedia)
            map.media.push_back(column.name);
        if (judges && column.truth && column.bad)
            return Refusal{DataRefusal::BadAnswers,
                "holds answers that are marked as bad (column " + shownName(column.name) +
                    " is false), and training would teach them; keep only the rows where it is "
                    "true"};
        if (isMedia && column.filled)
            return Refusal{DataRefusal::Media,
                "holds pictures, sound or video (column " + shownName(column.name) +
                    "), and only text is trained; remove the rows that have some"};
    }
    return std::nullopt;
}

void noteColumns(const Record& record, std::vector<ColumnFacts>& facts)
{
    for (const Cell& cell : record.cells) {
        auto found = std::find_if(
            facts.begin(), facts.end(), [&](const ColumnFacts& c) { return c.name == cell.name; });
        if (found == facts.end())
            found = facts.insert(facts.end(), {cell.name});
        found->text &= cell.kind == CellKind::Text || cell.kind == CellKind::Null;
        found->nested |= cell.kind == CellKind::Nested;
        found->listed |= cell.kind == CellKind::Text && beginsAsList(cell.text);
        found->filled |= isFilled(cell);
        found->bad |= isFalse(cell);
        const bool yes = isWord(cell, "true");
        found->other |= !yes && !isFalse(cell) && cell.kind != CellKind::Null;
        found->truth = (found->truth || yes || isFalse(cell)) && !found->other;
    }
}

Status refuseRow(const ColumnMap& map, const Record& record)
{
    const std::string row = "row " + std::to_string(record.row);
    const auto refused = [](const std::string& message) {
        return Status::error(ErrorKind::InvalidArgument, message);
    };
    const Cell* const verdict = map.verdict.empty() ? nullptr : record.find(map.verdict);
    if (verdict != nullptr && isFalse(*verdict))
        return refused(row + " is marked as a bad answer (" + shownName(map.verdict) +
                       " is false), and training would teach it; keep only the rows where it is "
                       "true");
    for (const std::string& column : map.media)
        if (const Cell* cell = record.find(column); cell != nullptr && isFilled(*cell))
            return refused(row + " comes with pictures, sound or video (" + shownName(column) +
                           "), and only text is trained; remove such rows");
    const Cell* const asked = record.find(map.isChat() ? map.messages : map.prompt);
    if (asked == nullptr)
        return {};
    const bool isJson = asked->kind == CellKind::Nested || beginsAsList(asked->text);
    const std::string_view mark =
        isJson ? mediaMarkOfMessages(asked->text) : mediaMark(asked->text);
    return mark.empty() ? Status()
                        : refused(row + " holds \"" + std::string(mark) +
                                  "\", which stands for a picture, sound or video, and only text "
                                  "is trained; remove such rows");
}

} // namespace mr
