// The header of QCustomPlot uses foreach.
#undef QT_NO_FOREACH

#include "charts/line_chart.h"

#include "charts/chart_accessible.h"
#include "charts/line_chart_parts.h"
#include "text/theme_colors.h"
#include "text/units.h"

#include <QLocale>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace mr::ui {

namespace {

constexpr int kTimeTicks = 4;    // labels of hours are wide
constexpr int kCompactLines = 6; // least height of a small chart, in lines of text

QVector<double> qvector(const std::vector<double>& values)
{
    return {values.begin(), values.end()};
}

} // namespace

LineChart::LineChart(const QString& name, QWidget* parent)
    : QWidget(parent)
    , m_name(name)
    , m_plot(new Plot(*this))
    , m_cursor(kNowhere)
{
    ChartAccessible::install();
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(name);
    setMinimumHeight(fontMetrics().height() * 8);
    m_plot->setFocusPolicy(Qt::NoFocus);
    // QCustomPlot sets it; the page scrolls by the wheel that the plot ignores.
    m_plot->setAttribute(Qt::WA_NoMousePropagation, false);
    m_plot->setLocale(QLocale());
    m_plot->setContextMenuPolicy(Qt::NoContextMenu);
    m_plot->setNoAntialiasingOnDrag(true);
    m_plot->setPlottingHints(QCP::phFastPolylines | QCP::phCacheLabels);
    QCPAxisRect* area = m_plot->axisRect();
    area->setAutoMargins(QCP::msBottom);
    area->setMargins(QMargins(leftMargin(*this), 6, kRightMargin, 0));
    for (QCPAxis* axis : {m_plot->xAxis, m_plot->yAxis}) {
        axis->setSubTicks(false);
        axis->setTickLength(0, 3);
    }
    m_plot->xAxis->setNumberFormat(QStringLiteral("f"));
    m_plot->xAxis->setNumberPrecision(0);
    m_plot->yAxis->ticker()->setTickCount(4);
    m_gaps = m_plot->addGraph();
    m_gaps->setLineStyle(QCPGraph::lsNone);
    m_line = new QCPItemStraightLine(m_plot);
    m_line->setLayer(QStringLiteral("overlay"));
    m_line->setVisible(false);

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(1, 1, 1, 1);
    layout->addWidget(m_plot);
    wireMouse();
    applyPalette();
}

LineChart::~LineChart() = default;

int LineChart::leftMargin(const QWidget& widget)
{
    return widget.fontMetrics().horizontalAdvance(QStringLiteral("0000.00")) + 8;
}

QSize LineChart::sizeHint() const
{
    return {420, fontMetrics().height() * 11};
}

int LineChart::addSeries(Series series)
{
    Drawn drawn;
    drawn.series = std::move(series);
    drawn.graph = m_plot->addGraph();
    drawn.graph->setAdaptiveSampling(true);
    if (drawn.series.style == Style::Markers)
        drawn.graph->setLineStyle(QCPGraph::lsNone);
    m_series.push_back(std::move(drawn));
    applyPalette();
    return static_cast<int>(m_series.size()) - 1;
}

void LineChart::renameSeries(int series, const QString& name)
{
    m_series[static_cast<std::size_t>(series)].series.name = name;
}

void LineChart::setXAxis(const XAxis& axis)
{
    m_axis = axis;
    m_plot->xAxis->setTicker(axis.kind == XAxis::Kind::Time
                                 ? QSharedPointer<QCPAxisTicker>(new QCPAxisTickerTime)
                                 : QSharedPointer<QCPAxisTicker>(new QCPAxisTicker));
    showTicks();
}

// A range of minutes needs no hours in its labels.
void LineChart::showTicks()
{
    const auto ticker = m_plot->xAxis->ticker().dynamicCast<QCPAxisTickerTime>();
    if (!ticker)
        return;
    ticker->setTimeFormat(XAxis::timeFormat(m_upper));
    ticker->setFieldWidth(QCPAxisTickerTime::tuHours, 1);
    ticker->setTickCount(kTimeTicks);
}

void LineChart::setLeastTop(double value)
{
    m_leastTop = value;
}

void LineChart::setCompact()
{
    setMinimumHeight(fontMetrics().height() * kCompactLines);
}

void LineChart::setZeroBased(bool on)
{
    m_zeroBased = on;
}

void LineChart::append(int series, std::span<const double> x, std::span<const double> y)
{
    Column& points = m_series[static_cast<std::size_t>(series)].points;
    points.x.insert(points.x.end(), x.begin(), x.end());
    points.y.insert(points.y.end(), y.begin(), y.end());
}

void LineChart::replace(int series, Column points)
{
    m_series[static_cast<std::size_t>(series)].points = std::move(points);
}

void LineChart::clearPoints()
{
    for (Drawn& drawn : m_series)
        drawn.points.clear();
}

