// The steps of one run as a table: one row per optimizer step, oldest first.
//
// Holds the charts' data for reading one number exactly, for the keyboard and for screen readers.

#pragma once

#include "math/step_series.h"
#include "models/table_model.h"

namespace mr::ui {

class StepTableModel final : public TableModel
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
    // ValueRole: the number itself, for sorting; DisplayRole is text for people.

    explicit StepTableModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    // `continued`: the rows that are shown already are still true, and only new ones are inserted.
    void setSteps(const StepSeries& steps, bool continued);

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    double value(const StepRow& row, int column) const;

    StepSeries m_steps;
};

} // namespace mr::ui
