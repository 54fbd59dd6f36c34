// Closing the window while a run is active: a question offers the ways to leave the run, and the
// chosen one happens.

#include "bridge/desktop_presence.h"
#include "bridge/stop_signals.h"
#include "language.h"
#include "main_window.h"
#include "pages/close_question.h"
#include "pages/live_page.h"
#include "pages/run_header.h"
#include "pages/run_view.h"
#include "support/test_room.h"
#include "theme.h"
#include "ui/support/demo_rows.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/inside_screen.h"
#include "widgets/message_label.h"
#include "widgets/notice_bar.h"
#include "widgets/run_tray.h"

#include <QAction>
#include <QApplication>
#include <QPushButton>
#include <QScreen>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <csignal>

namespace mr::test::tst_closing {

using namespace mr::ui;
using namespace mr::ui::test;

class TestClosing : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        keepSettingsIn(m_folder.path());
    }

    void init()
    {
        m_run = std::make_shared<FakeRun>();
        m_window = std::make_unique<MainWindow>(fakeServices(m_run), m_theme, m_words);
        m_window->setTrayThere(true);
        m_window->show();
    }

    void cleanup()
    {
        m_window.reset();
        QApplication::setQuitOnLastWindowClosed(true);
    }

    void withoutARunTheWindowCloses()
    {
        QVERIFY(m_window->close());

        QVERIFY(!m_window->isVisible());
        QVERIFY(question() == nullptr);
    }

    void cancelKeepsTheWindowAndTheRun()
    {
        startRun();

        QVERIFY(!m_window->close());
        QVERIFY(question() != nullptr);
        press("Cancel");

        QTRY_VERIFY(question() == nullptr);
        QVERIFY(m_window->isVisible());
        QCOMPARE(m_window->controller()->phase(), SessionController::Phase::Running);
    }

    void askingTwiceIsOneQuestion()
    {
        startRun();

        m_window->close();
        m_window->close();

        QCOMPARE(m_window->findChildren<CloseQuestion*>().size(), 1);
    }

    void keepingGoesToTheTrayAndBack()
    {
        startRun();
        m_window->close();

        press("Keep training in the tray");

        QVERIFY(!m_window->isVisible());
        QVERIFY(m_window->tray()->isShown());
        QVERIFY(!QApplication::quitOnLastWindowClosed());
        QCOMPARE(m_window->controller()->phase(), SessionController::Phase::Running);
        m_window->tray()->menu()->actions().first()->trigger(); // Open
        QVERIFY(m_window->isVisible());
        QVERIFY(!m_window->tray()->isShown());
        QVERIFY(QApplication::quitOnLastWindowClosed());
        QCOMPARE(m_window->page(), MainWindow::Page::Live);
    }

    void withoutATrayTheWindowIsMinimised()
    {
        m_window->setTrayThere(false);
        startRun();
        m_window->close();

        press("Keep training, minimised");

        QVERIFY(m_window->isMinimized());
        QVERIFY(!m_window->tray()->isShown());
        QVERIFY(m_window->controller()->busy());
    }

    void saveAndStopClosesWhenTheRunHasEnded()
    {
        startRun();
        m_window->close();

        press("Save and stop");

        QTRY_VERIFY(!m_window->isVisible());
        const std::scoped_lock lock(m_run->mutex);
        QVERIFY(m_run->stopAsked && m_run->destroyed);
    }

    void theQuestionEndsWithTheRunItAsksAbout()
    {
        startRun();
        m_window->close();
        QVERIFY(question() != nullptr);

        m_run->finish();

        QTRY_VERIFY(!m_window->controller()->busy());
        QTRY_VERIFY(question() == nullptr);
        QVERIFY(m_window->isVisible());
        QVERIFY(m_window->close());
    }

    void theQuestionNamesARunThatWaits()
    {
        RunSpec first;
        first.name = "first";
        RunSpec second;
        second.name = "second";
        m_window->startComparison({first, second});
        QTRY_COMPARE(m_window->controller()->phase(), SessionController::Phase::Running);

        m_window->close();

        QVERIFY2(question()->informativeText().contains("“second” waits"),
            qPrintable(question()->informativeText()));
        press("Cancel");
    }

    void theTrayStopsTheRunAndStays()
    {
        startRun();
        m_window->close();
        press("Keep training in the tray");
        m_window->tray()->setSnapshot(demoSnapshot(412, 600));
        QVERIFY2(m_window->tray()->toolTip().contains("Notes, second try: step 412 of 600"),
            qPrintable(m_window->tray()->toolTip()));

        trayAction("Save and stop")->trigger();

        QTRY_VERIFY(!m_window->controller()->busy());
        QVERIFY(m_window->tray()->isShown());
        QVERIFY(m_window->tray()->toolTip().contains("No run is active."));
        QVERIFY(!trayAction("Save and stop")->isEnabled());
    }

    void quittingFromTheTrayAsksToo()
    {
        startRun();
        m_window->close();
        press("Keep training in the tray");

        trayAction("Quit")->trigger();

        QVERIFY(m_window->isVisible());
        QTRY_VERIFY(question() != nullptr);
        QVERIFY(m_window->controller()->busy());
    }

    void aSignalSavesTheRunAndEndsTheProgram()
    {
        const StopSignals fromOutside;
        connect(&fromOutside, &StopSignals::stopAsked, m_window.get(), &MainWindow::stopAndQuit);
        QSignalSpy ready(m_window.get(), &MainWindow::readyToQuit);
        startRun();

        QCOMPARE(std::raise(SIGTERM), 0);

        QTRY_COMPARE(ready.count(), 1);
        QVERIFY(!m_window->isVisible());
        const std::scoped_lock lock(m_run->mutex);
        QVERIFY(m_run->stopAsked && m_run->destroyed);
    }

    void aSignalEndsAProgramInTheTrayAndOneThatAsks()
    {
        const StopSignals fromOutside;
        connect(&fromOutside, &StopSignals::stopAsked, m_window.get(), &MainWindow::stopAndQuit);
        QSignalSpy ready(m_window.get(), &MainWindow::readyToQuit);
        startRun();
        m_window->close();
        press("Keep training in the tray");
        trayAction("Quit")->trigger();
        QTRY_VERIFY(question() != nullptr);

        QCOMPARE(std::raise(SIGHUP), 0);

        QTRY_COMPARE(ready.count(), 1);
        QVERIFY(!m_window->controller()->busy());
        QVERIFY(!m_window->isVisible());
    }

    void withoutARunASignalEndsTheProgram()
    {
        QSignalSpy ready(m_window.get(), &MainWindow::readyToQuit);

        m_window->stopAndQuit();

        QCOMPARE(ready.count(), 1);
        QVERIFY(!m_window->isVisible());
    }

    void theSecondSignalEndsTheProgramAtOnce()
    {
        struct sigaction now = {};
        {
            const StopSignals fromOutside;
            QSignalSpy asked(&fromOutside, &StopSignals::stopAsked);
            for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
                QCOMPARE(::sigaction(signal, nullptr, &now), 0);
                QVERIFY(now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
            }

            QCOMPARE(std::raise(SIGINT), 0);

            QTRY_COMPARE(asked.count(), 1);
            for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
                QCOMPARE(::sigaction(signal, nullptr, &now), 0);
                QVERIFY(now.sa_handler == SIG_DFL);
            }
        }
    }

    void aSignalThatIsIgnoredStaysSo()
    {
        const auto before = std::signal(SIGHUP, SIG_IGN); // as nohup does
        struct sigaction now = {};
        {
            const StopSignals fromOutside;
            QCOMPARE(::sigaction(SIGHUP, nullptr, &now), 0);
        }
        (void)std::signal(SIGHUP, before);

        QVERIFY(now.sa_handler == SIG_IGN);
    }

    void theEndOfTheSessionWaitsUntilTheRunIsSaved()
    {
        startRun();

        m_window->saveForSessionEnd();

        QVERIFY(!m_window->controller()->busy());
        {
            const std::scoped_lock lock(m_run->mutex);
            QVERIFY(m_run->stopAsked && m_run->destroyed);
        }
        QVERIFY(m_window->isVisible()); // it may be called off
        const auto* notice = m_window->findChild<NoticeBar*>();
        QVERIFY(notice->isVisible());
        QVERIFY(notice->findChild<MessageLabel*>()->text().contains("stopped and saved"));
    }

    void aWindowIsNoLargerThanItsScreen()
    {
        const QRect room = m_window->screen()->availableGeometry();

        QVERIFY2(room.width() < 1280 && room.height() < 850, "the screen is too large to tell");
        const int width = m_window->width(); // less than its pages need it cannot be
        QVERIFY2(width <= std::max(room.width(), m_window->minimumSizeHint().width()),
            qPrintable(QString::number(width)));
        QVERIFY2(
            m_window->height() < room.height(), qPrintable(QString::number(m_window->height())));
    }

    void aWindowThatWasLeftOutsideComesBack()
    {
        const QMargins frame(4, 24, 4, 4);
        const QVector<QRect> two = {QRect(0, 27, 1366, 741), QRect(1366, 0, 1024, 768)};

        QCOMPARE(insideScreen(QRect(100, 100, 1280, 800), two, frame), QRect(82, 51, 1280, 713));
        QCOMPARE(insideScreen(QRect(4000, 100, 600, 400), two, frame), QRect(762, 100, 600, 400));
        QCOMPARE(insideScreen(QRect(1900, -300, 800, 600), two, frame), QRect(1586, 24, 800, 600));
        QCOMPARE(insideScreen(QRect(200, 100, 640, 480), two, frame), QRect(200, 100, 640, 480));
        QCOMPARE(insideScreen(QRect(9, 9, 9, 9), {}, frame), QRect(9, 9, 9, 9));
    }

    void theLivePageSaysWhetherTheMachineStaysAwake()
    {
        m_window->live()->showSnapshot(demoSnapshot(412, 600));

        m_window->live()->setSleepState(SleepGuard::State::Held);
        QVERIFY(note().contains("does not fall asleep"));
        m_window->live()->setSleepState(SleepGuard::State::Unavailable);
        QVERIFY(note().contains("may fall asleep"));
        m_window->live()->setSleepState(SleepGuard::State::Off);

        QCOMPARE(note(), QString());
    }

private:
    void startRun()
    {
        QSignalSpy started(m_window->controller(), &SessionController::runStarted);
        m_window->startRun({});
        QTRY_COMPARE(started.count(), 1);
    }

    CloseQuestion* question() const { return m_window->findChild<CloseQuestion*>(); }

    void press(const QString& text) const
    {
        QVERIFY(question() != nullptr);
        for (auto* button : question()->findChildren<QPushButton*>()) {
            if (button->text() == text) {
                button->click();
                return;
            }
        }
        QFAIL(qPrintable("there is no button " + text));
    }

    QAction* trayAction(const QString& text) const
    {
        for (QAction* action : m_window->tray()->menu()->actions()) {
            if (action->text() == text)
                return action;
        }
        return nullptr;
    }

    QString note() const { return m_window->live()->view()->header()->stateNote(); }

    QTemporaryDir m_folder;
    Theme m_theme;
    Language m_words;
    std::shared_ptr<FakeRun> m_run;
    std::unique_ptr<MainWindow> m_window;
};

MR_TEST_WITH_WINDOWS(TestClosing)

} // namespace mr::test::tst_closing

#include "tst_closing.moc"
