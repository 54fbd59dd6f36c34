// ReportDialog: a problem report, read before it is saved or copied. It holds no prompts and no
// answers unless they are ticked.
//
// Threads    GUI; the parts are collected by a worker.
// Ownership  Deletes itself when it is closed.

#pragma once

#include "bridge/ui_services.h"
#include "models/report_text.h"

#include <QDialog>

class QCheckBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace mr::ui {

class ReportDialog final : public QDialog
{
    Q_OBJECT

public:
    ReportDialog(const UiServices& services, QWidget* parent);

    QString text() const;                // the report to save
    QString saveTo(const QString& path); // a sentence if it fails; else empty

private:
    static ReportParts collect(const UiServices& services); // on a worker
    void showParts(const ReportParts& parts);
    void refresh();
    void save();

    ReportParts m_parts;
    QPlainTextEdit* m_text;
    QCheckBox* m_withTexts;
    QLabel* m_message;
    QPushButton* m_save;
    QPushButton* m_copy;
    bool m_isReady = false;
};

} // namespace mr::ui
