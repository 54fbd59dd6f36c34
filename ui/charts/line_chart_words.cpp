// Words and numbers of a LineChart: at the cursor, to screen readers, as a file.

#include "charts/line_chart_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

// The first point within half a `grid` of `x`, -1 if there is none.
std::ptrdiff_t pointAt(const Column& column, double x, double grid)
{
    const auto found = std::lower_bound(column.x.begin(), column.x.end(), x - 0.5 * grid);
    if (found == column.x.end() || *found > x + 0.5 * grid)
        return -1;
    return found - column.x.begin();
}

} // namespace

QString LineChart::readout() const
{
    QStringList parts;
    double at = m_cursor;
    if (!std::isnan(at))
        parts << m_axis.position(at);
    for (const Drawn& drawn : m_series) {
        const Column& points = drawn.points;
        const auto index =
            std::isnan(at) ? std::ssize(points.y) - 1 : pointAt(points, at, m_axis.grid);
        if (index >= 0)
            parts << tr("%1 %2", "series name, value")
                         .arg(drawn.series.name,
                             drawn.series.text(points.y[static_cast<std::size_t>(index)]));
    }
    if (m_hidden > 0)
        parts << tr("%n value(s) not above zero cannot be shown on a log axis", nullptr,
            static_cast<int>(m_hidden));
    return parts.join(QStringLiteral(" · "));
}

QString LineChart::summary() const
{
    QStringList sentences;
    for (const Drawn& drawn : m_series) {
        const Column& points = drawn.points;
        std::ptrdiff_t low = -1;
        for (std::ptrdiff_t i = 0; i < std::ssize(points.y); ++i) {
            const double y = points.y[static_cast<std::size_t>(i)];
            if (std::isfinite(y) && (low < 0 || y < points.y[static_cast<std::size_t>(low)]))
                low = i;
        }
        if (low < 0)
            continue;
        const auto lowest = static_cast<std::size_t>(low);
        sentences << m_axis.summary(drawn.series.name, std::ssize(points.y),
            drawn.series.text(points.y.back()), drawn.series.text(points.y[lowest]),
            points.x[lowest]);
    }
    return sentences.isEmpty() ? tr("No points yet.") : sentences.join(QLatin1Char(' '));
}

QByteArray LineChart::csv() const
{
    QByteArray text = m_axis.column();
    for (const Drawn& drawn : m_series)
        text += ',' + drawn.series.column.toLatin1();
    text += '\n';
    std::vector<std::size_t> next(m_series.size(), 0);
    while (true) {
        double x = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < m_series.size(); ++i) {
            if (next[i] < m_series[i].points.size())
                x = std::min(x, m_series[i].points.x[next[i]]);
        }
        if (std::isinf(x))
            return text;
        text += QByteArray::number(x, 'f', 0);
        for (std::size_t i = 0; i < m_series.size(); ++i) {
            text += ',';
            const Column& points = m_series[i].points;
            if (next[i] < points.size() && points.x[next[i]] == x)
                text += QByteArray::number(points.y[next[i]++], 'g', 9);
        }
        text += '\n';
    }
}

} // namespace mr::ui
