#include "models/step_table_model.h"

#include "text/stall_words.h"
#include "text/units.h"

#include <cmath>

namespace mr::ui {

int StepTableModel::rows() const
{
    return static_cast<int>(m_steps.size());
}

bool StepTableModel::isNumber(int column) const
{
    return column >= Step;
}

double StepTableModel::value(const StepRow& row, int column) const
{
    switch (column) {
    case Step:
        return static_cast<double>(row.step);
    case Loss:
        return row.loss;
    case LearningRate:
        return row.learningRate;
    case GradNorm:
        return row.gradNorm;
    case TokensPerSecond:
        return row.wallUs > 0
                   ? static_cast<double>(row.tokens) / static_cast<double>(row.wallUs) * 1e6
                   : std::nan("");
    case Wall:
        return static_cast<double>(row.wallUs) / 1000.0;
    case Compute:
        return static_cast<double>(row.computeUs) / 1000.0;
    default:
        return static_cast<double>(row.stallUs[static_cast<std::size_t>(column - FirstCause)]) /
               1000.0;
    }
}

QVariant StepTableModel::cell(int row, int column, int role) const
{
    if (role != Qt::DisplayRole && role != ValueRole)
        return {};
    const double number = value(m_steps[static_cast<std::size_t>(row)], column);
    if (role == ValueRole)
        return number;
    switch (column) {
    case Step:
    case TokensPerSecond:
        return numberText(number, 0);
    case Loss:
        return numberText(number, 4);
    case LearningRate:
    case GradNorm:
        return compactText(number);
    default:
        return numberText(number, 3);
    }
}

QString StepTableModel::title(int column) const
{
    switch (column) {
    case Step:
        return tr("Step");
    case Loss:
        return tr("Loss");
    case LearningRate:
        return tr("Learning rate");
    case GradNorm:
        return tr("Gradient norm");
    case TokensPerSecond:
        return tr("Tokens/s");
    case Wall:
        return tr("Time (ms)");
    default:
        return tr("%1 (ms)", "where time went")
            .arg(StallWords::name(static_cast<std::size_t>(column - Compute)));
    }
}

void StepTableModel::setSteps(const StepSeries& steps, bool continued)
{
    if (!continued || steps.size() < m_steps.size()) {
        beginResetModel();
        m_steps = steps;
        endResetModel();
        return;
    }
    if (steps.size() == m_steps.size())
        return;
    beginInsertRows({}, rowCount(), static_cast<int>(steps.size()) - 1);
    m_steps = steps;
    endInsertRows();
}

} // namespace mr::ui
