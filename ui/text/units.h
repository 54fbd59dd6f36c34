// Numbers as text for people: the current QLocale, always with the unit, an en dash for "not
// known".
//
// Units  GiB for memory (powers of 1024), GB/s for links (powers of 1000).

#pragma once

#include <QString>

#include <cstdint>
#include <limits>

namespace mr::ui {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// A number that is not known.
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// "1 h 04 min", "3 min 07 s", "12.4 s"
QString durationText(double seconds);
// "12.4 GiB", "310 MiB"
QString memoryText(double bytes);
// "1.24 GB/s", "310 MB/s"
QString linkText(double bytesPerSecond);
// "12.4 Wh", "1.07 kWh", and "850 J" where a watt-hour is too much
QString energyText(double joules);
QString numberText(double value, int digits);
// Four significant digits, with an exponent where that is shorter: learning rates.
QString compactText(double value);
QString countText(std::int64_t value);
// "12.5 %" from tenths of a percent.
QString tenthsText(std::int64_t tenths);
QString percentText(double percent);
// Date and time of milliseconds since the epoch, short form of the locale; empty for 0.
QString momentText(std::int64_t epochMs);

} // namespace mr::ui
