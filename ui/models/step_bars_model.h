// The mean step of two runs as two bars on one scale of time: the faster one is shorter.
//
// Each bar is a stall ledger divided by its steps; its parts add up to the mean step.
//
// Threads  GUI.
// Units    Milliseconds.

#pragma once

#include "math/stall_bars.h"

#include <QAbstractTableModel>
#include <QByteArray>
#include <QString>

#include <array>

namespace mr::ui {

class StepBarsModel final : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { Name, Updates, Step, Picture, ColumnCount };
    static constexpr int kRuns = 2;

    struct Run {
        QString name;
        QString updates;     // exact or stale
        LedgerTotals ledger; // without steps: no bar
    };

    using QAbstractTableModel::QAbstractTableModel;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    void setRuns(const Run& first, const Run& second);
    QByteArray csv() const;

private:
    double partMs(const Run& run, std::size_t part) const;
    double stepMs(const Run& run) const;
    QString text(const Run& run, int column) const;
    QVariant share(const Run& run) const;
    QString shares(const Run& run) const;

    std::array<Run, kRuns> m_runs;
};

} // namespace mr::ui
