// DataReport in words and as JSON.

#include <millrace/library.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace mr {
namespace {

constexpr double kMuchPadding = 1.0 / 3.0;

double paddingOf(const DataReport& report, std::int64_t batchRows)
{
    return paddingShare(report.inputs, batchRows, report.seqLen);
}

// A name that somebody else gave, on one line.
std::string shortened(const std::string& name)
{
    constexpr std::size_t kMostBytes = 60;
    if (name.size() <= kMostBytes)
        return name;
    std::size_t end = kMostBytes;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0U) == 0x80U)
        --end; // not inside a character
    return name.substr(0, end) + "...";
}

std::string percent(double share)
{
    return fmt::format("{} %", std::llround(100.0 * share));
}

// "2 rows that cannot be read left out (cells 1, json 1); ", or nothing.
std::string skippedRows(const std::map<std::string, std::int64_t>& counts)
{
    std::int64_t all = 0;
    std::string reasons;
    for (const auto& [reason, rows] : counts) {
        all += rows;
        reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", reason, rows);
    }
    return all == 0 ? std::string()
                    : fmt::format("{}{} that cannot be read left out ({}); ", all,
                          all == 1 ? " row" : " rows", reasons);
}

std::string excludedRows(std::int64_t rows)
{
    return rows == 0 ? std::string()
                     : fmt::format("{}{} excluded; ", rows, rows == 1 ? " row" : " rows");
}

} // namespace

double paddingShare(std::int64_t inputs, std::int64_t batchRows, std::int64_t seqLen) noexcept
{
    const double places = static_cast<double>(batchRows) * static_cast<double>(seqLen);
    return places > 0.0 ? 1.0 - static_cast<double>(inputs) / places : 0.0;
}

bool isMostlyPadded(double share) noexcept
{
    return share > kMuchPadding;
}

std::string describeData(const DataReport& report)
{
    const auto count = [](std::int64_t n) { return std::to_string(n); };
    return count(report.rows) + " rows, " + count(report.cutRows) + " of them cut, " +
           count(report.emptyRows) + " with nothing to train and skipped; " +
           excludedRows(report.rowsExcluded) + skippedRows(report.rowsSkipped) +
           count(report.sequences) + " sequences to train on, " + count(report.evalSequences) +
           " to evaluate; an epoch is " + count(report.batchRows()) +
           (report.pack ? " packed" : "") + " rows of " + count(report.seqLen) + " tokens, " +
           percent(paddingOf(report, report.batchRows())) + " padding";
}

std::string packingAdvice(const DataReport& report)
{
    const double now = paddingOf(report, report.sequences);
    if (report.pack || report.packedRows == 0 || !isMostlyPadded(now))
        return {};
    return fmt::format(
        "Pack short sequences (--pack): rows {} instead of {}, {} padding instead of {}.",
        report.packedRows, report.sequences, percent(paddingOf(report, report.packedRows)),
        percent(now));
}

std::string thoughtAdvice(std::int64_t emptyThoughts, std::int64_t answers)
{
    if (emptyThoughts == 0 || answers == 0)
        return {};
    return fmt::format(
        "{} of the answers ({} of {}) have an empty thought. A model trained on thousands of such "
        "rows unlearns to think: give them their thoughts, or leave them out if the model is to "
        "think on.",
        percent(static_cast<double>(emptyThoughts) / static_cast<double>(answers)), emptyThoughts,
        answers);
}

std::string switchAdvice(std::int64_t unreadSwitches)
{
    if (unreadSwitches == 0)
        return {};
    return fmt::format("{} rows hold /no_think, which neither this model nor its chat template "
                       "knows as a switch: it is read as a word of the question.",
        unreadSwitches);
}

std::vector<std::string> dataAdvice(const DataReport& report)
{
    std::vector<std::string> out = report.notes;
    for (const std::string& line :
        {packingAdvice(report), thoughtAdvice(report.emptyThoughts, report.answers),
            switchAdvice(report.unreadSwitches)})
        if (!line.empty())
            out.push_back(line);
    return out;
}

std::string layoutNote(const DataReport& report)
{
    return layoutNote(report.layout, report.mapping, report.unusedColumns);
}

std::string layoutNote(const std::string& layout, const std::map<std::string, std::string>& mapping,
    const std::vector<std::string>& unusedColumns)
{
    constexpr std::size_t kMostColumns = 20;
    std::string roles;
    for (const std::string_view role : kMappingRoles)
        if (const auto found = mapping.find(std::string(role)); found != mapping.end())
            roles.append(roles.empty() ? "" : ", ")
                .append(role)
                .append("=")
                .append(shortened(found->second));
    std::string names;
    for (std::size_t i = 0; i < std::min(unusedColumns.size(), kMostColumns); ++i)
        names += (names.empty() ? "\"" : ", \"") + shortened(unusedColumns[i]) + "\"";
    if (unusedColumns.size() > kMostColumns)
        names += fmt::format(" and {} more", unusedColumns.size() - kMostColumns);
    std::string out = layout + (layout.empty() || roles.empty() ? "" : ": ") + roles;
    return names.empty() ? out : out + "; not used: " + names;
}

std::string_view name(DataRefusal refusal) noexcept
{
    constexpr std::array<std::string_view, 7> kNames{
        "", "unknown-columns", "preferences", "bad-answers", "media", "untrainable", "no-template"};
    return kNames.at(static_cast<std::size_t>(refusal));
}

std::string toJson(const DataReport& report)
{
    const DataReport& r = report;
    nlohmann::json json = {{"rows", r.rows}, {"cut_rows", r.cutRows}, {"empty_rows", r.emptyRows},
        {"prompt_rows", r.promptRows}, {"sequences", r.sequences},
        {"eval_sequences", r.evalSequences}, {"inputs", r.inputs}, {"seq_len", r.seqLen},
        {"pack", r.pack}, {"batch_rows", r.batchRows()}, {"padding", paddingOf(r, r.batchRows())}};
    if (r.packedRows > 0) {
        json["packed_rows"] = r.packedRows;
        json["packed_padding"] = paddingOf(r, r.packedRows);
    }
    if (r.answers > 0) {
        json["answers"] = r.answers;
        json["empty_thoughts"] = r.emptyThoughts;
        json["unread_switches"] = r.unreadSwitches;
    }
    json["layout"] = r.layout;
    json["mapping"] = r.mapping;
    json["unused_columns"] = r.unusedColumns;
    json["rows_excluded"] = r.rowsExcluded;
    json["rows_skipped"] = r.rowsSkipped;
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace mr
