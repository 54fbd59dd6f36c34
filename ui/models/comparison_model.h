// The figures of two runs beside each other, as a table: one row a figure.
//
// Threads  GUI.
// Units    ValueRole: seconds, milliseconds, bytes, as the row's text says.

#pragma once

#include "models/run_figures.h"
#include "models/table_model.h"

#include <QByteArray>

#include <array>

namespace mr::ui {

class ComparisonModel final : public TableModel
{
    Q_OBJECT

public:
    enum Row {
        Policy,
        Trained,
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
    // ValueRole: the number itself; invalid where there is none. Change is second over first, or
    // for Stalled (percent) and losses second less first; for figures of a whole run only if both
    // have as many steps.

    explicit ComparisonModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    // A run that has not begun has no steps and no name.
    void setRuns(const RunFigures& first, const RunFigures& second);
    QByteArray csv() const;

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    QString rowTitle(int row) const;
    QString rowTip(int row) const;
    double value(int row, int column) const; // NaN: none
    QString runText(int row, const RunFigures& run, double value) const;
    QString changeText(int row) const;

    std::array<RunFigures, 2> m_runs{};
};

} // namespace mr::ui
