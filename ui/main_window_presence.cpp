// The window and the desktop around it: closing while a run is active, the tray, messages, where on
// the screen it is.

#include "bridge/desktop_presence.h"
#include "bridge/run_queue.h"
#include "main_window.h"
#include "pages/close_question.h"
#include "pages/live_page.h"
#include "widgets/inside_screen.h"
#include "widgets/look_menu.h"
#include "widgets/notice_bar.h"
#include "widgets/run_tray.h"

#include <QApplication>
#include <QEventLoop>
#include <QScreen>
#include <QSettings>
#include <QStyle>

namespace mr::ui {

namespace {

constexpr int kStateVersion = 1;
constexpr QSize kFirstSize(1280, 800);
const QString kGeometryKey = QStringLiteral("window/geometry");
const QString kStateKey = QStringLiteral("window/state");

// Room that panels and docks leave on each screen.
QVector<QRect> screens()
{
    QVector<QRect> rooms;
    for (const QScreen* screen : QGuiApplication::screens())
        rooms << screen->availableGeometry();
    return rooms;
}

QRect firstScreen()
{
    const QScreen* screen = QGuiApplication::primaryScreen();
    return screen ? screen->availableGeometry() : QRect(QPoint(0, 0), kFirstSize);
}

// The size of a window's frame is unknown before it is shown; the style's own frame comes near it.
QMargins frameRoom(const QWidget& window)
{
    const QStyle* style = window.style();
    const int edge = style->pixelMetric(QStyle::PM_MdiSubWindowFrameWidth, nullptr, &window);
    const int title = style->pixelMetric(QStyle::PM_TitleBarHeight, nullptr, &window);
    return {edge, title + edge, edge, edge};
}

} // namespace

void MainWindow::wirePresence()
{
    connect(m_presence, &DesktopPresence::openRequested, this, [this](qint64 runId) {
        bringBack();
        if (runId != 0)
            openRun(runId, m_controller->runId() == runId);
    });
    connect(m_presence->sleep(), &SleepGuard::stateChanged, m_live, &LivePage::setSleepState);
    connect(m_tray, &RunTray::openRequested, this, [this] {
        bringBack();
        if (m_controller->busy())
            showPage(Page::Live);
    });
    connect(m_tray, &RunTray::stopRequested, m_controller, &SessionController::requestStop);
    connect(m_tray, &RunTray::quitRequested, this, [this] {
        bringBack(); // a run that is active is asked about, and the question needs its window
        close();
    });
}

void MainWindow::askBeforeClosing()
{
    // It was asked for already; there is nothing more to choose.
    if (m_controller->phase() == SessionController::Phase::Stopping) {
        saveAndClose();
        return;
    }
    if (m_closeQuestion != nullptr) {
        m_closeQuestion->raise();
        return;
    }
    m_closeQuestion = new CloseQuestion(
        m_isTrayThere.value_or(RunTray::isAvailable()), m_queue->nextName(), this);
    connect(m_closeQuestion, &CloseQuestion::answered, this, [this](CloseQuestion::Answer answer) {
        if (answer == CloseQuestion::Answer::KeepTraining)
            keepTraining();
        else if (answer == CloseQuestion::Answer::SaveAndStop)
            saveAndClose();
    });
    m_closeQuestion->open();
}

void MainWindow::keepTraining()
{
    if (!m_isTrayThere.value_or(RunTray::isAvailable())) {
        showMinimized();
        return;
    }
    // Else the program would end with its last window.
    QApplication::setQuitOnLastWindowClosed(false);
    m_tray->show();
    hide();
}

void MainWindow::saveAndClose()
{
    // The window closes itself once the run has saved; it stays responsive until then.
    m_closeAfterRun = true;
    m_controller->requestStop();
    m_notice->showBusy(tr("Saving the run; the window closes when that is done."));
    if (!m_controller->busy())
        close();
}

void MainWindow::stopAndQuit()
{
    m_quitAfterClose = true;
    if (m_closeQuestion != nullptr)
        m_closeQuestion->close(); // it is answered
    m_queue->clear();             // a run that waits is not begun now
    if (m_controller->busy())
        saveAndClose();
    else
        close();
}

void MainWindow::saveForSessionEnd()
{
    m_queue->clear();
    if (!m_controller->busy())
        return;
    QEventLoop untilSaved;
    RunState how = RunState::Failed;
    connect(m_controller, &SessionController::failed, &untilSaved, &QEventLoop::quit);
    connect(m_controller, &SessionController::runEnded, &untilSaved,
        [&untilSaved, &how](qint64 runId, RunState state) {
            if (runId != 0) // else it was not open yet, and nothing is lost
                how = state;
            untilSaved.quit();
        });
    m_controller->requestStop();
    m_notice->showBusy(tr("The desktop session ends; the run is being saved."));
    untilSaved.exec(QEventLoop::ExcludeUserInputEvents);
    if (how == RunState::Stopped) // the end of the session may still be called off
        m_notice->showError(
            tr("The run was stopped and saved because the desktop session was about to end. "
               "Resume continues it from there."));
}

void MainWindow::bringBack()
{
    m_tray->hide();
    QApplication::setQuitOnLastWindowClosed(true);
    if (isMinimized())
        showNormal();
    else
        show();
    raise();
    activateWindow();
}

void MainWindow::restoreState()
{
    const QSettings settings;
    LookMenu::restore(m_theme, m_language);
    const bool isPlaced = restoreGeometry(settings.value(kGeometryKey).toByteArray());
    const QRect wanted = isPlaced ? geometry() : QRect(firstScreen().topLeft(), kFirstSize);
    const QRect inside = insideScreen(wanted, screens(), frameRoom(*this));
    if (!isPlaced)
        resize(inside.size()); // where it goes is the window manager's
    else if (inside != wanted && !isMaximized() && !isFullScreen())
        setGeometry(inside);
    QMainWindow::restoreState(settings.value(kStateKey).toByteArray(), kStateVersion);
}

void MainWindow::saveState() const
{
    QSettings settings;
    settings.setValue(kGeometryKey, saveGeometry());
    settings.setValue(kStateKey, QMainWindow::saveState(kStateVersion));
}

} // namespace mr::ui
