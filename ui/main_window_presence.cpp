// The window and the desktop around it: closing while a run is active, the tray, messages.

#include "bridge/desktop_presence.h"
#include "main_window.h"
#include "pages/close_question.h"
#include "pages/live_page.h"
#include "widgets/notice_bar.h"
#include "widgets/run_tray.h"

#include <QApplication>

namespace mr::ui {

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
    m_closeQuestion = new CloseQuestion(m_isTrayThere.value_or(RunTray::isAvailable()), this);
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

} // namespace mr::ui
