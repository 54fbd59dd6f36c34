// Asks whether a run goes on when its window is closed. Nothing is decided for the user: the run
// neither ends by surprise nor goes on unseen.
//
// Threads  GUI.

#pragma once

#include <QMessageBox>

namespace mr::ui {

class CloseQuestion final : public QMessageBox
{
    Q_OBJECT

public:
    enum class Answer { KeepTraining, SaveAndStop, Cancel };
    Q_ENUM(Answer)

    // Without a tray the window can only be made small: a program that nobody can reach is none.
    // `waiting` is the run that follows the active one; empty: none does.
    CloseQuestion(bool hasTray, const QString& waiting, QWidget* parent);

signals:
    void answered(mr::ui::CloseQuestion::Answer answer);
};

} // namespace mr::ui
