// StepTimelineChart: the tasks of every lane in one step, one bar each; red where Compute waited,
// with an arrow to the task it waited for.
//
// Keys: + and - zoom, Left and Right pan, Home shows all, F the selected task; comma and full stop
// (or Ctrl with Left and Right) select the task before and after, Up and Down the one in the next
// lane, Return goes from a wait to its cause, Escape selects nothing, Page keys ask for another
// step. The wheel zooms with Ctrl, or once the chart has the focus, so a page can be scrolled.
//
// Threads    GUI.
// Ownership  Shares the timeline it was given.

#pragma once

#include "charts/timeline_painter.h"
#include "models/step_timeline_ptr.h"

#include <QPixmap>
#include <QPointF>
#include <QWidget>

#include <string>
#include <vector>

namespace mr::ui {

class StepTimelineChart final : public QWidget
{
    Q_OBJECT

public:
    explicit StepTimelineChart(QWidget* parent = nullptr);

    // `groups`: the names of layers, by group. Shows all of it, with nothing selected.
    void setTimeline(TimelinePtr timeline, std::vector<std::string> groups);
    const TimelinePtr& timeline() const { return m_timeline; }

    void setRange(TimeRange range);
    TimeRange range() const { return m_range; }
    TimeRange whole() const;
    void fit();
    void zoomBy(double factor); // around the selected task, or the middle

    void select(int span); // -1: nothing; brings it into view
    int selected() const { return m_selected; }
    // The selected task in words, or the step.
    QString readout() const;
    QString summary() const;
    QString toolTipFor(int span, int alsoHere) const; // as HTML
    const TimelineGeometry& geometryOfRows() const { return m_geometry; }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void readoutChanged(const QString& text);
    void selectionChanged(int span);
    void stepRequested(int by); // -1: the kept step before this one, 1: after

protected:
    bool event(QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;

private:
    TimelinePicture picture() const;
    void layOut();
    void invalidate();
    int spanUnder(const QPointF& position) const;
    bool selectionKey(int key, bool control);
    bool rangeKey(int key);
    void selectBeside(int by);
    void selectInLane(int by);
    void describe();

    TimelinePtr m_timeline;
    std::vector<std::string> m_groups;
    std::vector<TimelineRow> m_rows;
    std::vector<std::uint32_t> m_rowOf; // by span
    TimelineGeometry m_geometry;
    TimeRange m_range;
    int m_selected = -1;
    QPixmap m_static; // null when it has to be painted again
    QPointF m_dragFrom;
    TimeRange m_dragRange;
    bool m_pressed = false;
    bool m_dragged = false;
};

} // namespace mr::ui
