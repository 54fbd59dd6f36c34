// WordFilter: rows of a table in which all words of a text occur, sorted by a value.
//
// The text that is searched is in column 0. A cell without a value sorts last in either order.

#pragma once

#include <QSortFilterProxyModel>
#include <QStringList>

namespace mr::ui {

class WordFilter : public QSortFilterProxyModel
{
    Q_OBJECT

public:
    // Roles of the source: values that are sorted, and the text that is searched.
    WordFilter(int sortRole, int searchRole, QObject* parent = nullptr);

    void setText(const QString& text);

protected:
    bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;
    virtual bool hasWord(const QModelIndex& cell, const QString& word) const;

private:
    const int m_searchRole;
    QStringList m_words;
};

} // namespace mr::ui
