#include "core/data/columns.h"

#include "core/data/cell_value.h"
#include "core/data/column_words.h"
#include "core/data/layout_choice.h"
#include "core/data/layout_match.h"
#include "core/data/untrainable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace mr {
namespace {

constexpr std::array<std::pair<std::string_view, std::string ColumnMap::*>, 8> kMembers{
    {{"prompt", &ColumnMap::prompt}, {"response", &ColumnMap::response}, {"text", &ColumnMap::text},
        {"input", &ColumnMap::input}, {"messages", &ColumnMap::messages},
        {"tools", &ColumnMap::tools}, {"system", &ColumnMap::system},
        {"history", &ColumnMap::history}}};

std::string list(const std::vector<ColumnFacts>& facts)
{
    constexpr std::size_t kShownColumns = 20;
    std::string out;
    for (std::size_t i = 0; i < std::min(facts.size(), kShownColumns); ++i)
        out += (out.empty() ? "" : ", ") + shownName(facts[i].name);
    if (facts.size() > kShownColumns)
        out += fmt::format(" and {} more", facts.size() - kShownColumns);
    return out;
}

Status bad(const DataSource& source, const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, source.path + ": " + message);
}

Status refuse(const DataSource& source, const Refusal& refusal, ColumnRefusal& out)
{
    out.kind = refusal.kind;
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
    map.layout = "as --map says";
    const auto isColumn = [&](std::string_view name) { return has(facts, name); };
    const auto columns = columnsAsked(source);
    for (const auto& [role, column] : columns) {
        const auto found = std::find_if(kMembers.begin(), kMembers.end(),
            [role = std::string_view(role)](const auto& one) { return one.first == role; });
        if (found == kMembers.end())
            return bad(source,
                "--map knows prompt, response, input, text, messages, tools, system, history and "
                "style, not \"" +
                    role + "\"");
        for (const std::string& name : columnsOf(column, isColumn))
            if (!isColumn(name))
                return bad(source, "--map names the column " + shownName(name) +
                                       ", which is not there; the columns are " + list(facts));
        map.*found->second = column;
    }
    if (map.isChat() && !(map.prompt + map.response + map.input + map.text + map.history).empty())
        return bad(source, "--map messages=... stands alone, but for tools and system: a row is a "
                           "conversation or a pair");
    if (!map.text.empty() && columns.size() > 1)
        return bad(source, "--map text=... stands alone: a row is either plain text or a prompt "
                           "with its response");
    return map;
}

// A side that --map leaves out, where the names leave no choice.
Status findSide(const DataSource& source, const std::vector<ColumnFacts>& facts, const char* role,
    NameFamily family, std::string& side, const std::string& other)
{
    if (!side.empty())
        return {};
    for (const ColumnFacts& column : facts) {
        if (column.nested || column.name == other || !isNamed(column.name, family))
            continue;
        if (!side.empty())
            return bad(source, "--map leaves the " + std::string(role) + " open, which may be " +
                                   shownName(side) + " or " + shownName(column.name) + "; add " +
                                   role + "=COLUMN");
        side = column.name;
    }
    return side.empty()
               ? bad(source, "--map leaves the " + std::string(role) + " open; the columns are " +
                                 list(facts) + "; add " + role + "=COLUMN")
               : Status();
}

Status findSides(const DataSource& source, const std::vector<ColumnFacts>& facts, ColumnMap& map)
{
    MR_TRY(findSide(source, facts, "prompt", NameFamily::Prompt, map.prompt, map.response));
    return findSide(source, facts, "response", NameFamily::Response, map.response, map.prompt);
}

// Tools and system text that belong to a conversation which --map names.
void findCompany(const std::vector<ColumnFacts>& facts, ColumnMap& map)
{
    const auto only = [&](NameFamily family) {
        std::string found;
        for (const ColumnFacts& column : facts)
            if (isNamed(column.name, family) && column.name != map.messages)
                found = found.empty() ? column.name : std::string();
        return found;
    };
    if (map.tools.empty())
        map.tools = only(NameFamily::Tools);
    if (map.system.empty())
        map.system = only(NameFamily::System);
}

std::string preferencesName(const std::vector<ColumnFacts>& facts)
{
    const LayoutChoice choice = chooseLayout(facts);
    return choice.layout.empty() || choice.isCertain ? std::string() : choice.layout + ": ";
}

// The likely column of the question and of the conversation that preferences answer.
std::optional<Refusal> findPreferences(const std::vector<ColumnFacts>& facts)
{
    std::string prompt;
    std::string chat;
    for (const ColumnFacts& column : facts) {
        if (prompt.empty() && isNamed(column.name, NameFamily::Prompt))
            prompt = column.name;
        if (chat.empty() && isNamed(column.name, NameFamily::Chat) &&
            (column.nested || column.listed))
            chat = column.name;
    }
    auto refusal = preferencesIn(facts, prompt, chat);
    if (refusal)
        refusal->message = preferencesName(facts) + refusal->message;
    return refusal;
}

