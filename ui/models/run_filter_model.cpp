#include "models/run_filter_model.h"

#include "models/run_table_model.h"

#include <millrace/run_status.h>

namespace mr::ui {

namespace {

const QString kTag = QStringLiteral("tag:");

RunFilterModel::States statesOf(RunStatus status)
{
    if (status == RunStatus::Done)
        return RunFilterModel::States::Done;
    if (status == RunStatus::Stopped || status == RunStatus::Paused)
        return RunFilterModel::States::Stopped;
    if (status == RunStatus::Failed || status == RunStatus::Lost)
        return RunFilterModel::States::Failed;
    return RunFilterModel::States::Active;
}

} // namespace

RunFilterModel::RunFilterModel(QObject* parent)
    : WordFilter(RunTableModel::SortRole, RunTableModel::SearchRole, parent)
{
}

void RunFilterModel::setStates(States states)
{
    m_states = states;
    invalidateFilter();
}

bool RunFilterModel::filterAcceptsRow(int row, const QModelIndex& parent) const
{
    const QModelIndex cell = sourceModel()->index(row, 0, parent);
    if (m_states != States::All &&
        statesOf(static_cast<RunStatus>(cell.data(RunTableModel::StatusRole).toInt())) != m_states)
        return false;
    return WordFilter::filterAcceptsRow(row, parent);
}

bool RunFilterModel::hasWord(const QModelIndex& cell, const QString& word) const
{
    if (!word.startsWith(kTag))
        return WordFilter::hasWord(cell, word);
    return cell.data(RunTableModel::TagsRole)
        .toStringList()
        .contains(word.mid(kTag.size()), Qt::CaseInsensitive);
}

} // namespace mr::ui
