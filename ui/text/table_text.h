// Rows of a table as text for the clipboard, with the headings.
//
// Tab-separated: as the table shows them, for spreadsheets of the same language. Comma-separated:
// quoted where it must be (RFC 4180).

#pragma once

#include <QModelIndexList>
#include <QString>

class QAbstractItemModel;

namespace mr::ui {

QString tableText(const QAbstractItemModel& model, const QModelIndexList& rows, QChar separator);

} // namespace mr::ui
