#include "models/word_filter.h"

#include <algorithm>

namespace mr::ui {

WordFilter::WordFilter(int sortRole, int searchRole, QObject* parent)
    : QSortFilterProxyModel(parent)
    , m_searchRole(searchRole)
{
    setSortRole(sortRole);
    setDynamicSortFilter(true);
}

void WordFilter::setText(const QString& text)
{
    m_words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    invalidateFilter();
}

bool WordFilter::filterAcceptsRow(int row, const QModelIndex& parent) const
{
    const QModelIndex cell = sourceModel()->index(row, 0, parent);
    return std::all_of(
        m_words.begin(), m_words.end(), [&](const QString& word) { return hasWord(cell, word); });
}

bool WordFilter::hasWord(const QModelIndex& cell, const QString& word) const
{
    return cell.data(m_searchRole).toString().contains(word, Qt::CaseInsensitive);
}

bool WordFilter::lessThan(const QModelIndex& left, const QModelIndex& right) const
{
    const QVariant a = left.data(sortRole());
    const QVariant b = right.data(sortRole());
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
