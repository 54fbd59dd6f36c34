#include "core/data/untrainable.h"

#include "core/data/cell_look.h"
#include "core/data/white_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mr {
namespace {

constexpr std::array<std::string_view, 3> kVerdictNames{"label", "kto_tag", "kto_label"};
constexpr std::array<std::string_view, 3> kMediaNames{"images", "videos", "audios"};
// These may be texts about a picture, too.
constexpr std::array<std::string_view, 6> kMediumNames{
    "image", "video", "audio", "image_path", "image_url", "img"};
constexpr std::array<std::string_view, 3> kMediaMarks{"<image>", "<video>", "<audio>"};

// The mark that stands for a picture where a text begins or ends with it; "" if there is none. In
// the middle of a text it may be somebody's XML.
std::string_view mediaMark(std::string_view text)
{
    text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
    text = text.substr(0, text.find_last_not_of(kWhite) + 1);
    for (const std::string_view mark : kMediaMarks)
        if (text.starts_with(mark) || text.ends_with(mark))
            return mark;
    return {};
}

bool isMediaName(const ColumnFacts& column, const std::string& name)
{
    const auto isIn = [&](const auto& names) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    return isIn(kMediaNames) || (isIn(kMediumNames) && (column.nested || column.spaced == 0.0));
}

// `messages`: JSON of a conversation. There a mark that begins or ends a content stands beside its
// quotes.
std::string_view mediaMarkOfMessages(std::string_view messages)
{
    const auto isQuote = [messages](std::size_t at) {
        return at < messages.size() && messages[at] == '"' && (at == 0 || messages[at - 1] != '\\');
    };
    for (const std::string_view mark : kMediaMarks)
        for (std::size_t at = messages.find(mark); at != std::string_view::npos;
             at = messages.find(mark, at + 1))
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

bool holdsMedia(const ColumnFacts& column)
{
    return column.filled && isMediaName(column, lowerAscii(column.name));
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
        const bool isMedia = isMediaName(column, name);
        if (column.name == map.response) // is the answer, and judges none
            continue;
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

Status refuseRow(const ColumnMap& map, const Record& record)
{
    const std::string row = fmt::format("row {}", record.row);
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
