// StallStrip: one bar per step, as high as the step was long; compute below, on top of it the
// waiting, in the colour of the cause that took longest.
//
// Zoomed out, one pixel column shows the worst of its steps. Painted by hand: no library draws it.
//
// Threads    GUI.
// Ownership  Shares the steps it was given.

#pragma once

#include "math/stall_bars.h"

#include <QPixmap>
#include <QString>
#include <QWidget>

#include <vector>

namespace mr::ui {

class StallStrip final : public QWidget
{
    Q_OBJECT

public:
    explicit StallStrip(QWidget* parent = nullptr);

    void setSteps(StepSeries steps);
    void setPlannedStepMs(double ms); // 0: no forecast
    void setRange(double lower, double upper);
    void setCursor(double step); // NaN: none

    std::size_t barCount() const { return m_bars.size(); }
    QString readout() const; // at the cursor
    QString summary() const;
    QByteArray csv() const;
    // All causes of one step with their time and share, as HTML.
    static QString toolTipFor(const StepRow& row);

    QSize sizeHint() const override;

signals:
    void rangePicked(double lower, double upper);
    void allPicked();
    void cursorMoved(double step);
    void readoutChanged(const QString& text);

protected:
    bool event(QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;

private:
    QRectF plotArea() const;
    double stepAt(double x) const;
    double pixelOf(double step) const;
    const StepRow* rowAt(double step) const;
    void zoom(double factor, double around);
    void invalidate();
    void paintStatic();
    void paintAxis(QPainter& painter, const QRectF& area);
    void paintBars(QPainter& painter, const QRectF& area);
    void paintOverlay(QPainter& painter);

    StepSeries m_steps;
    std::vector<StallBar> m_bars;
    QPixmap m_static; // axis and bars; null when it has to be painted again
    double m_plannedMs = 0.0;
    double m_scaleUs = 1.0;
    double m_lower = 0.0;
    double m_upper = 1.0;
    double m_cursor;
    double m_dragFrom; // pixel; NaN: no drag
    double m_dragTo;
};

} // namespace mr::ui
