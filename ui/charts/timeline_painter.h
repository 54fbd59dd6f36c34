// Paints a step's timeline: ruler, lanes, bars, the arrows from waits to the tasks they waited for.
// No line is wider than one device pixel, and bars narrower than one share it.
//
// Threads    GUI.
// Ownership  Borrows everything for as long as it paints.

#pragma once

#include "math/timeline_layout.h"
#include "text/theme_colors.h"

#include <QFontMetricsF>
#include <QRectF>

#include <string>
#include <vector>

class QPainter;

namespace mr::ui {

// Where rows lie, in logical pixels; heights depend on the font only.
struct TimelineGeometry {
    QRectF plot; // right of the lanes' names, below the ruler
    std::vector<QRectF> rows;
    double height = 0.0; // ruler and all rows

    static TimelineGeometry make(
        const std::vector<TimelineRow>& rows, double width, const QFontMetricsF& metrics);
    double xOf(double ns, TimeRange range) const;
    double nsAt(double x, TimeRange range) const;
    // -1: between rows.
    int rowAt(double y) const;
};

struct TimelinePicture {
    const StepTimeline& timeline;
    const std::vector<std::string>& groups; // names of layers, by group
    const std::vector<TimelineRow>& rows;
    const std::vector<std::uint32_t>& rowOf; // by span
    TimeRange range;
};

class TimelinePainter
{
public:
    TimelinePainter(QPainter& painter, const TimelinePicture& picture,
        const TimelineGeometry& geometry, const QPalette& palette);

    // Everything but the frame of the selected span.
    void paint();
    // A frame around the span; for a wait, also its arrow and a frame around the task waited for.
    void paintSelected(int span);

private:
    void paintRuler();
    void paintLanes();
    void paintRow(std::size_t row);
    void paintWait(const QRectF& box, const TimelineSpan& span);
    void paintText(const QRectF& box, const TimelineSpan& span, const QColor& color);
    void paintArrows();
    void paintArrow(const TimelineSpan& wait);
    void frame(int span, const QColor& color);
    QRectF boxOf(std::size_t row, const TimelineBar& bar) const;
    double snapped(double value) const; // to device pixels

    QPainter& m_painter;
    const TimelinePicture& m_picture;
    const TimelineGeometry& m_geometry;
    const QPalette& m_palette;
    const ThemeColors& m_colors;
    const QFontMetricsF m_metrics;
    const double m_ratio; // device pixels of a logical one
};

} // namespace mr::ui
