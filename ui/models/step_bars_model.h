// The mean step of two runs as two bars on one scale of time: the faster one is shorter.
//
// Each bar is a stall ledger divided by its steps; its parts add up to the mean step.
//
// Threads  GUI.
// Units    Milliseconds.

#pragma once

#include "math/stall_bars.h"
#include "models/table_model.h"

#include <QByteArray>
#include <QString>

#include <array>

namespace mr::ui {

class StepBarsModel final : public TableModel
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

    explicit StepBarsModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    void setRuns(const Run& first, const Run& second);
    QByteArray csv() const;

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    double partMs(const Run& run, std::size_t part) const;
    double stepMs(const Run& run) const;
    QString text(const Run& run, int column) const;
    QVariant share(const Run& run) const;
    QString shares(const Run& run) const;

    std::array<Run, kRuns> m_runs;
};

} // namespace mr::ui
