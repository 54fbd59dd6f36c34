// The tasks and waits of one step as a table, by begin: what the timeline shows, for reading one
// number exactly, for the keyboard and for screen readers.

#pragma once

#include "models/step_timeline_ptr.h"

#include <QAbstractTableModel>
#include <QByteArray>

#include <string>
#include <vector>

namespace mr::ui {

class TimelineTableModel final : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { Lane, Task, Layer, Micro, Begin, Duration, Bytes, Rate, ColumnCount };
    // The number itself: nanoseconds, bytes, bytes per second; NaN where it has none.
    enum Role { ValueRole = Qt::UserRole };

    using QAbstractTableModel::QAbstractTableModel;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    void setTimeline(TimelinePtr timeline, std::vector<std::string> groups);
    // Names as the engine gives them, nanoseconds, bytes.
    QByteArray csv() const;

private:
    const TimelineSpan& spanAt(int row) const;
    QString text(const TimelineSpan& of, int column) const;

    TimelinePtr m_timeline;
    std::vector<std::string> m_groups;
};

} // namespace mr::ui
