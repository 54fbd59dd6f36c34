// SessionController opens, ends and stops a run without holding up the UI thread.

#include "bridge/session_controller.h"
#include "support/test_room.h"
#include "ui/support/fake_services.h"

#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_session_controller {

using namespace mr::ui;
using namespace mr::ui::test;

class TestSessionController : public QObject
{
    Q_OBJECT

private slots:

    void aRunStartsAndEnds()
    {
        const auto run = std::make_shared<FakeRun>();
        SessionController controller(fakeServices(run));
        QSignalSpy started(&controller, &SessionController::runStarted);
        QSignalSpy ended(&controller, &SessionController::runEnded);

        QVERIFY(controller.open({}));
        QCOMPARE(controller.phase(), SessionController::Phase::Opening);
        QTRY_COMPARE(started.count(), 1);
        QCOMPARE(controller.runId(), 7);
        QCOMPARE(controller.phase(), SessionController::Phase::Running);
        run->finish();

        QTRY_COMPARE(ended.count(), 1);
        QCOMPARE(ended[0][1].value<RunState>(), RunState::Finished);
        QCOMPARE(controller.phase(), SessionController::Phase::Idle);
        QVERIFY(run->destroyed);
    }

    void stopEndsTheRunAsStopped()
    {
        const auto run = std::make_shared<FakeRun>();
        SessionController controller(fakeServices(run));
        QSignalSpy started(&controller, &SessionController::runStarted);
        QSignalSpy ended(&controller, &SessionController::runEnded);
        controller.open({});
        QTRY_COMPARE(started.count(), 1);

        controller.requestStop();

        QTRY_COMPARE(ended.count(), 1);
        QCOMPARE(ended[0][1].value<RunState>(), RunState::Stopped);
    }

    void anAnswerToAPauseReachesTheRun()
    {
        const auto run = std::make_shared<FakeRun>();
        SessionController controller(fakeServices(run));
        QSignalSpy started(&controller, &SessionController::runStarted);
        QSignalSpy ended(&controller, &SessionController::runEnded);
        controller.answerPause({PauseAnswer::Kind::TryAgain, {}}); // no run: nothing happens
        controller.open({});
        QTRY_COMPARE(started.count(), 1);

        controller.answerPause({PauseAnswer::Kind::OtherFolder, "/elsewhere"});

        run->finish();
        QTRY_COMPARE(ended.count(), 1);
        QCOMPARE(run->answers.size(), std::size_t{1});
        QCOMPARE(run->answers[0].folder, std::string("/elsewhere"));
    }

    void stopWhileOpeningIsNotLost()
    {
        const auto run = std::make_shared<FakeRun>();
        SessionController controller(fakeServices(run));
        QSignalSpy ended(&controller, &SessionController::runEnded);

        controller.open({});
        controller.requestStop();

        QTRY_COMPARE(ended.count(), 1);
        QCOMPARE(ended[0][1].value<RunState>(), RunState::Stopped);
    }

    void aStopEndsAFileThatIsBeingFilled()
    {
        const auto run = std::make_shared<FakeRun>();
        run->fillsFirst = true;
        SessionController controller(fakeServices(run));
        QSignalSpy filled(&controller, &SessionController::scratchFilled);
        QSignalSpy ended(&controller, &SessionController::runEnded);
        QSignalSpy failed(&controller, &SessionController::failed);
        controller.open({});
        QTRY_COMPARE(filled.count(), 1);
        QCOMPARE(filled[0][0].toULongLong(), 3ULL << 30U);
        QCOMPARE(filled[0][1].toULongLong(), 12ULL << 30U);

        controller.requestStop();

        QTRY_COMPARE(ended.count(), 1);
        QCOMPARE(ended[0][1].value<RunState>(), RunState::Stopped);
        QCOMPARE(failed.count(), 0);
        QVERIFY(!controller.busy());
    }

    void whatCannotBeOpenedIsReportedInItsOwnWords()
    {
        const auto run = std::make_shared<FakeRun>();
        run->openFailure = Status::error(ErrorKind::Io, "cannot read /models/x");
        SessionController controller(fakeServices(run));
        QSignalSpy failed(&controller, &SessionController::failed);

        controller.open({});

        QTRY_COMPARE(failed.count(), 1);
        QCOMPARE(failed[0][0].toString(), QString("cannot read /models/x"));
        QVERIFY(!controller.busy());
    }

    void aSecondRunIsRefusedWhileOneIsActive()
    {
        const auto run = std::make_shared<FakeRun>();
        SessionController controller(fakeServices(run));
        QVERIFY(controller.open({}));

        QVERIFY(!controller.open({}));
        QVERIFY(!controller.resume("/runs/1"));
    }

    void manyChangesBecomeFewSignals()
    {
        const auto run = std::make_shared<FakeRun>();
        SessionController controller(fakeServices(run));
        QSignalSpy started(&controller, &SessionController::runStarted);
        QSignalSpy changed(&controller, &SessionController::runChanged);
        controller.open({});
        QTRY_COMPARE(started.count(), 1);

        for (int i = 0; i < 1000; ++i)
            run->listener(7); // as the telemetry thread would, while the UI is busy

        QTRY_COMPARE(changed.count(), 1);
        run->listener(7);
        QTRY_COMPARE(changed.count(), 2);
    }

    void destructionStopsTheRunAndWaitsForIt()
    {
        const auto run = std::make_shared<FakeRun>();
        {
            SessionController controller(fakeServices(run));
            QSignalSpy started(&controller, &SessionController::runStarted);
            controller.resume("/runs/old");
            QTRY_COMPARE(started.count(), 1);
        }
        QVERIFY(run->stopAsked);
        QVERIFY(run->destroyed);
        QCOMPARE(run->resumedDir, std::string("/runs/old"));
    }
};

MR_TEST_WITH_APP(TestSessionController)

} // namespace mr::test::tst_session_controller

#include "tst_session_controller.moc"
