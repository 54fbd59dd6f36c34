#include "pages/close_question.h"

#include <QPushButton>

namespace mr::ui {

CloseQuestion::CloseQuestion(bool hasTray, const QString& waiting, QWidget* parent)
    : QMessageBox(parent)
{
    setObjectName(QStringLiteral("closeQuestion"));
    setAttribute(Qt::WA_DeleteOnClose);
    setIcon(QMessageBox::Question);
    setWindowTitle(QStringLiteral("Millrace"));
    setText(tr("A run is active."));
    QString text =
        hasTray
            ? tr("It can go on without the window; the tray shows how far it is. Or it is "
                 "saved now and can be resumed from there; the window closes when that is done.")
            : tr("It can go on with the window minimised. Or it is saved now and can be "
                 "resumed from there; the window closes when that is done.");
    if (!waiting.isEmpty())
        text +=
            QLatin1Char(' ') +
            tr("“%1” waits for it to end. If the run is stopped, it is not started.").arg(waiting);
    setInformativeText(text);
    auto* keep = addButton(
        hasTray ? tr("Keep training in the tray") : tr("Keep training, minimised"), AcceptRole);
    auto* save = addButton(tr("Save and stop"), DestructiveRole);
    auto* cancel = addButton(tr("Cancel"), RejectRole);
    keep->setObjectName(QStringLiteral("keepTraining"));
    save->setObjectName(QStringLiteral("saveAndStop"));
    setDefaultButton(keep);
    setEscapeButton(cancel);
    connect(this, &QMessageBox::buttonClicked, this, [this, keep, save](QAbstractButton* clicked) {
        emit answered(clicked == keep   ? Answer::KeepTraining
                      : clicked == save ? Answer::SaveAndStop
                                        : Answer::Cancel);
    });
}

} // namespace mr::ui
