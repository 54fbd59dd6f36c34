#include "core/tier/disk_wear.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace mr {
namespace {

// Three digits: "958 GB", "1.20 TB".
std::string decimalBytes(double bytes)
{
    constexpr std::array kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
    std::size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
        bytes /= 1000.0;
        ++unit;
    }
    const int digits = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%.*f %s", digits, bytes, kUnits.at(unit));
    return text.data();
}

std::string decimalBytes(std::uint64_t bytes)
{
    return decimalBytes(static_cast<double>(bytes));
}

// "1,250": steps are counted, not measured.
std::string grouped(double count)
{
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%.0f", std::floor(count));
    std::string digits = text.data();
    for (std::size_t at = digits.size(); at > 3;)
        digits.insert(at -= 3, ",");
    return digits;
}

std::string duration(double seconds)
{
    constexpr double kHour = 3600.0;
    constexpr double kDay = 24.0 * kHour;
    constexpr double kYear = 365.0 * kDay;
    const auto [unit, word] = seconds >= 2.0 * kYear  ? std::pair(kYear, "years")
                              : seconds >= 2.0 * kDay ? std::pair(kDay, "days")
                                                      : std::pair(kHour, "hours");
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%.1f %s", seconds / unit, word);
    return text.data();
}

std::string percent(double share)
{
    const double value = 100.0 * share;
    if (value >= 1000.0)
        return grouped(value) + " %";
    std::array<char, 32> text{};
    const int digits = value >= 9.95 ? 0 : value >= 0.0995 ? 1 : 2;
    (void)std::snprintf(text.data(), text.size(), "%.*f %%", digits, value);
    return value < 0.01 ? "less than 0.01 %" : text.data();
}

std::string writesOf(const DiskWear& wear, const DiskHealth& health)
{
    const std::string drive = health.drive.empty() ? "the scratch drive" : health.drive;
    const std::string step = decimalBytes(wear.writeBytesPerStep);
    if (wear.steps == 0)
        return "Every step writes " + step + " to " + drive + ".";
    const double run =
        static_cast<double>(wear.writeBytesPerStep) * static_cast<double>(wear.steps);
    return "The run writes " + decimalBytes(run) + " to " + drive + ", " + step + " a step.";
}

std::string ratingOf(const DiskWear& wear, const DiskHealth& health, double rated)
{
    std::string words = wear.ratedBytes != 0
                            ? " The drive is rated for " + decimalBytes(rated) + " written"
                            : " For a drive of " + decimalBytes(health.driveBytes) +
                                  " a rating of " + decimalBytes(rated) +
                                  " written is assumed (600 for each of its size; its data "
                                  "sheet has the real one)";
    const double steps = rated / static_cast<double>(wear.writeBytesPerStep);
    words += ": " + grouped(steps) + " steps";
    if (wear.stepSeconds > 0.0)
        words += " or " + duration(steps * wear.stepSeconds);
    if (wear.steps > 0)
        words += ", of which the run takes " + percent(static_cast<double>(wear.steps) / steps);
    return words + ".";
}

std::string countersOf(const SmartCounters& counters)
{
    return fmt::format(" So far it was given {}, and says that {} % of its life is used.",
        decimalBytes(counters.writtenBytes), counters.percentUsed);
}

} // namespace

std::string wearLine(const DiskWear& wear, const DiskHealth& health)
{
    if (wear.writeBytesPerStep == 0)
        return {};
    std::string line = writesOf(wear, health);
    const double rated = wear.ratedBytes != 0 ? static_cast<double>(wear.ratedBytes)
                                              : static_cast<double>(kAssumedWritesPerByte) *
                                                    static_cast<double>(health.driveBytes);
    if (rated > 0.0)
        line += ratingOf(wear, health, rated);
    else
        line += " The size of the drive is not known, nor what it is rated for.";
    if (health.counters)
        line += countersOf(*health.counters);
    return line + " These are bytes given to the drive; inside it may write more.";
}

Status checkDiskWrites(std::uint64_t runBytes, std::uint64_t mostBytes)
{
    if (mostBytes == 0 || runBytes <= mostBytes)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("the run would write {} ({} bytes) to disk, more than max-disk-writes allows, "
                    "{} ({} bytes); train fewer steps, save fewer checkpoints, keep more state in "
                    "memory, or allow more",
            decimalBytes(runBytes), runBytes, decimalBytes(mostBytes), mostBytes));
}

} // namespace mr
