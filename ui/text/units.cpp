#include "text/units.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>

#include <array>
#include <cmath>

namespace mr::ui {

namespace {

const QChar kEnDash(0x2013);
const QChar kNoBreakSpace(0xa0);

struct UnitWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::Units)
};

QString scaled(double value, double base, const std::array<const char*, 5>& units)
{
    if (!std::isfinite(value))
        return kEnDash;
    std::size_t unit = 0;
    while (std::abs(value) >= base && unit + 1 < units.size()) {
        value /= base;
        ++unit;
    }
    const int digits = unit == 0 || std::abs(value) >= 100.0 ? 0 : std::abs(value) >= 10.0 ? 1 : 2;
    return QLocale().toString(value, 'f', digits) + kNoBreakSpace + QLatin1String(units[unit]);
}

} // namespace

QString durationText(double seconds)
{
    if (!std::isfinite(seconds) || seconds < 0.0)
        return kEnDash;
    if (seconds < 59.5)
        return UnitWords::tr("%1 s").arg(QLocale().toString(seconds, 'f', seconds < 10.0 ? 1 : 0));
    const auto whole = static_cast<qint64>(std::llround(seconds));
    const qint64 hours = whole / 3600;
    const qint64 minutes = whole / 60 % 60;
    if (hours > 0)
        return UnitWords::tr("%1 h %2 min").arg(hours).arg(minutes, 2, 10, QLatin1Char('0'));
    return UnitWords::tr("%1 min %2 s").arg(minutes).arg(whole % 60, 2, 10, QLatin1Char('0'));
}

QString memoryText(double bytes)
{
    return scaled(bytes, 1024.0, {"B", "KiB", "MiB", "GiB", "TiB"});
}

QString linkText(double bytesPerSecond)
{
    return scaled(bytesPerSecond, 1000.0, {"B/s", "KB/s", "MB/s", "GB/s", "TB/s"});
}

QString energyText(double joules)
{
    constexpr double kJoulesPerWh = 3600.0;
    constexpr double kLeastWh = 0.5;
    if (joules < kLeastWh * kJoulesPerWh)
        return scaled(joules, kJoulesPerWh, {"J", "Wh", "Wh", "Wh", "Wh"});
    return scaled(joules / kJoulesPerWh, 1000.0, {"Wh", "kWh", "MWh", "GWh", "TWh"});
}

QString numberText(double value, int digits)
{
    return std::isfinite(value) ? QLocale().toString(value, 'f', digits) : QString(kEnDash);
}

QString compactText(double value)
{
    return std::isfinite(value) ? QLocale().toString(value, 'g', 4) : QString(kEnDash);
}

QString countText(std::int64_t value)
{
    return QLocale().toString(static_cast<qlonglong>(value));
}

QString tenthsText(std::int64_t tenths)
{
    return percentText(static_cast<double>(tenths) / 10.0);
}

QString percentText(double percent)
{
    if (!std::isfinite(percent))
        return kEnDash;
    return QLocale().toString(percent, 'f', 1) + kNoBreakSpace + QLatin1Char('%');
}

QString momentText(std::int64_t epochMs)
{
    if (epochMs == 0)
        return {};
    return QLocale().toString(QDateTime::fromMSecsSinceEpoch(epochMs), QLocale::ShortFormat);
}

} // namespace mr::ui
