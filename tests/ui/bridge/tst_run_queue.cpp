// RunQueue: two runs of a comparison follow each other, and the second only a first that is done.

#include "bridge/run_queue.h"
#include "models/run_draft.h"
#include "support/test_room.h"
#include "ui/support/fake_services.h"

#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_run_queue {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

std::vector<RunSpec> twoRuns()
{
    RunSpec spec;
    spec.name = "notes";
    spec.policy = "zero-offload";
    return comparisonSpecs(spec, "zenflow");
}

std::size_t openedCount(FakeRun& run)
{
    const std::scoped_lock lock(run.mutex);
    return run.opened.size();
}

struct Queued {
    std::shared_ptr<FakeRun> run = std::make_shared<FakeRun>();
    SessionController controller{fakeServices(run)};
    RunQueue queue{controller};
    QSignalSpy started{&queue, &RunQueue::started};
    QSignalSpy dropped{&queue, &RunQueue::dropped};
};

} // namespace

class TestRunQueue : public QObject
{
    Q_OBJECT

private slots:

    void bothRunsAreEqualButForPolicyAndPlace()
    {
        RunSpec spec;
        spec.name = "notes";
        spec.policy = "zero-offload";
        spec.policyOptions = {{"late", "0.25"}};
        spec.seed = 42;
        spec.steps = 300;
        spec.holdOut = 0.1;
        spec.data.push_back({"/data/notes.jsonl", DataFormat::Jsonl, {{"prompt", "q"}}});
        spec.outDir = "/runs/notes";

        const std::vector<RunSpec> runs = comparisonSpecs(spec, "zenflow");

        QCOMPARE(runs.size(), std::size_t{2});
        QCOMPARE(runs[0].name, std::string("notes: zero-offload"));
        QCOMPARE(runs[1].name, std::string("notes: zenflow"));
        QCOMPARE(runs[0].policyOptions.size(), std::size_t{1});
        QVERIFY(runs[1].policyOptions.empty()); // zenflow would refuse it
        QVERIFY(runs[0].outDir != runs[1].outDir);
        RunSpec second = runs[1];
        second.name = runs[0].name;
        second.policy = runs[0].policy;
        second.policyOptions = runs[0].policyOptions;
        second.outDir = runs[0].outDir;
        QCOMPARE(toJson(second), toJson(runs[0])); // seed, data, held-out rows, steps, all
    }

    void theSecondStartsWhenTheFirstIsDone()
    {
        Queued made;
        QVERIFY(made.queue.start(twoRuns()));
        QTRY_COMPARE(made.started.count(), 1);
        QCOMPARE(openedCount(*made.run), std::size_t{1});
        QCOMPARE(made.queue.nextName(), QString("notes: zenflow"));

        made.run->finish();

        QTRY_COMPARE(made.started.count(), 2);
        QCOMPARE(made.started[0][0].toLongLong(), 7LL);
        QCOMPARE(made.started[1][0].toLongLong(), 8LL);
        QCOMPARE(made.started[1][1].toInt(), 1);
        QCOMPARE(made.run->opened[1].policy, std::string("zenflow"));
        QVERIFY(made.queue.nextName().isEmpty());
        made.run->finish();
        QTRY_VERIFY(!made.queue.active());
        QCOMPARE(made.dropped.count(), 0);
    }

    void aFirstRunThatFailsTakesTheSecondWithIt()
    {
        Queued made;
        made.run->endFailure = Status::error(ErrorKind::Io, "the disk is full");
        QVERIFY(made.queue.start(twoRuns()));
        QTRY_COMPARE(made.started.count(), 1);

        made.run->finish();

        QTRY_COMPARE(made.dropped.count(), 1);
        QCOMPARE(made.dropped[0][0].toString(), QString("notes: zenflow"));
        QCOMPARE(made.dropped[0][1].toString(), QString("notes: zero-offload"));
        QCOMPARE(made.dropped[0][2].value<RunState>(), RunState::Failed);
        QCOMPARE(made.dropped[0][3].toString(), QString("the disk is full"));
        QCOMPARE(openedCount(*made.run), std::size_t{1});
        QVERIFY(!made.queue.active());
    }

    void aFirstRunThatCannotOpenTakesTheSecondWithIt()
    {
        Queued made;
        made.run->openFailure = Status::error(ErrorKind::OutOfMemory, "2 GiB short");

        QVERIFY(made.queue.start(twoRuns()));

        QTRY_COMPARE(made.dropped.count(), 1);
        QCOMPARE(made.dropped[0][2].value<RunState>(), RunState::Failed);
        QCOMPARE(openedCount(*made.run), std::size_t{1});
    }

    void aFirstRunThatIsStoppedTakesTheSecondWithIt()
    {
        Queued made;
        QVERIFY(made.queue.start(twoRuns()));
        QTRY_COMPARE(made.started.count(), 1);

        made.controller.requestStop();

        QTRY_COMPARE(made.dropped.count(), 1);
        QCOMPARE(made.dropped[0][2].value<RunState>(), RunState::Stopped);
        QCOMPARE(openedCount(*made.run), std::size_t{1});
        QVERIFY(!made.controller.busy());
    }

    void aStopDuringTheLastStepIsStillAStop()
    {
        Queued made;
        made.run->stopComesLate = true;
        QVERIFY(made.queue.start(twoRuns()));
        QTRY_COMPARE(made.started.count(), 1);

        made.controller.requestStop();

        QTRY_COMPARE(made.dropped.count(), 1);
        QCOMPARE(made.dropped[0][2].value<RunState>(), RunState::Stopped);
        QCOMPARE(openedCount(*made.run), std::size_t{1});
    }

    void aQueueThatWasClearedEndsWithItsFirstRun()
    {
        Queued made;
        QSignalSpy ended(&made.controller, &SessionController::runEnded);
        QVERIFY(made.queue.start(twoRuns()));
        QTRY_COMPARE(made.started.count(), 1);

        made.queue.clear();
        made.run->finish();

        QTRY_COMPARE(ended.count(), 1);
        QCoreApplication::processEvents(); // a next run would start in this turn
        QCOMPARE(openedCount(*made.run), std::size_t{1});
        QCOMPARE(made.dropped.count(), 0);
    }

    void aComparisonIsRefusedWhileARunIsActive()
    {
        Queued made;
        QVERIFY(made.controller.open({}));

        QVERIFY(!made.queue.start(twoRuns()));

        QVERIFY(!made.queue.active());
    }
};

MR_TEST_WITH_APP(TestRunQueue)

} // namespace mr::test::tst_run_queue

#include "tst_run_queue.moc"
