// TableWindow: a table in a window of its own, for what a chart shows as a picture.
//
// Threads    GUI.
// Ownership  A window belongs to `parent`, is not modal, and deletes itself when it is closed.

#pragma once

#include <QByteArray>
#include <QString>

class QAbstractItemModel;
class QDialog;
class QTableView;
class QWidget;

namespace mr::ui {

struct TableWindow {
    // Borrows the model and follows it. `name` is what a screen reader says of the table.
    static QDialog* show(
        QWidget& parent, QAbstractItemModel& model, const QString& title, const QString& name);
    // The numbers of a chart as they are now; comma-separated, the first line has the titles.
    static void showCsv(QWidget& parent, const QByteArray& csv, const QString& title);
    // Copies the chosen rows, by Ctrl+C and by the context menu.
    static void addCopy(QTableView* table);
};

} // namespace mr::ui
