#include "models/run_filter_model.h"

#include "models/run_table_model.h"

#include <millrace/run_status.h>

#include <algorithm>

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
    : QSortFilterProxyModel(parent)
{
    setSortRole(RunTableModel::SortRole);
    setDynamicSortFilter(true);
}

void RunFilterModel::setText(const QString& text)
{
    m_words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    invalidateFilter();
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
    const QString text = cell.data(RunTableModel::SearchRole).toString();
    const QStringList tags = cell.data(RunTableModel::TagsRole).toStringList();
    return std::all_of(m_words.begin(), m_words.end(), [&](const QString& word) {
        return word.startsWith(kTag) ? tags.contains(word.mid(kTag.size()), Qt::CaseInsensitive)
                                     : text.contains(word, Qt::CaseInsensitive);
    });
}

bool RunFilterModel::lessThan(const QModelIndex& left, const QModelIndex& right) const
{
    const QVariant a = left.data(RunTableModel::SortRole);
    const QVariant b = right.data(RunTableModel::SortRole);
    if (a.isValid() && b.isValid()) {
        if (a.userType() == QMetaType::QString)
            return QString::localeAwareCompare(a.toString(), b.toString()) < 0;
        return a.toDouble() < b.toDouble();
    }
    if (a.isValid() == b.isValid())
        return false;
    return sortOrder() == Qt::AscendingOrder ? a.isValid() : b.isValid();
}

} // namespace mr::ui
