#include "text/format.h"

#include <QLocale>

namespace mr::ui {

QString Format::exactBytes(quint64 count)
{
    return tr("%1 bytes").arg(QLocale().toString(count));
}

QString Format::shortCount(qint64 value)
{
    const auto scaled = [value](double unit) {
        const double v = static_cast<double>(value) / unit;
        return QLocale().toString(v, 'f', v < 10 ? 2 : v < 100 ? 1 : 0);
    };
    if (value >= 1'000'000'000)
        return tr("%1 B", "billions").arg(scaled(1e9));
    if (value >= 1'000'000)
        return tr("%1 M", "millions").arg(scaled(1e6));
    if (value >= 10'000)
        return tr("%1 K", "thousands").arg(scaled(1e3));
    return QLocale().toString(value);
}

QString Format::milliseconds(double ms)
{
    const QLocale locale;
    if (ms >= 1000.0)
        return tr("%1 s").arg(locale.toString(ms / 1000.0, 'f', 2));
    return tr("%1 ms").arg(locale.toString(ms, 'f', ms < 10.0 ? 2 : ms < 100.0 ? 1 : 0));
}

} // namespace mr::ui
