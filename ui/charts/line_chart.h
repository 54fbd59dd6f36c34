// LineChart: series over steps or over time, drawn by QCustomPlot from data that is already
// decimated.
//
// Why not hand all points to QCustomPlot: the vertices then depend on its own sampling, and a spike
// of one step must survive it. Lines are one device pixel wide: anything wider takes up to some
// hundred times as long to stroke.
//
// Threads    GUI.
// Ownership  Owns its points.
// Units      x as the x axis says; y as the series' format says.

#pragma once

#include "charts/x_axis.h"
#include "math/series_math.h"

#include <QColor>
#include <QString>
#include <QWidget>

#include <functional>
#include <span>
#include <vector>

class QCPGraph;
class QCPItemStraightLine;

namespace mr::ui {

class LineChart final : public QWidget
{
    Q_OBJECT

public:
    enum class Style { Line, Faint, Markers };

    struct Series {
        QString name;   // in the readout
        QString column; // name in the CSV file: ASCII, with the unit
        Style style = Style::Line;
        std::function<QColor(const QPalette&)> color;
        std::function<QString(double)> text; // one value with its unit
    };

    explicit LineChart(const QString& name, QWidget* parent = nullptr);
    ~LineChart() override;

    int addSeries(Series series);
    void renameSeries(int series, const QString& name); // in the readout
    // Steps, until this says otherwise. Gaps in a line over time are not marked: a second that was
    // not measured is no event.
    void setXAxis(const XAxis& axis);
    const XAxis& xAxis() const { return m_axis; }
    void setZeroBased(bool on);     // the y axis starts at zero
    void setLeastTop(double value); // and reaches this at least
    void setCompact();              // one of several small ones
    void append(int series, std::span<const double> x, std::span<const double> y);
    void replace(int series, Column points);
    void clearPoints();
    // After points changed: decimates, fits the y axis, repaints (once, however often it is
    // called).
    void refresh();

    void setLogScale(bool on);
    bool logScale() const { return m_log; }
    void setRange(double lower, double upper);
    // The x under the cursor in all charts; NaN: none.
    void setCursor(double x);

    std::size_t vertexCount(int series) const; // handed to the painter, for the last refresh()
    qsizetype gapMarks() const;                // shown
    QString readout() const;                   // at the cursor, else the last values
    QString summary() const;                   // for screen readers
    QByteArray csv() const;
    // Left edge and right edge of the plotted area, so that other strips can stand exactly below.
    static int leftMargin(const QWidget& widget);
    static constexpr int kRightMargin = 10;

    QSize sizeHint() const override;

signals:
    void rangePicked(double lower, double upper);
    void allPicked();
    void cursorMoved(double x); // NaN: left
    void readoutChanged(const QString& text);
    void logScaleChanged(bool on);

protected:
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    class Plot;
    struct Drawn;

    void wireMouse();
    void applyPalette();
    void fitVertical(double low, double high);
    void zoom(double factor, double around);
    void moveCursor(int points);
    void showTicks();
    double positionAt(int pixel) const;

    QString m_name;
    XAxis m_axis;
    Plot* m_plot = nullptr;
    std::vector<Drawn> m_series;
    QCPGraph* m_gaps = nullptr;
    QCPItemStraightLine* m_line = nullptr;
    double m_lower = 0.0;
    double m_upper = 1.0;
    double m_cursor;
    double m_leastTop = 0.0;
    std::size_t m_hidden = 0;
    bool m_log = false;
    bool m_zeroBased = false;
};

} // namespace mr::ui
