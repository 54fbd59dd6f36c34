// Reason for a pause, and the three ways on.
//
// Hidden while the run is not paused. Without buttons where the run is not this program's.
//
// Threads  GUI.

#pragma once

#include "models/run_snapshot.h"

#include <millrace/session.h>

#include <QFrame>
#include <QString>

class QLabel;
class QPushButton;

namespace mr::ui {

class MessageLabel;

class PausePanel final : public QFrame
{
    Q_OBJECT

public:
    explicit PausePanel(QWidget* parent = nullptr);

    void setSnapshot(const RunSnapshotPtr& snapshot);
    void setAnswerable(bool on);

signals:
    void answered(const mr::PauseAnswer& answer);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QPushButton* addButton(const QString& text, const char* name, const QString& toolTip);
    void give(PauseAnswer::Kind kind, const QString& folder = {});
    void chooseFolder();

    MessageLabel* m_title;
    QLabel* m_text;
    QWidget* m_buttons;
    QPushButton* m_again;
    qint64 m_pauseId = 0; // the message that is shown
    QString m_folder;
};

} // namespace mr::ui
