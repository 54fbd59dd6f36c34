// The plot inside a LineChart and its drawn series. For LineChart's own files only.

#pragma once

// The header of QCustomPlot uses foreach.
#undef QT_NO_FOREACH

#include "charts/line_chart.h"

#include <qcustomplot.h>

#include <limits>

namespace mr::ui {

inline constexpr double kNowhere = std::numeric_limits<double>::quiet_NaN();

// QCustomPlot takes every wheel event; inside a page that scrolls, the plain wheel is the page's.
class LineChart::Plot final : public QCustomPlot
{
public:
    explicit Plot(LineChart& owner)
        : QCustomPlot(&owner)
        , m_owner(owner)
    {
    }

protected:
    void wheelEvent(QWheelEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    LineChart& m_owner;
};

struct LineChart::Drawn {
    Series series;
    Column points;
    QCPGraph* graph = nullptr; // owned by the plot
    std::size_t vertices = 0;
};

} // namespace mr::ui
