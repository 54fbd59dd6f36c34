#include "core/data/layout_choice.h"

#include "core/base/shown_text.h"
#include "core/data/family_readings.h"
#include "core/data/layout_match.h"
#include "core/data/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace mr {
namespace {

constexpr std::size_t kMostReadings = 4;

using Readings = std::vector<LayoutReading>;

std::vector<LayoutMatch> matchesIn(std::span<const Layout> layouts, const NamedFacts& facts)
{
    std::vector<LayoutMatch> out;
    for (const Layout& layout : layouts)
        if (auto match = matchLayout(layout, facts))
            out.push_back(std::move(*match));
    return out;
}

// Searches the whole catalogue; layouts that know most of the file's columns come first.
std::vector<LayoutMatch> catalogueMatches(const std::vector<ColumnFacts>& facts)
{
    std::vector<LayoutMatch> out;
    const NamedFacts named(facts);
    for (const auto layouts :
        {pairLayouts(), questionLayouts(), conversationLayouts(), refusedLayouts()})
        for (LayoutMatch& match : matchesIn(layouts, named))
            out.push_back(std::move(match));
    std::stable_sort(out.begin(), out.end(),
        [](const LayoutMatch& a, const LayoutMatch& b) { return a.named > b.named; });
    return out;
}

bool isSame(const LayoutReading& a, const LayoutReading& b)
{
    return a.mapping == b.mapping;
}

void addNew(Readings& out, const LayoutReading& reading)
{
    if (std::none_of(
            out.begin(), out.end(), [&](const LayoutReading& one) { return isSame(one, reading); }))
        out.push_back(reading);
}

LayoutChoice certain(LayoutReading reading)
{
    LayoutChoice out;
    out.isCertain = true;
    out.layout = reading.layout;
    out.readings.push_back(std::move(reading));
    return out;
}

LayoutChoice asked(Readings readings, std::string layout, std::string why)
{
    LayoutChoice out;
    out.refusal = DataRefusal::UnknownColumns;
    readings.resize(std::min(readings.size(), kMostReadings));
    out.readings = std::move(readings);
    out.layout = std::move(layout);
    out.why = std::move(why);
    return out;
}

DataRefusal refusalOf(DataKind kind)
{
    return kind == DataKind::Preference        ? DataRefusal::Preferences
           : kind == DataKind::LabelledAnswers ? DataRefusal::BadAnswers
                                               : DataRefusal::Untrainable;
}

// Readings that leave nothing out and use more columns than others make those others partial.
bool isPartOf(
    const LayoutReading& part, const LayoutReading& whole, const std::vector<ColumnFacts>& facts)
{
    const auto used = columnsUsed(part.mapping, facts);
    const auto all = columnsUsed(whole.mapping, facts);
    return used.size() < all.size() &&
           std::all_of(used.begin(), used.end(), [&](const std::string& name) {
               return std::find(all.begin(), all.end(), name) != all.end();
           });
}

Readings complete(const Readings& readings, const std::vector<ColumnFacts>& facts)
{
    Readings whole;
    for (const LayoutReading& reading : readings)
        if (reading.leftOut.empty())
            addNew(whole, reading);
    Readings out;
    for (const LayoutReading& one : whole)
        if (std::none_of(whole.begin(), whole.end(),
                [&](const LayoutReading& other) { return isPartOf(one, other, facts); }))
            out.push_back(one);
    return out;
}

// The layouts that leave nothing out, as far as they know as many columns as the best of them.
std::optional<LayoutChoice> fromCatalogue(const std::vector<LayoutMatch>& matches)
{
    Readings readings;
    const LayoutMatch* best = nullptr;
    for (const LayoutMatch& match : matches) {
        if (!match.isComplete || (best != nullptr && match.named < best->named))
            continue;
        if (best != nullptr && !match.layout->advice.empty())
            continue; // a question that the best layout answers
        best = best == nullptr ? &match : best;
        for (const LayoutReading& reading : match.readings)
            addNew(readings, reading);
    }
    if (best == nullptr)
        return std::nullopt;
    if (readings.size() == 1 && best->layout->advice.empty())
        return certain(readings[0]);
    return asked(readings, std::string(best->layout->name), std::string(best->layout->advice));
}

std::optional<LayoutChoice> refusedByName(const std::vector<LayoutMatch>& matches)
{
    for (const LayoutMatch& match : matches) {
        if (!match.layout->mapping.empty() || match.layout->advice.empty())
            continue;
        LayoutChoice out;
        out.layout = match.layout->name;
        out.why = match.layout->advice;
        out.refusal = match.layout->kind == DataKind::Translation ? DataRefusal::UnknownColumns
                                                                  : refusalOf(match.layout->kind);
        return out;
    }
    return std::nullopt;
}

// Why none of `readings` is certain.
std::string doubtOf(const Readings& whole, const Readings& readings)
{
    if (whole.size() > 1)
        return "more than one reading is possible";
    for (const LayoutReading& reading : readings)
        if (!reading.leftOut.empty() && reading.layout != "pairs")
            return "with " + mapOption(reading.mapping) + " nothing is taken from a column that " +
                   "may matter: " + reading.leftOut;
    return {};
}

LayoutChoice ask(const std::vector<LayoutMatch>& matches, const Readings& families,
    const Readings& whole, const std::vector<ColumnFacts>& facts)
{
    Readings readings = whole;
    for (const LayoutMatch& match : matches)
        for (const LayoutReading& reading : match.readings)
            addNew(readings, reading);
    for (const LayoutReading& reading : families)
        addNew(readings, reading);
    const auto twofold = std::find_if(
        facts.begin(), facts.end(), [](const ColumnFacts& c) { return c.isTwofold(); });
    const std::string why =
        twofold == facts.end()
            ? doubtOf(whole, readings)
            : fmt::format(
                  "{} holds texts in some rows and lists or objects in others, the first in row {}",
                  shownName(twofold->name), twofold->firstNestedRow);
    if (readings.size() < 2)
        for (const LayoutReading& reading : possibleReadings(facts))
            addNew(readings, reading);
    return asked(std::move(readings), {}, why);
}

} // namespace

