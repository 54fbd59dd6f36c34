#include "app/cli/method_table.h"

#include "core/base/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace mr::app {
namespace {

constexpr std::string_view kUnknown = "-";
constexpr std::size_t kColumns = 11;
constexpr std::size_t kLeftAligned = 3; // the words before the numbers

using Cells = std::array<std::string, kColumns>;

std::string tierText(const PlanReport& report, std::string_view name)
{
    for (const PlanTier& tier : report.tiers)
        if (tier.tier == name)
            return formatBytes(tier.totalBytes);
    return std::string(kUnknown);
}

// The memory with the smallest share of its budget left.
std::string verdict(const PlanReport& report)
{
    if (!report.fits)
        return report.limit;
    const PlanTier* tightest = nullptr;
    double least = 1.0;
    for (const PlanTier& tier : report.tiers) {
        if (tier.budgetBytes == 0)
            continue;
        const double used =
            static_cast<double>(tier.totalBytes) / static_cast<double>(tier.budgetBytes);
        if (tightest == nullptr || 1.0 - used < least) {
            least = 1.0 - used;
            tightest = &tier;
        }
    }
    if (tightest == nullptr)
        return "fits";
    return fmt::format("fits, {} of {} memory left",
        formatBytes(tightest->budgetBytes - std::min(tightest->totalBytes, tightest->budgetBytes)),
        tightest->tier);
}

Cells cellsOf(const PlanReport& report)
{
    const bool isPlanned = !report.tiers.empty();
    const auto known = [&](std::string text) {
        return isPlanned ? std::move(text) : std::string(kUnknown);
    };
    return {report.method, report.policy, report.precision, tierText(report, "device"),
        tierText(report, "host"), tierText(report, "disk"),
        known(fmt::format("{}", report.trainedParameters)),
        report.predictedStepMs > 0.0 ? fmt::format("{:.1f}", report.predictedStepMs)
                                     : std::string(kUnknown),
        known(formatBytes(static_cast<std::uint64_t>(report.diskWriteBytesPerStep))),
        known(formatBytes(report.checkpointBytes)), verdict(report)};
}

} // namespace

std::vector<std::string> methodTable(const std::vector<PlanReport>& reports)
{
    std::vector<Cells> rows = {{"method", "policy", "precision", "device", "host", "disk",
        "trained", "ms a step", "written a step", "checkpoint", ""}};
    for (const PlanReport& report : reports)
        rows.push_back(cellsOf(report));
    std::array<std::size_t, kColumns> widths{};
    for (const Cells& row : rows)
        for (std::size_t c = 0; c < kColumns; ++c)
            widths[c] = std::max(widths[c], row[c].size());
    std::vector<std::string> lines;
    for (const Cells& row : rows) {
        std::string& line = lines.emplace_back();
        for (std::size_t c = 0; c + 1 < kColumns; ++c)
            line += c < kLeftAligned ? fmt::format("{:<{}}  ", row[c], widths[c])
                                     : fmt::format("{:>{}}  ", row[c], widths[c]);
        line += row.back();
    }
    return lines;
}

} // namespace mr::app
