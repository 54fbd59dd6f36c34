// The words for what the checks of a dataset find.
//
// Threads  Pure.

#pragma once

#include <millrace/data_checks.h>

#include <QCoreApplication>
#include <QString>

namespace mr::ui {

struct RowCheckWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::RowCheckWords)

public:
    // "Repeat an earlier row"
    static QString name(RowCheck check);
    static QString help(RowCheck check);
    // CheckedRow::why; a reason that has no translation stays in English.
    static QString why(std::string_view reason);
};

} // namespace mr::ui
