// TableModel: base of the window's tables: rows and columns without a tree, numbers to the right.
//
// Threads  GUI.

#pragma once

#include <QAbstractTableModel>

namespace mr::ui {

class TableModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    // The number behind a cell, for sorting and tests; DisplayRole is text for people.
    enum Role { ValueRole = Qt::UserRole };

    int rowCount(const QModelIndex& parent = {}) const final;
    int columnCount(const QModelIndex& parent = {}) const final;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const final;
    QVariant headerData(
        int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const final;

protected:
    TableModel(int columns, QObject* parent);

    virtual int rows() const = 0;
    // Any role but that of alignment. The cell exists.
    virtual QVariant cell(int row, int column, int role) const = 0;
    virtual QString title(int column) const = 0;
    virtual QString titleTip(int) const { return {}; }
    virtual bool isNumber(int column) const = 0;

private:
    QVariant alignment(int column) const;

    int m_columns;
};

} // namespace mr::ui
