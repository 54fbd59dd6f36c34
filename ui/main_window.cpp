#include "main_window.h"

#include "bridge/desktop_presence.h"
#include "bridge/run_feed.h"
#include "bridge/run_queue.h"
#include "language.h"
#include "pages/close_question.h"
#include "pages/compare_page.h"
#include "pages/export_dialog.h"
#include "pages/history_page.h"
#include "pages/home_page.h"
#include "pages/live_page.h"
#include "pages/new_run_page.h"
#include "pages/try_page.h"
#include "text/svg_icon.h"
#include "text/units.h"
#include "theme.h"
#include "widgets/look_menu.h"
#include "widgets/nav_rail.h"
#include "widgets/notice_bar.h"
#include "widgets/run_tray.h"
#include "widgets/status_strip.h"

#include <QAction>
#include <QCloseEvent>
#include <QHBoxLayout>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

namespace mr::ui {

MainWindow::MainWindow(
    const UiServices& services, Theme& theme, Language& language, QWidget* parent)
    : QMainWindow(parent)
    , m_services(services)
    , m_theme(theme)
    , m_language(language)
    , m_controller(new SessionController(services, this))
    , m_queue(new RunQueue(*m_controller, this))
    , m_feed(new RunFeed(services, this))
    , m_presence(new DesktopPresence(*m_controller, this))
    , m_tray(new RunTray(this))
    , m_rail(new NavRail(this))
    , m_stack(new QStackedWidget(this))
{
    setWindowTitle(QStringLiteral("Millrace"));
    setWindowIcon(applicationIcon());
    restoreState(); // before the pages: theme and language
    makePages();
    makeRail();
    wirePages();
    wireController();
    wireQueue();
    wirePresence();
    wireTry();
    retranslateUi();
    showPage(Page::Home);
    m_feed->refreshRuns();
}

MainWindow::~MainWindow()
{
    // The pages read the store through threads of their own; the run ends before they go, so that
    // nothing is announced to a page that is gone.
    delete m_controller;
    m_controller = nullptr;
}

void MainWindow::makePages()
{
    m_home = new HomePage(m_services, m_stack);
    m_newRun = new NewRunPage(m_services, m_stack);
    m_live = new LivePage(m_services, m_stack);
    m_history = new HistoryPage(m_services, m_stack);
    m_compare = new ComparePage(m_services, m_stack);
    m_try = new TryPage(m_services, m_stack);
    for (QWidget* page : {static_cast<QWidget*>(m_home), static_cast<QWidget*>(m_newRun),
             static_cast<QWidget*>(m_live), static_cast<QWidget*>(m_history),
             static_cast<QWidget*>(m_compare), static_cast<QWidget*>(m_try)})
        m_stack->addWidget(page);

    m_notice = new NoticeBar(this);
    m_status = new StatusStrip(this);
    auto* right = new QVBoxLayout;
    right->setSpacing(0);
    right->addWidget(m_notice);
    right->addWidget(m_stack, 1);
    auto* upper = new QHBoxLayout;
    upper->setSpacing(0);
    upper->addWidget(m_rail);
    upper->addLayout(right, 1);
    auto* central = new QWidget(this);
    auto* layout = new QVBoxLayout(central);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(upper, 1);
    layout->addWidget(m_status);
    setCentralWidget(central);
}

void MainWindow::makeRail()
{
    static constexpr std::array<const char*, 6> kIcons = {
        "home", "new-run", "live", "history", "compare", "try"};
    for (std::size_t i = 0; i < kIcons.size(); ++i) {
        auto* action = new QAction(svgIcon(QLatin1String(kIcons[i])), QString(), this);
        action->setShortcut(QKeySequence(
            static_cast<int>(Qt::CTRL) | (static_cast<int>(Qt::Key_1) + static_cast<int>(i))));
        connect(action, &QAction::triggered, this, [this, i] { showPage(static_cast<Page>(i)); });
        addAction(action);
        m_rail->addPage(action);
        m_pageActions[i] = action;
    }
    m_quit = new QAction(this);
    m_quit->setShortcut(QKeySequence::Quit);
    connect(m_quit, &QAction::triggered, this, &QWidget::close);
    addAction(m_quit);
    makeHelp();
    m_look = new LookMenu(m_theme, m_language, m_quit, m_rail);
    m_rail->addFooter(m_look);
}

void MainWindow::wirePages()
{
    connect(m_home, &HomePage::sampleRequested, this, &MainWindow::startRun);
    connect(m_home, &HomePage::resumeRequested, this, &MainWindow::resumeRun);
    connect(m_home, &HomePage::openRequested, this, &MainWindow::openRun);
    connect(m_home, &HomePage::newRunRequested, this, [this] { showPage(Page::NewRun); });
    connect(m_home, &HomePage::historyRequested, this, [this] { showPage(Page::History); });
    connect(m_newRun, &NewRunPage::startRequested, this, &MainWindow::startRun);
    connect(m_newRun, &NewRunPage::comparisonRequested, this, &MainWindow::startComparison);
    connect(m_live, &LivePage::stopRequested, m_controller, &SessionController::requestStop);
    connect(m_live, &LivePage::pauseAnswered, m_controller, &SessionController::answerPause);
    connect(m_live, &LivePage::resumeRequested, this, &MainWindow::resumeRun);
    connect(m_live, &LivePage::newRunRequested, this, [this] { showPage(Page::NewRun); });
    connect(m_live, &LivePage::historyRequested, this, [this] { showPage(Page::History); });
    connect(m_history, &HistoryPage::resumeRequested, this, &MainWindow::resumeRun);
    connect(m_history, &HistoryPage::newRunRequested, this, [this] { showPage(Page::NewRun); });
    connect(m_history, &HistoryPage::newRunLikeRequested, this, &MainWindow::newRunLike);
    connect(m_history, &HistoryPage::compareRequested, this, [this](qint64 first, qint64 second) {
        m_compare->compare(first, second);
        showPage(Page::Compare);
    });
    connect(m_history, &HistoryPage::edited, m_feed, &RunFeed::refreshRuns);
    connect(m_compare, &ComparePage::openRequested, this, &MainWindow::openRun);
    connect(m_compare, &ComparePage::newRunRequested, this, [this] { showPage(Page::NewRun); });
    connect(m_compare, &ComparePage::historyRequested, this, [this] { showPage(Page::History); });
    connect(m_status, &QAbstractButton::clicked, this, [this] { showPage(Page::Live); });
}

void MainWindow::wireController()
{
    connect(m_controller, &SessionController::phaseChanged, this, [this] {
        m_home->setRunActive(m_controller->busy());
        m_newRun->setRunActive(m_controller->busy());
    });
    connect(m_controller, &SessionController::runStarted, this, &MainWindow::onRunStarted);
    connect(m_controller, &SessionController::runEnded, this, &MainWindow::onRunEnded);
    connect(m_controller, &SessionController::failed, this, &MainWindow::onFailed);
    connect(m_controller, &SessionController::scratchFilled, this, &MainWindow::showFilling);
    connect(m_notice, &NoticeBar::stopRequested, this, [this] {
        m_controller->requestStop();
        m_notice->showBusy(tr("Stopping…"));
    });
    connect(m_controller, &SessionController::runChanged, m_live, &LivePage::notify);
    connect(m_controller, &SessionController::runChanged, m_history, &HistoryPage::notify);
    connect(m_controller, &SessionController::runChanged, m_compare, &ComparePage::notify);
    connect(m_controller, &SessionController::runChanged, m_feed, &RunFeed::notify);
    connect(m_feed, &RunFeed::runsReady, m_home, &HomePage::setRuns);
    connect(m_feed, &RunFeed::snapshotReady, this, [this](const RunSnapshotPtr& snapshot) {
        // One that was on its way when the run ended is not shown again.
        const RunSnapshotPtr shown = m_feed->runId() == 0 ? nullptr : snapshot;
        m_status->setSnapshot(shown);
        m_tray->setSnapshot(shown);
        m_presence->setSnapshot(shown);
    });
}

void MainWindow::wireQueue()
{
    connect(m_queue, &RunQueue::started, this, &MainWindow::onQueueStarted);
    connect(m_queue, &RunQueue::dropped, this, &MainWindow::onDropped);
}

void MainWindow::wireTry()
{
    LiveRun live;
    live.ask = [this](const Question& question) { return m_controller->ask(question); };
    live.stop = [this] { m_controller->stopAnswer(); };
    m_try->setLiveRun(std::move(live));
    const auto show = [this](qint64 runId) {
        m_try->tryRun(runId);
        showPage(Page::Try);
    };
    connect(m_live, &LivePage::tryRequested, this, show);
    connect(m_history, &HistoryPage::tryRequested, this, show);
    connect(m_history, &HistoryPage::exportRequested, this, [this](const ExportSubject& subject) {
        auto* dialog = new ExportDialog(m_services, subject, this);
        connect(dialog, &ExportDialog::written, m_history, &HistoryPage::refresh);
        dialog->show();
    });
    connect(m_feed, &RunFeed::runsReady, m_try, &TryPage::setRuns);
    connect(m_controller, &SessionController::runStarted, m_try, &TryPage::setLive);
    connect(m_controller, &SessionController::runEnded, m_try, [this] { m_try->setLive(0); });
}

void MainWindow::showPage(Page page)
{
    const auto index = static_cast<std::size_t>(page);
    m_stack->setCurrentIndex(static_cast<int>(index));
    m_pageActions[index]->setChecked(true);
    if (page == Page::Try)
        m_feed->refreshRuns();
    if (page == Page::Home) {
        m_home->refreshMachine();
        m_feed->refreshRuns();
    }
}

MainWindow::Page MainWindow::page() const
{
    return static_cast<Page>(m_stack->currentIndex());
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    if (!m_controller->busy()) {
        m_queue->clear();
        saveState();
        event->accept();
        if (m_quitAfterClose)
            emit readyToQuit();
        return;
    }
    event->ignore();
    if (!m_closeAfterRun)
        askBeforeClosing();
}

void MainWindow::changeEvent(QEvent* event)
{
    QMainWindow::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void MainWindow::retranslateUi()
{
    if (!m_look)
        return; // the language is chosen before the pages are made
    const std::array<QString, 6> names = {
        tr("Home"), tr("New run"), tr("Live"), tr("History"), tr("Compare"), tr("Try it")};
    for (std::size_t i = 0; i < names.size(); ++i) {
        m_pageActions[i]->setText(names[i]);
        m_pageActions[i]->setToolTip(QStringLiteral("%1 (%2)").arg(
            names[i], m_pageActions[i]->shortcut().toString(QKeySequence::NativeText)));
    }
    m_rail->setAccessibleName(tr("Pages"));
    m_quit->setText(tr("Quit"));
}

} // namespace mr::ui
