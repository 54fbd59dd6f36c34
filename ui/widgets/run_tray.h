// RunTray: the window's place in the tray while it is closed: the run's progress, and a menu to
// open the window, stop the run or quit.
//
// Threads  GUI.

#pragma once

#include "models/run_snapshot.h"

#include <QMenu>
#include <QObject>
#include <QString>
#include <QSystemTrayIcon>

namespace mr::ui {

class RunTray final : public QObject
{
    Q_OBJECT

public:
    explicit RunTray(QObject* parent = nullptr); // hidden

    static bool isAvailable() { return QSystemTrayIcon::isSystemTrayAvailable(); }
    void show();
    void hide();
    bool isShown() const { return m_icon.isVisible(); }
    void setSnapshot(const RunSnapshotPtr& snapshot); // null: no run is active
    QString toolTip() const { return m_icon.toolTip(); }
    QMenu* menu() { return &m_menu; }

signals:
    void openRequested();
    void stopRequested();
    void quitRequested();

private:
    void refresh();

    QMenu m_menu; // before the icon, which borrows it
    QSystemTrayIcon m_icon;
    QAction* m_open;
    QAction* m_stop;
    QAction* m_quit;
    RunSnapshotPtr m_snapshot;
};

} // namespace mr::ui