void LineChart::refresh()
{
    // Width of this widget, not of the axis rectangle: that one is laid out only when it is drawn.
    const int area = width() - leftMargin(*this) - kRightMargin;
    const int columns = static_cast<int>(std::max(area, 1) * devicePixelRatioF());
    const Scale scale = m_log ? Scale::Log : Scale::Linear;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    QVector<double> gaps;
    m_hidden = 0;
    for (Drawn& drawn : m_series) {
        const DrawnPoints points = decimate(drawn.points, m_lower, m_upper, columns, scale);
        drawn.vertices = points.x.size();
        drawn.graph->setData(qvector(points.x), qvector(points.y), true);
        m_hidden += points.hidden;
        if (m_axis.kind == XAxis::Kind::Step)
            gaps += qvector(points.gaps);
        if (points.low <= points.high) {
            low = std::min(low, points.low);
            high = std::max(high, points.high);
        }
    }
    fitVertical(low, high);
    std::sort(gaps.begin(), gaps.end());
    m_gaps->setData(gaps, QVector<double>(gaps.size(), m_plot->yAxis->range().lower), true);
    m_plot->xAxis->setRange(m_lower, m_upper);
    showTicks();
    m_plot->replot(QCustomPlot::rpQueuedReplot);
    setAccessibleDescription(summary());
    emit readoutChanged(readout());
}

void LineChart::fitVertical(double low, double high)
{
    // Thousands are read more easily in full; rates of 0.00002 are not.
    const bool whole = high >= 1000.0 && high < 1e6;
    m_plot->yAxis->setNumberFormat(whole ? QStringLiteral("f") : QStringLiteral("gb"));
    m_plot->yAxis->setNumberPrecision(whole ? 0 : 4);
    if (low > high) {
        low = m_log ? 0.1 : 0.0;
        high = 1.0;
    }
    if (m_log) {
        const double room = std::max(std::pow(high / low, 0.05), 1.02);
        m_plot->yAxis->setRange(low / room, high * room);
        return;
    }
    if (m_zeroBased)
        low = std::min(low, 0.0);
    high = std::max(high, m_leastTop);
    const double span = high > low ? high - low : std::max(std::abs(high) * 0.1, 1e-12);
    m_plot->yAxis->setRange(m_zeroBased ? low : low - 0.05 * span, high + 0.06 * span);
}

void LineChart::setLogScale(bool on)
{
    if (on == m_log)
        return;
    m_log = on;
    QCPAxis* axis = m_plot->yAxis;
    axis->setScaleType(on ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
    // A loss rarely spans a decade: labels at 1, 2, 5 and not at powers of ten only.
    axis->ticker()->setTickStepStrategy(QCPAxisTicker::tssReadability);
    refresh();
    emit logScaleChanged(on);
}

void LineChart::setRange(double lower, double upper)
{
    m_lower = lower;
    m_upper = upper;
    refresh();
}

void LineChart::setCursor(double x)
{
    m_cursor = x;
    m_line->setVisible(!std::isnan(x));
    if (!std::isnan(x)) {
        m_line->point1->setCoords(x, 0.0);
        m_line->point1->setTypeY(QCPItemPosition::ptAxisRectRatio);
        m_line->point2->setTypeY(QCPItemPosition::ptAxisRectRatio);
        m_line->point2->setCoords(x, 1.0);
    }
    m_plot->layer(QStringLiteral("overlay"))->replot();
    emit readoutChanged(readout());
}

std::size_t LineChart::vertexCount(int series) const
{
    return m_series[static_cast<std::size_t>(series)].vertices;
}

qsizetype LineChart::gapMarks() const
{
    return m_gaps->dataCount();
}

void LineChart::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    refresh();
}

void LineChart::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
        applyPalette();
        refresh();
    }
}

void LineChart::focusInEvent(QFocusEvent* event)
{
    QWidget::focusInEvent(event);
    applyPalette();
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void LineChart::focusOutEvent(QFocusEvent* event)
{
    QWidget::focusOutEvent(event);
    applyPalette();
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void LineChart::applyPalette()
{
    const ThemeColors& colors = themeColors(palette());
    m_plot->setBackground(colors.card);
    const QPen axisPen(hasFocus() ? palette().color(QPalette::Highlight) : colors.border, 0);
    for (QCPAxis* axis : {m_plot->xAxis, m_plot->yAxis}) {
        axis->setBasePen(axisPen);
        axis->setTickPen(QPen(colors.border, 0));
        axis->setTickLabelColor(colors.muted);
        axis->setTickLabelFont(font());
        axis->grid()->setPen(QPen(colors.grid, 0));
        axis->grid()->setZeroLinePen(QPen(colors.grid, 0));
    }
    m_plot->xAxis->grid()->setVisible(false);
    m_line->setPen(QPen(colors.muted, 0));
    m_gaps->setScatterStyle(
        QCPScatterStyle(QCPScatterStyle::ssCross, QPen(colors.error, 0), QBrush(Qt::NoBrush), 7));
    QPen box(colors.accent, 0);
    m_plot->selectionRect()->setPen(box);
    QColor inside = colors.accent;
    inside.setAlphaF(0.15F);
    m_plot->selectionRect()->setBrush(inside);
    for (Drawn& drawn : m_series) {
        QColor color = drawn.series.color(palette());
        if (drawn.series.style == Style::Markers)
            drawn.graph->setScatterStyle(
                QCPScatterStyle(QCPScatterStyle::ssDisc, QPen(color, 0), color, 7));
        drawn.graph->setPen(QPen(color, 0));
    }
}

} // namespace mr::ui
