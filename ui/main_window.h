// MainWindow: the rail, the six pages and the status line, wired to the session controller.
//
// Threads    UI thread.
// Ownership  Owns its pages, the controller and the feed of the status line. Destroy it before the
//            objects that the UiServices capture.

#pragma once

#include "bridge/session_controller.h"
#include "bridge/ui_services.h"
#include "models/run_snapshot.h"

#include <QMainWindow>
#include <QPointer>

#include <array>
#include <optional>
#include <vector>

class QAction;
class QStackedWidget;

namespace mr::ui {

class CloseQuestion;
class ComparePage;
class DesktopPresence;
class HelpMenu;
class HistoryPage;
class HomePage;
class Language;
class LivePage;
class LookMenu;
class NavRail;
class NewRunPage;
class RunFeed;
class RunQueue;
class RunTray;
class StatusStrip;
class Theme;
class TryPage;

class MainWindow final : public QMainWindow
{
    Q_OBJECT

public:
    enum class Page { Home, NewRun, Live, History, Compare, Try };

    // Theme and language are the application's and outlive the window.
    MainWindow(
        const UiServices& services, Theme& theme, Language& language, QWidget* parent = nullptr);
    ~MainWindow() override;

    void showPage(Page page);
    Page page() const;
    SessionController* controller() const { return m_controller; }
    HomePage* home() const { return m_home; }
    NewRunPage* newRun() const { return m_newRun; }
    LivePage* live() const { return m_live; }
    HistoryPage* history() const { return m_history; }
    ComparePage* compare() const { return m_compare; }
    RunTray* tray() const { return m_tray; }
    DesktopPresence* presence() const { return m_presence; }
    // Whether the desktop has a tray is looked up when it is asked; tests say it.
    void setTrayThere(bool on) { m_isTrayThere = on; }
    TryPage* tryIt() const { return m_try; }

public slots:
    void startRun(const mr::RunSpec& spec);
    // One after the other; the Compare page shows both.
    void startComparison(const std::vector<mr::RunSpec>& runs);
    void resumeRun(const QString& runDir);
    void newRunLike(const QString& specJson);
    // As a signal asks: without a question, the run is stopped and saved, the window closes, and
    // readyToQuit() follows.
    void stopAndQuit();
    // The desktop session ends, and ends this program when it has heard that all is saved: the run
    // is stopped. Returns when it has saved; events go on meanwhile.
    void saveForSessionEnd();
    // From the tray, from minimised, from behind other windows.
    void bringBack();

signals:
    void readyToQuit(); // stopAndQuit() is done: an active run was saved

protected:
    void changeEvent(QEvent* event) override;
    void closeEvent(QCloseEvent* event) override;

private:
    void makePages();
    void makeRail();
    void makeHelp();
    void showAbout();
    void openLog();
    void wirePages();
    void wireController();
    void wireQueue();
    void wireTry();
    void onQueueStarted(qint64 runId, int position);
    void onDropped(
        const QString& next, const QString& before, RunState state, const QString& message);
    void showOpening(const QString& text);
    void showFilling(quint64 doneBytes, quint64 allBytes);
    void openRun(qint64 runId, bool isLive);
    void onRunStarted(qint64 runId);
    void onRunEnded(qint64 runId, RunState state, const QString& message);
    void onFailed(const QString& message);
    void wirePresence();
    void askBeforeClosing();
    void endCloseQuestion();
    void keepTraining();
    void saveAndClose();
    void restoreState();
    void saveState() const;
    void retranslateUi();

    UiServices m_services;
    Theme& m_theme;
    Language& m_language;
    SessionController* m_controller;
    RunQueue* m_queue;
    RunFeed* m_feed;
    DesktopPresence* m_presence;
    RunTray* m_tray;
    NavRail* m_rail;
    QStackedWidget* m_stack;
    HomePage* m_home = nullptr;
    NewRunPage* m_newRun = nullptr;
    LivePage* m_live = nullptr;
    HistoryPage* m_history = nullptr;
    ComparePage* m_compare = nullptr;
    TryPage* m_try = nullptr;
    class NoticeBar* m_notice = nullptr; // error of the last run, or work under way
    QString m_opening;                   // the notice's text while a run opens
    StatusStrip* m_status = nullptr;
    HelpMenu* m_help = nullptr;
    LookMenu* m_look = nullptr;
    QAction* m_quit = nullptr;
    std::array<QAction*, 6> m_pageActions{};
    qint64 m_queueFirst = 0;         // first run of the active comparison
    Page m_startedFrom = Page::Home; // where to go back to if the run cannot start
    bool m_closeAfterRun = false;
    bool m_quitAfterClose = false;
    std::optional<bool> m_isTrayThere;
    QPointer<CloseQuestion> m_closeQuestion; // while it is open
};

} // namespace mr::ui
