#include "core/store/store_rig.h"

#include <millrace/run_reader.h>

#include <QtTest>

#include <cmath>
#include <cstdlib>
#include <limits>

using namespace mr;

class TestRunReader : public QObject
{
    Q_OBJECT

private slots:
    void stepComesBackAsItWasWritten()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        StoreBatch batch;
        batch.steps = {
            StoreRig::step(1, 4.25), StoreRig::step(2, std::numeric_limits<double>::quiet_NaN())};
        QVERIFY(rig.store->append(id, batch).ok());
        const std::vector<StepRow> rows = rig.openReader()->steps(id, 0, 10).value();
        QCOMPARE(rows.size(), std::size_t{2});
        const StepRow expected = StoreRig::step(1, 4.25);
        QCOMPARE(rows[0].step, expected.step);
        QCOMPARE(rows[0].timeMs, expected.timeMs);
        QCOMPARE(rows[0].wallUs, expected.wallUs);
        QCOMPARE(rows[0].computeUs, expected.computeUs);
        QVERIFY(rows[0].stallUs == expected.stallUs);
        QCOMPARE(rows[0].tokens, expected.tokens);
        QCOMPARE(rows[0].lossTokens, expected.lossTokens);
        QCOMPARE(rows[0].staleness, expected.staleness);
        QCOMPARE(rows[0].loss, expected.loss);
        QCOMPARE(rows[0].learningRate, expected.learningRate);
        QCOMPARE(rows[0].gradNorm, expected.gradNorm);
        QCOMPARE(rows[0].h2dBytes, expected.h2dBytes);
        QCOMPARE(rows[0].d2hBytes, expected.d2hBytes);
        QCOMPARE(rows[0].diskReadBytes, expected.diskReadBytes);
        QCOMPARE(rows[0].diskWriteBytes, expected.diskWriteBytes);
        QCOMPARE(rows[0].devicePeakBytes, expected.devicePeakBytes);
        QCOMPARE(rows[0].hostPeakBytes, expected.hostPeakBytes);
        QVERIFY(std::isnan(rows[1].loss));
        // Each stall lies in the column of its name.
        QCOMPARE(rig.number("SELECT stall_host_update_us FROM step LIMIT 1"), 40);
        QCOMPARE(rig.number("SELECT stall_disk_us FROM step LIMIT 1"), 30);
    }

    void stepsAreReadInPieces()
    {
        StoreRig rig;
        const std::int64_t first = rig.begin("u1");
        const std::int64_t id = rig.begin("u2");
        QVERIFY(rig.store->append(first, StoreRig::steps(1, 50)).ok());
        QVERIFY(rig.store->append(id, StoreRig::steps(1, 50)).ok());
        const auto reader = rig.openReader();
        const auto piece = reader->steps(id, 20, 10).value();
        QCOMPARE(piece.size(), std::size_t{10});
        QCOMPARE(piece.front().step, 21);
        QCOMPARE(piece.back().step, 30);
        QCOMPARE(reader->steps(id, 50, 10).value().size(), std::size_t{0});
        QCOMPARE(reader->steps(first, -5, 1000).value().size(), std::size_t{50});
        QCOMPARE(reader->steps(first, std::numeric_limits<std::int64_t>::max(), 9).value().size(),
            std::size_t{0});
    }

    void openReaderSeesWhatIsWrittenLater()
    {
        StoreRig rig;
        const auto reader = rig.openReader();
        QCOMPARE(reader->runs().value().size(), std::size_t{0});
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->append(id, StoreRig::steps(1, 1)).ok());
        QCOMPARE(reader->runs().value().size(), std::size_t{1});
        QCOMPARE(reader->steps(id, 0, 9).value().size(), std::size_t{1});
    }

    void historyIsReadAfterTheWriterHasGone()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->endRun(id, "done", 0, "").ok());
        rig.store.reset();
        QVERIFY(!QFile::exists(QString::fromStdString(rig.path + "-wal")));
        const auto reader = rig.openReader();
        QVERIFY(reader != nullptr);
        QCOMPARE(reader->run(id).value().status, std::string("done"));
    }

    void newestRunComesFirst()
    {
        StoreRig rig;
        rig.begin("u1");
        const std::int64_t newest = rig.begin("u2");
        QCOMPARE(rig.openReader()->runs().value().front().id, newest);
    }

    void runOfADeadProcessIsLost()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        QCOMPARE(rig.openReader()->run(id).value().status, std::string("running"));
        // Same process number, another start: the number was used again.
        QVERIFY(rig.change("UPDATE segment SET boot_id=boot_id||'0'").ok());
        QCOMPARE(rig.openReader()->run(id).value().status, std::string("lost"));
        QVERIFY(!rig.openReader()->run(id).value().resumable);
        QVERIFY(rig.store->addCheckpoint(id, {5, "/c/5", 1, "complete", 1, 1}, "").ok());
        QVERIFY(rig.openReader()->run(id).value().resumable);
        // Resuming closes the lost segment.
        QVERIFY(rig.store->beginSegment(id, 5).ok());
        QCOMPARE(rig.openReader()->run(id).value().status, std::string("running"));
        QCOMPARE(rig.number("SELECT count(*) FROM segment WHERE end_reason='lost'"), 1);
    }

    void processThatDiesWhileStartingLeavesALostRun()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.change("UPDATE segment SET pid=4194305").ok()); // above the largest number
        QCOMPARE(rig.openReader()->run(id).value().status, std::string("lost"));
    }

    void onlyRunsThatEndedEarlyCanBeResumed()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->addCheckpoint(id, {5, "/c/5", 1, "complete", 1, 1}, "").ok());
        QVERIFY(rig.store->endRun(id, "done", 0, "").ok());
        QVERIFY(!rig.openReader()->run(id).value().resumable);
        QVERIFY(rig.store->endRun(id, "stopped", 130, "").ok());
        QVERIFY(rig.openReader()->run(id).value().resumable);
        QVERIFY(rig.store->setCheckpointState("/c/5", "broken").ok());
        QVERIFY(!rig.openReader()->run(id).value().resumable);
    }

    void eventsAndScalarsAreReadAfterAPoint()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        StoreBatch batch;
        batch.events = {{0, 1, 10, EventLevel::Info, "started", "go"},
            {0, 2, 20, EventLevel::Error, "nan", "stop"}};
        batch.scalars = {{"eval_loss", {0, 0, 4.0}}, {"eval_loss", {10, 90, 3.5}}};
        QVERIFY(rig.store->append(id, batch).ok());
        const auto reader = rig.openReader();
        const auto events = reader->events(id, 0).value();
        QCOMPARE(events.size(), std::size_t{2});
        QCOMPARE(events[1].code, std::string("nan"));
        QVERIFY(events[1].level == EventLevel::Error);
        QCOMPARE(reader->events(id, events[0].id).value().size(), std::size_t{1});
        QCOMPARE(reader->scalars(id, "eval_loss", -1).value().size(), std::size_t{2});
        QCOMPARE(reader->scalars(id, "eval_loss", 0).value().front().value, 3.5);
        QCOMPARE(reader->scalars(id, "nothing", -1).value().size(), std::size_t{0});
    }

    void unknownIdIsAnInvalidArgument()
    {
        StoreRig rig;
        rig.begin("u1");
        const auto reader = rig.openReader();
        for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{2}}) {
            QCOMPARE(reader->run(id).status().kind(), ErrorKind::InvalidArgument);
            QCOMPARE(reader->steps(id, 0, 1).status().kind(), ErrorKind::InvalidArgument);
            QCOMPARE(reader->events(id, 0).status().kind(), ErrorKind::InvalidArgument);
            QCOMPARE(reader->checkpoints(id).status().kind(), ErrorKind::InvalidArgument);
        }
    }

    void defaultPlaceFollowsTheEnvironment()
    {
        qputenv("XDG_DATA_HOME", "/somewhere");
        QCOMPARE(defaultDatabasePath(), std::string("/somewhere/millrace/history.db"));
        QCOMPARE(defaultRunsFolder(), std::string("/somewhere/millrace/runs"));
        qputenv("XDG_DATA_HOME", "relative");
        qputenv("HOME", "/home/x");
        QCOMPARE(defaultDatabasePath(), std::string("/home/x/.local/share/millrace/history.db"));
    }
};

QTEST_APPLESS_MAIN(TestRunReader)
#include "tst_run_reader.moc"
