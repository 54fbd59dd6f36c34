#include "core/data/family_readings.h"

#include "core/data/column_words.h"
#include "core/data/layout_match.h"
#include "core/data/untrainable.h"

#include <algorithm>

namespace mr {
namespace {

using Columns = std::vector<const ColumnFacts*>;

template <typename Test>
Columns columnsWhere(const std::vector<ColumnFacts>& facts, Test test)
{
    Columns out;
    for (const ColumnFacts& column : facts)
        if (test(column))
            out.push_back(&column);
    return out;
}

// "bob42" in a column "user" is a name, not a question.
bool isNameOfSomebody(const ColumnFacts& column)
{
    const std::string name = lowerAscii(column.name);
    return (name == "user" || name == "human" || name == "source" || name == "request") &&
           column.spaced == 0.0 && column.identifiers > 0.0;
}

Columns prompts(const std::vector<ColumnFacts>& facts)
{
    return columnsWhere(facts, [](const ColumnFacts& c) {
        return !c.nested && !isConversation(c.shape) && isNamed(c.name, NameFamily::Prompt) &&
               !isNameOfSomebody(c);
    });
}

Columns responses(const std::vector<ColumnFacts>& facts)
{
    return columnsWhere(facts, [](const ColumnFacts& c) {
        return !c.nested && !isConversation(c.shape) && isNamed(c.name, NameFamily::Response);
    });
}

LayoutReading finished(LayoutReading reading, const std::vector<ColumnFacts>& facts)
{
    reading.leftOut = firstLeftOut(facts, useOf(reading.mapping, facts));
    return reading;
}

// The one column of a family that the reading does not use yet; empty: none, or several.
std::string company(const std::vector<ColumnFacts>& facts, const LayoutReading& reading,
    NameFamily family, bool isNested)
{
    const auto used = columnsUsed(reading.mapping, facts);
    const Columns found = columnsWhere(facts, [&](const ColumnFacts& c) {
        return c.nested == isNested && isNamed(c.name, family) &&
               std::find(used.begin(), used.end(), c.name) == used.end();
    });
    return found.size() == 1 ? found[0]->name : std::string();
}

void addCompany(LayoutReading& reading, const char* role, const std::string& column)
{
    if (!column.empty())
        reading.mapping[role] = column;
}

// A column in two families, as "input", stands on one side at a time.
void addPairs(const std::vector<ColumnFacts>& facts, std::vector<LayoutReading>& out)
{
    for (const ColumnFacts* prompt : prompts(facts))
        for (const ColumnFacts* response : responses(facts)) {
            LayoutReading reading{"prompt and response by name",
                {{"prompt", prompt->name}, {"response", response->name}}};
            addCompany(reading, "input", company(facts, reading, NameFamily::Input, false));
            addCompany(reading, "system", company(facts, reading, NameFamily::System, false));
            addCompany(reading, "history", company(facts, reading, NameFamily::History, true));
            out.push_back(finished(std::move(reading), facts));
        }
}

// Whether its lists are conversations is seen row by row: a row that is none is refused.
bool isChat(const ColumnFacts& column)
{
    return isNamed(column.name, NameFamily::Chat) && (column.nested || column.listed);
}

void addChats(const std::vector<ColumnFacts>& facts, std::vector<LayoutReading>& out)
{
    for (const ColumnFacts* chat : columnsWhere(facts, &isChat)) {
        LayoutReading reading{"conversations by name", {{"messages", chat->name}}};
        std::string tools = company(facts, reading, NameFamily::Tools, true);
        if (tools.empty())
            tools = company(facts, reading, NameFamily::Tools, false);
        addCompany(reading, "tools", tools);
        addCompany(reading, "system", company(facts, reading, NameFamily::System, false));
        out.push_back(finished(std::move(reading), facts));
    }
}

// Both sides as lists of messages.
void addLists(const std::vector<ColumnFacts>& facts, std::vector<LayoutReading>& out)
{
    const auto lists = [&](NameFamily family) {
        return columnsWhere(facts, [&](const ColumnFacts& c) {
            return c.nested && isConversation(c.shape) && isNamed(c.name, family);
        });
    };
    for (const ColumnFacts* prompt : lists(NameFamily::Prompt))
        for (const ColumnFacts* response : lists(NameFamily::Response)) {
            LayoutReading reading{"lists of messages by name",
                {{"prompt", prompt->name}, {"response", response->name}}};
            addCompany(reading, "tools", company(facts, reading, NameFamily::Tools, true));
            out.push_back(finished(std::move(reading), facts));
        }
}

// By its name, or because it is the only column.
void addTexts(const std::vector<ColumnFacts>& facts, std::vector<LayoutReading>& out)
{
    for (const ColumnFacts* text : columnsWhere(facts, [&](const ColumnFacts& c) {
             return c.text && !isConversation(c.shape) &&
                    (isNamed(c.name, NameFamily::Text) || facts.size() == 1);
         }))
        out.push_back(finished({"text", {{"text", text->name}}}, facts));
}

bool isSentence(const ColumnFacts& column)
{
    return column.text && !column.isNumeric() && !isConversation(column.shape) && column.rows > 0;
}

} // namespace

std::vector<LayoutReading> familyReadings(const std::vector<ColumnFacts>& facts)
{
    std::vector<LayoutReading> out;
    addChats(facts, out);
    addPairs(facts, out);
    addLists(facts, out);
    addTexts(facts, out);
    return out;
}

std::vector<LayoutReading> possibleReadings(const std::vector<ColumnFacts>& facts)
{
    std::vector<LayoutReading> out;
    const auto add = [&](const char* layout, std::map<std::string, std::string> mapping) {
        out.push_back({layout, std::move(mapping), "no name says so"});
    };
    for (const ColumnFacts& column : facts)
        if (isConversation(column.shape))
            add("conversations", {{"messages", column.name}});
    for (const ColumnFacts& column : facts)
        if (column.shape == CellShape::Object && column.name == "translation" &&
            column.keys.size() == 2)
            for (const int first : {0, 1})
                add("translation",
                    {{"prompt", column.name + "." + column.keys[static_cast<std::size_t>(first)]},
                        {"response",
                            column.name + "." + column.keys[static_cast<std::size_t>(1 - first)]}});
    const Columns texts = columnsWhere(facts, isSentence);
    if (texts.size() == 2) {
        add("pairs", {{"prompt", texts[0]->name}, {"response", texts[1]->name}});
        add("pairs", {{"prompt", texts[1]->name}, {"response", texts[0]->name}});
    }
    if (texts.size() <= 2)
        for (const ColumnFacts* text : texts)
            add("text", {{"text", text->name}});
    return out;
}

} // namespace mr