std::string askingText(const LayoutChoice& choice, const std::vector<ColumnFacts>& facts)
{
    std::string out = choice.layout.empty()
                          ? "cannot tell for certain which columns hold the prompt and the response"
                          : "is known as " + choice.layout;
    out += (choice.why.empty() ? "" : ": " + choice.why) + "; the columns are " + list(facts);
    if (choice.readings.empty())
        return out + (choice.refusal == DataRefusal::UnknownColumns
                             ? "; say it with --map prompt=COLUMN,response=COLUMN (or text=COLUMN, "
                               "messages=COLUMN)"
                             : "");
    out += "; say which is meant:";
    for (const LayoutReading& reading : choice.readings)
        out += "\n  " + mapOption(reading.mapping) +
               "   (row 1: " + firstRowOf(reading.mapping, facts) + ")";
    return out;
}

ColumnMap mapOf(const LayoutReading& reading)
{
    ColumnMap map;
    for (const auto& [role, member] : kMembers)
        if (const auto found = reading.mapping.find(std::string(role));
            found != reading.mapping.end())
            map.*member = found->second;
    map.layout = reading.layout;
    return map;
}

// Refuses bad answers and media before the meaning of columns is asked, unless the mark
// is the answer.
std::optional<Refusal> untrainableInAny(
    const LayoutChoice& choice, const std::vector<ColumnFacts>& facts)
{
    for (const LayoutReading& reading : choice.readings) {
        ColumnMap map = mapOf(reading);
        if (!map.text.empty())
            continue;
        auto refused = untrainableIn(facts, map);
        if (refused)
            return refused;
    }
    return std::nullopt;
}

Result<ColumnMap> choose(
    const DataSource& source, const std::vector<ColumnFacts>& facts, ColumnRefusal& refusal)
{
    if (const auto preferences = findPreferences(facts))
        return refuse(source, *preferences, refusal);
    const LayoutChoice choice = chooseLayout(facts);
    if (auto refused = untrainableInAny(choice, facts)) {
        refused->message = (choice.isCertain ? choice.layout + ": " : "") + refused->message;
        return refuse(source, *refused, refusal);
    }
    if (choice.isCertain)
        return mapOf(choice.readings[0]);
    for (const LayoutReading& reading : choice.readings)
        refusal.readings.push_back({reading.layout, reading.mapping,
            firstRowOf(reading.mapping, facts), firstTextsOf(reading.mapping, facts)});
    return refuse(source, {choice.refusal, askingText(choice, facts)}, refusal);
}

} // namespace

std::map<std::string, std::string> columnsAsked(const DataSource& source)
{
    auto columns = source.columns;
    columns.erase(std::string(kStyleKey));
    columns.erase(std::string(kTemplateKey));
    columns.erase(std::string(kDropKey));
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

std::map<std::string, std::string> ColumnMap::asMap() const
{
    std::map<std::string, std::string> out;
    for (const auto& [role, member] : kMembers)
        if (!(this->*member).empty())
            out[std::string(role)] = this->*member;
    return out;
}

std::vector<std::string> unusedColumns(const std::vector<ColumnFacts>& facts, const ColumnMap& map)
{
    const auto used = columnsUsed(map.asMap(), facts);
    std::vector<std::string> out;
    for (const ColumnFacts& column : facts)
        if (std::find(used.begin(), used.end(), column.name) == used.end())
            out.push_back(column.name);
    return out;
}

Result<ColumnMap> chooseColumns(
    const DataSource& source, const std::vector<ColumnFacts>& facts, ColumnRefusal* refusal)
{
    ColumnRefusal unseen;
    ColumnRefusal& why = refusal != nullptr ? *refusal : unseen;
    Result<ColumnMap> said = asked(source, facts);
    if (!said.ok())
        return said;
    ColumnMap& map = said.value();
    if (columnsAsked(source).empty()) {
        const RowStyle style = map.style;
        MR_ASSIGN(map, choose(source, facts, why));
        map.style = style;
    } else if (map.isChat()) {
        findCompany(facts, map);
    } else if (map.text.empty()) {
        MR_TRY(findSides(source, facts, map));
    }
    if (map.isPairs() && map.prompt == map.response)
        return bad(source, "prompt and response are the same column, \"" + map.prompt + "\"");
    if (const auto refused = map.text.empty() ? untrainableIn(facts, map) : std::nullopt)
        return refuse(source, *refused, why);
    return said;
}

} // namespace mr