LayoutChoice chooseLayout(const std::vector<ColumnFacts>& facts)
{
    const std::vector<LayoutMatch> matches = catalogueMatches(facts);
    if (auto known = fromCatalogue(matches))
        return *std::move(known);
    if (auto refused = refusedByName(matches)) {
        refused->readings =
            refused->refusal == DataRefusal::UnknownColumns ? possibleReadings(facts) : Readings();
        return *std::move(refused);
    }
    const Readings families = familyReadings(facts);
    Readings whole = complete(families, facts);
    if (whole.size() == 1)
        return certain(std::move(whole[0]));
    return ask(matches, families, whole, facts);
}

std::string mapOption(const std::map<std::string, std::string>& mapping)
{
    std::string out;
    for (const std::string_view role : kMappingRoles)
        if (const auto found = mapping.find(std::string(role)); found != mapping.end())
            out.append(out.empty() ? "" : ",").append(role).append("=").append(found->second);
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,=+-/:";
    const bool isPlain = out.find_first_not_of(kPlain) == std::string::npos;
    return terminalText(isPlain ? "--map " + out : "--map '" + out + "'");
}

std::map<std::string, std::string> firstTextsOf(
    const std::map<std::string, std::string>& mapping, const std::vector<ColumnFacts>& facts)
{
    std::map<std::string, std::string> out;
    for (const auto& choice : mapping) {
        std::string texts;
        for (const std::string& name : columnsUsed({choice}, facts))
            for (const ColumnFacts& column : facts)
                if (column.name == name && !column.example.empty())
                    texts += (texts.empty() ? "" : ", ") + shownName(column.example);
        if (!texts.empty())
            out[choice.first] = std::move(texts);
    }
    return out;
}

std::string firstRowOf(
    const std::map<std::string, std::string>& mapping, const std::vector<ColumnFacts>& facts)
{
    const auto texts = firstTextsOf(mapping, facts);
    std::string out;
    for (const std::string_view role : kMappingRoles)
        if (const auto found = texts.find(std::string(role)); found != texts.end())
            out.append(out.empty()          ? ""
                       : role == "response" ? " -> "
                                            : " + ")
                .append(found->second);
    return out;
}

} // namespace mr
