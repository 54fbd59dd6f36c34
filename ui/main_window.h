// MainWindow: the rail, the four pages and the status line, wired to the session controller.
//
// Threads    UI thread.
// Ownership  Owns its pages, the controller and the feed of the status line. Destroy it before
//            whatever the UiServices capture.

#pragma once

#include "bridge/session_controller.h"
#include "bridge/ui_services.h"
#include "models/run_snapshot.h"

#include <QMainWindow>

#include <array>

class QAction;
class QMenu;
class QStackedWidget;
class QToolButton;

namespace mr::ui {

class HistoryPage;
class HomePage;
class Language;
class LivePage;
class NavRail;
class NewRunPage;
class RunFeed;
class StatusStrip;
class Theme;

class MainWindow final : public QMainWindow
{
    Q_OBJECT

public:
    enum class Page { Home, NewRun, Live, History };

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

public slots:
    void startRun(const mr::RunSpec& spec);
    void resumeRun(const QString& runDir);

protected:
    void changeEvent(QEvent* event) override;
    void closeEvent(QCloseEvent* event) override;

private:
    void makePages();
    void makeRail();
    void makeLookMenu();
    void wirePages();
    void wireController();
    void openRun(qint64 runId, bool isLive);
    void onRunStarted(qint64 runId);
    void onRunEnded(qint64 runId, RunState state, const QString& message);
    void onFailed(const QString& message);
    void setNotice(const QString& message); // an error, until it is dismissed
    void setBusyNotice(const QString& message);
    bool confirmClose();
    void restoreState();
    void saveState() const;
    void retranslateUi();

    UiServices m_services;
    Theme& m_theme;
    Language& m_language;
    SessionController* m_controller;
    RunFeed* m_feed;
    NavRail* m_rail;
    QStackedWidget* m_stack;
    HomePage* m_home = nullptr;
    NewRunPage* m_newRun = nullptr;
    LivePage* m_live = nullptr;
    HistoryPage* m_history = nullptr;
    class MessageLabel* m_notice = nullptr; // what the last run ended with, until the next
    QWidget* m_noticeBar = nullptr;
    QToolButton* m_noticeClose = nullptr;
    StatusStrip* m_status = nullptr;
    QToolButton* m_look = nullptr;
    QMenu* m_lookMenu = nullptr;
    QAction* m_themeTitle = nullptr;
    QAction* m_languageTitle = nullptr;
    QAction* m_quit = nullptr;
    std::array<QAction*, 4> m_pageActions{};
    std::array<QAction*, 3> m_themeActions{};
    Page m_startedFrom = Page::Home; // where to go back to if the run cannot start
    bool m_closeAfterRun = false;
};

} // namespace mr::ui
