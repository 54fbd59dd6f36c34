#include "core/data/columns.h"

#include "core/data/unicode_text.h"
#include "core/data/untrainable.h"

#include <algorithm>
#include <array>
#include <span>

namespace mr {
namespace {

// In order of preference: where two of one list are there, the earlier one is meant.
constexpr std::array<std::string_view, 14> kPromptNames{"prompt", "question", "instruction",
    "query", "problem", "user", "human", "input", "source", "request", "指示", "質問", "問題",
    "入力"};
constexpr std::array<std::string_view, 15> kResponseNames{"response", "answer", "output",
    "completion", "target", "solution", "reply", "assistant", "label_text", "summary", "応答",
    "回答", "解答", "出力", "答え"};
constexpr std::array<std::string_view, 2> kInputNames{"input", "context"};
constexpr std::array<std::string_view, 7> kTextNames{
    "text", "content", "document", "story", "body", "sentence", "本文"};
constexpr std::array<std::string_view, 3> kSystemNames{"system", "system_prompt", "system_message"};
constexpr std::array<std::string_view, 1> kHistoryNames{"history"};
constexpr std::array<std::string_view, 4> kChatNames{
    "messages", "conversations", "conversation", "dialogue"};
// The column with one of `names`, whatever its capitals; empty when there is none.
std::string known(const std::vector<ColumnFacts>& facts, std::span<const std::string_view> names,
    bool nested = false)
{
    for (const std::string_view name : names)
        for (const ColumnFacts& column : facts)
            if (column.nested == nested && lowerAscii(column.name) == name)
                return column.name;
    return {};
}

std::string list(const std::vector<ColumnFacts>& facts)
{
    constexpr std::size_t kShownColumns = 20;
    std::string out;
    for (std::size_t i = 0; i < std::min(facts.size(), kShownColumns); ++i)
        out += (out.empty() ? "" : ", ") + shownName(facts[i].name);
    if (facts.size() > kShownColumns)
        out += " and " + std::to_string(facts.size() - kShownColumns) + " more";
    return out;
}

Status bad(const DataSource& source, const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, source.path + ": " + message);
}

Status refuse(const DataSource& source, const Refusal& refusal, DataRefusal* kind)
{
    if (kind != nullptr)
        *kind = refusal.kind;
    return bad(source, refusal.message);
}

bool has(const std::vector<ColumnFacts>& facts, std::string_view name)
{
    return std::any_of(
        facts.begin(), facts.end(), [&](const ColumnFacts& c) { return c.name == name; });
}

Status readStyle(const DataSource& source, RowStyle& out)
{
    const auto found = source.columns.find(std::string(kStyleKey));
    if (found == source.columns.end())
        return {};
    if (found->second != "template" && found->second != "plain")
        return bad(source, "--map style=" + found->second +
                               " is not known; use style=template (rows are written as the "
                               "model's chat template wants) or style=plain (as they stand)");
    out = found->second == "plain" ? RowStyle::Plain : RowStyle::Template;
    return {};
}

Result<ColumnMap> asked(const DataSource& source, const std::vector<ColumnFacts>& facts)
{
    ColumnMap map;
    MR_TRY(readStyle(source, map.style));
    const auto columns = columnsAsked(source);
    const std::map<std::string_view, std::string*> roles{{"prompt", &map.prompt},
        {"response", &map.response}, {"text", &map.text}, {"input", &map.input},
        {"messages", &map.messages}, {"tools", &map.tools}, {"system", &map.system},
        {"history", &map.history}};
    for (const auto& [role, column] : columns) {
        const auto found = roles.find(role);
        if (found == roles.end())
            return bad(source,
                "--map knows prompt, response, input, text, messages, tools, system, history and "
                "style, not \"" +
                    role + "\"");
        if (!has(facts, column))
            return bad(source, "--map names the column " + shownName(column) +
                                   ", which is not there; the columns are " + list(facts));
        *found->second = column;
    }
    if (map.isChat() && !(map.prompt + map.response + map.input + map.text + map.history).empty())
        return bad(source, "--map messages=... stands alone, but for tools and system: a row is a "
                           "conversation or a pair");
    if (!map.text.empty() && columns.size() > 1)
        return bad(source, "--map text=... stands alone: a row is either plain text or a prompt "
                           "with its response");
    return map;
}

// A column of conversations, with what belongs to it.
void findChat(const std::vector<ColumnFacts>& facts, ColumnMap& map)
{
    for (const ColumnFacts& column : facts) {
        const bool chat = std::find(kChatNames.begin(), kChatNames.end(),
                              lowerAscii(column.name)) != kChatNames.end();
        if (chat && (column.nested || column.listed) && map.messages.empty())
            map.messages = column.name;
    }
    if (!map.isChat())
        return;
    if (map.tools.empty() && has(facts, "tools"))
        map.tools = "tools";
    if (map.system.empty())
        map.system = known(facts, kSystemNames);
}

// What belongs to a pair besides its two sides.
void findCompany(const std::vector<ColumnFacts>& facts, ColumnMap& map)
{
    const std::string input = known(facts, kInputNames);
    if (input != map.prompt && input != map.response)
        map.input = input;
    map.system = known(facts, kSystemNames);
    map.history = known(facts, kHistoryNames, true);
}

// Both sides of a pair as lists of messages.
void findLists(const std::vector<ColumnFacts>& facts, ColumnMap& map)
{
    const std::string prompt = known(facts, kPromptNames, true);
    const std::string response = known(facts, kResponseNames, true);
    if (prompt.empty() || response.empty())
        return;
    map.prompt = prompt;
    map.response = response;
    if (has(facts, "tools"))
        map.tools = "tools";
}

// Without a name that is known: two text columns are a pair, one is plain text.
void byShape(const std::vector<ColumnFacts>& facts, ColumnMap& map)
{
    std::vector<std::string> texts;
    for (const ColumnFacts& column : facts)
        if (column.text)
            texts.push_back(column.name);
    if (texts.size() == 1 && facts.size() == 1)
        map.text = texts[0];
    if (texts.size() != 2)
        return;
    map.prompt = texts[0];
    map.response = texts[1];
}

std::optional<Refusal> findPreferences(const std::vector<ColumnFacts>& facts)
{
    ColumnMap found;
    findChat(facts, found);
    const std::string text = known(facts, kPromptNames);
    return preferencesIn(
        facts, text.empty() ? known(facts, kPromptNames, true) : text, found.messages);
}

// By the names of the columns, and where they say nothing by their shape. What is not found stays
// empty.
void findColumns(const std::vector<ColumnFacts>& facts, bool nothingAsked, ColumnMap& map)
{
    if (nothingAsked || map.isChat())
        findChat(facts, map);
    if (map.isChat())
        return;
    if (map.prompt.empty())
        map.prompt = known(facts, kPromptNames);
    if (map.response.empty())
        map.response = known(facts, kResponseNames);
    if (!nothingAsked || (!map.prompt.empty() && !map.response.empty()))
        return;
    map.prompt.clear();
    map.response.clear();
    findLists(facts, map);
    if (!map.isPairs())
        map.text = known(facts, kTextNames);
    if (!map.isPairs() && map.text.empty())
        byShape(facts, map);
}

} // namespace

