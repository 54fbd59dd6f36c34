// The steps of one run as a table: one row per optimizer step, oldest first.
//
// What the charts show, for reading one number exactly, for the keyboard and for screen readers.

#pragma once

#include "math/step_series.h"

#include <QAbstractTableModel>

namespace mr::ui {

class StepTableModel final : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column {
        Step,
        Loss,
        LearningRate,
        GradNorm,
        TokensPerSecond,
        Wall,
        Compute,
        FirstCause, // one column for each StallCause
        ColumnCount = FirstCause + static_cast<int>(kStallCauses)
    };
    // The number itself, for sorting; DisplayRole is text for people.
    enum Role { ValueRole = Qt::UserRole };

    using QAbstractTableModel::QAbstractTableModel;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    // `continued`: the rows that are shown already are still true, and only new ones are inserted.
    void setSteps(const StepSeries& steps, bool continued);

private:
    double value(const StepRow& row, int column) const;

    StepSeries m_steps;
};

} // namespace mr::ui
