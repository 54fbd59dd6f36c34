// The figures of two runs beside each other, as a table: one row a figure.
//
// Threads  GUI.
// Units    ValueRole: seconds, milliseconds, bytes, as the row's text says.

#pragma once

#include "models/run_figures.h"

#include <QAbstractTableModel>
#include <QByteArray>

#include <array>

namespace mr::ui {

class ComparisonModel final : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Row {
        Policy,
        Updates,
        Steps,
        WallTime,
        MeanStep,
        Speed,
        Stalled,
        ToDevice,
        ToHost,
        PeakDevice,
        PeakHost,
        Loss,
        BestEval,
        RowCount
    };
    enum Column { What, First, Second, Change, ColumnCount };
    // The number itself; invalid where there is none. Of Change: second over first, or for Stalled
    // (percent) and losses second less first; what belongs to a whole run only if both have as many
    // steps.
    enum Role { ValueRole = Qt::UserRole };

    using QAbstractTableModel::QAbstractTableModel;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    // A run that has not begun has no steps and no name.
    void setRuns(const RunFigures& first, const RunFigures& second);
    QByteArray csv() const;

private:
    QString title(int row) const;
    QString explanation(int row) const;
    double value(int row, int column) const; // NaN: none
    QString runText(int row, const RunFigures& run, double value) const;
    QString changeText(int row) const;

    std::array<RunFigures, 2> m_runs{};
};

} // namespace mr::ui
