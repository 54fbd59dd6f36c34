#include "app/cli/check_report.h"

#include <algorithm>

namespace mr::app {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kShownRows = 20;

Json finding(RowCheck check, const std::vector<CheckedRow>& rows)
{
    Json first = Json::array();
    for (std::size_t i = 0; i < std::min(rows.size(), kShownRows); ++i) {
        const CheckedRow& row = rows[i];
        Json one{{"row", row.row}, {"why", row.why}};
        if (row.line > 0)
            one["line"] = row.line;
        if (row.other > 0)
            one["other"] = row.other;
        first.push_back(std::move(one));
    }
    std::vector<std::int64_t> all;
    for (const CheckedRow& row : rows)
        all.push_back(row.row);
    return {{"check", name(check)}, {"rows", rows.size()}, {"first", std::move(first)},
        {"exclude_rows", RowList(std::move(all)).text()}};
}

// Tokens that `share` of the rows do not exceed.
std::int64_t percentile(const std::vector<LengthCount>& lengths, double share)
{
    std::int64_t rows = 0;
    for (const LengthCount& one : lengths)
        rows += one.rows;
    std::int64_t seen = 0;
    for (const LengthCount& one : lengths)
        if (seen += one.rows; static_cast<double>(seen) >= share * static_cast<double>(rows))
            return one.tokens;
    return 0;
}

// Powers of two, up to the first that cuts nothing.
Json effects(const std::vector<LengthCount>& lengths)
{
    Json out = Json::array();
    constexpr std::int64_t kShortest = 64;
    for (std::int64_t length = kShortest;; length *= 2) {
        const LengthEffect effect = effectOfLength(lengths, length);
        out.push_back({{"seq_len", length}, {"cut_rows", effect.cutRows}, {"tokens", effect.kept}});
        if (effect.cutRows == 0)
            return out;
    }
}

} // namespace

Json checkReport(const DataChecks& checks)
{
    Json out{{"rows", checks.rows}, {"findings", Json::array()}, {"problems", checks.problems}};
    for (std::size_t check = 0; check < kRowChecks; ++check)
        if (!checks.found[check].empty())
            out["findings"].push_back(finding(static_cast<RowCheck>(check), checks.found[check]));
    if (checks.lengths.empty())
        return out;
    out["seq_len"] = checks.seqLen;
    for (const RowLength& one : checks.longest)
        out["longest"].push_back({{"row", one.row}, {"tokens", one.tokens}});
    out["tokens_by_share"] = {{"50 %", percentile(checks.lengths, 0.5)},
        {"90 %", percentile(checks.lengths, 0.9)}, {"99 %", percentile(checks.lengths, 0.99)},
        {"100 %", percentile(checks.lengths, 1.0)}};
    out["by_seq_len"] = effects(checks.lengths);
    return out;
}

} // namespace mr::app