std::map<std::string, std::string> columnsAsked(const DataSource& source)
{
    auto columns = source.columns;
    columns.erase(std::string(kStyleKey));
    columns.erase(std::string(kTemplateKey));
    return columns;
}

std::string templateAsked(const DataSource& source)
{
    const auto found = source.columns.find(std::string(kTemplateKey));
    return found == source.columns.end() ? std::string() : found->second;
}

void settleStyle(DataSource& source, RowStyle style)
{
    source.columns.try_emplace(
        std::string(kStyleKey), style == RowStyle::Template ? "template" : "plain");
}

std::string shownName(std::string_view name)
{
    constexpr std::size_t kShownBytes = 60;
    if (name.size() <= kShownBytes)
        return "\"" + std::string(name) + "\"";
    return "\"" + std::string(firstBytes(name, kShownBytes)) + "...\"";
}

std::map<std::string, std::string> ColumnMap::asMap() const
{
    std::map<std::string, std::string> out;
    const auto put = [&](const char* role, const std::string& column) {
        if (!column.empty())
            out[role] = column;
    };
    put("prompt", prompt);
    put("input", input);
    put("response", response);
    put("text", text);
    put("messages", messages);
    put("tools", tools);
    put("system", system);
    put("history", history);
    return out;
}

std::vector<std::string> unusedColumns(const std::vector<ColumnFacts>& facts, const ColumnMap& map)
{
    const auto used = map.asMap();
    std::vector<std::string> out;
    for (const ColumnFacts& column : facts)
        if (std::none_of(used.begin(), used.end(),
                [&](const auto& role) { return role.second == column.name; }))
            out.push_back(column.name);
    return out;
}

Result<ColumnMap> chooseColumns(
    const DataSource& source, const std::vector<ColumnFacts>& facts, DataRefusal* refusal)
{
    Result<ColumnMap> result = asked(source, facts);
    if (!result.ok())
        return result;
    ColumnMap& map = result.value();
    if (!map.text.empty())
        return result;
    const bool nothingAsked = columnsAsked(source).empty();
    if (nothingAsked)
        if (const auto preferences = findPreferences(facts))
            return refuse(source, *preferences, refusal);
    if (map.prompt.empty() || map.response.empty())
        findColumns(facts, nothingAsked, map);
    if (!map.isChat() && map.text.empty() && (map.prompt.empty() || map.response.empty()))
        return refuse(source,
            {DataRefusal::UnknownColumns,
                "cannot tell which columns hold the prompt and the response; the columns are " +
                    list(facts) +
                    "; say it with --map prompt=COLUMN,response=COLUMN (or text=COLUMN)"},
            refusal);
    if (map.isPairs() && map.prompt == map.response)
        return bad(source, "prompt and response are the same column, \"" + map.prompt + "\"");
    if (map.isPairs() && nothingAsked)
        findCompany(facts, map);
    if (const auto refused = map.text.empty() ? untrainableIn(facts, map) : std::nullopt)
        return refuse(source, *refused, refusal);
    return result;
}

} // namespace mr
