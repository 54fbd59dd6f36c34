// The tasks and waits of one step as a table, by begin. It has the timeline's content, for exact
// numbers, for the keyboard and for screen readers.

#pragma once

#include "models/step_timeline_ptr.h"
#include "models/table_model.h"

#include <QByteArray>

#include <string>
#include <vector>

namespace mr::ui {

class TimelineTableModel final : public TableModel
{
    Q_OBJECT

public:
    enum Column { Lane, Task, Layer, Micro, Begin, Duration, Bytes, Rate, ColumnCount };
    // ValueRole: the number itself: nanoseconds, bytes, bytes per second; NaN where it has none.

    explicit TimelineTableModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    void setTimeline(TimelinePtr timeline, std::vector<std::string> groups);
    // Names as the engine gives them, nanoseconds, bytes.
    QByteArray csv() const;

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    const TimelineSpan& spanAt(int row) const;
    QString text(const TimelineSpan& of, int column) const;

    TimelinePtr m_timeline;
    std::vector<std::string> m_groups;
};

} // namespace mr::ui
