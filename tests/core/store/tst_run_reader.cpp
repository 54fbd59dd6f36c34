#include "core/store/store_rig.h"
#include "support/test_room.h"

#include <millrace/run_reader.h>
#include <millrace/run_spec.h>

#include <QDir>
#include <QFile>
#include <QtTest>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace mr::test::tst_run_reader {

class TestRunReader : public QObject
{
    Q_OBJECT

    // In the folder "run", with its record.
    static std::int64_t beginIn(const StoreRig& rig, const std::string& uuid)
    {
        NewRun run = StoreRig::newRun(uuid);
        run.dir = rig.folder.filePath("run").toStdString();
        RunSpec spec;
        spec.saveDir = rig.folder.filePath("elsewhere").toStdString();
        run.configJson = toJson(spec);
        QDir(rig.folder.path()).mkpath("run");
        QFile record(rig.folder.filePath("run/run.json"));
        if (record.open(QIODevice::WriteOnly))
            record.write(R"({"uuid":")" + QByteArray::fromStdString(uuid) + R"("})");
        return rig.store->beginRun(run).value();
    }

private Q_SLOTS:
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
        QVERIFY(rig.store->endRun(id, RunStatus::Done, 0, "").ok());
        rig.store.reset();
        QVERIFY(!QFile::exists(QString::fromStdString(rig.path + "-wal")));
        const auto reader = rig.openReader();
        QVERIFY(reader != nullptr);
        QCOMPARE(reader->run(id).value().status, RunStatus::Done);
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
        QCOMPARE(rig.openReader()->run(id).value().status, RunStatus::Running);
        // Same process number, another start: the number was used again.
        QVERIFY(rig.change("UPDATE segment SET boot_id=boot_id||'0'").ok());
        QCOMPARE(rig.openReader()->run(id).value().status, RunStatus::Lost);
        QVERIFY(!rig.openReader()->run(id).value().resumable);
        QVERIFY(rig.store->addCheckpoint(id, {5, "/c/5", 1, "complete", 1, 1}, "").ok());
        QVERIFY(rig.openReader()->run(id).value().resumable);
        // Resuming closes the lost segment.
        QVERIFY(rig.store->beginSegment(id, 5).ok());
        QCOMPARE(rig.openReader()->run(id).value().status, RunStatus::Running);
        QCOMPARE(rig.number("SELECT count(*) FROM segment WHERE end_reason='lost'"), 1);
    }

    void processThatDiesWhileStartingLeavesALostRun()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.change("UPDATE segment SET pid=4194305").ok()); // above the largest number
        QCOMPARE(rig.openReader()->run(id).value().status, RunStatus::Lost);
    }

    void onlyRunsThatEndedEarlyCanBeResumed()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->addCheckpoint(id, {5, "/c/5", 1, "complete", 1, 1}, "").ok());
        QVERIFY(rig.store->endRun(id, RunStatus::Done, 0, "").ok());
        QVERIFY(!rig.openReader()->run(id).value().resumable);
        QVERIFY(rig.store->endRun(id, RunStatus::Stopped, 130, "").ok());
        QVERIFY(rig.openReader()->run(id).value().resumable);
        QVERIFY(rig.store->setCheckpointState("/c/5", "broken").ok());
        QVERIFY(!rig.openReader()->run(id).value().resumable);
    }

    // The content of the run folder decides where the history has no checkpoint.
    void aRunThatEndedBeforeItsFirstCheckpointStartsAgain_data()
    {
        QTest::addColumn<QStringList>("lies"); // below the run folder, or "elsewhere"
        QTest::addColumn<QString>("status");
        QTest::addColumn<QString>("kept"); // state of the checkpoint in the history; empty: none
        QTest::addColumn<bool>("resumable");
        QTest::addColumn<bool>("startsAgain");
        const QString checkpoint = QStringLiteral("checkpoints/step-00000005");
        QTest::newRow("killed") << QStringList{} << "failed"
                                << "" << true << true;
        QTest::newRow("stopped") << QStringList{} << "stopped"
                                 << "" << true << true;
        QTest::newRow("killed while it wrote its first")
            << QStringList{"checkpoints/.step-00000005"} << "failed"
            << "" << true << true;
        QTest::newRow("done") << QStringList{} << "done"
                              << "" << false << false;
        QTest::newRow("has its model") << QStringList{"model"} << "failed"
                                       << "" << false << false;
        QTest::newRow("has its model elsewhere") << QStringList{"elsewhere/model"} << "failed"
                                                 << "" << false << false;
        QTest::newRow("its checkpoint is broken") << QStringList{} << "failed"
                                                  << "broken" << false << false;
        QTest::newRow("its checkpoint was set aside")
            << QStringList{"checkpoints/broken-step-00000005"} << "failed"
            << "" << false << false;
        QTest::newRow("its checkpoint was removed") << QStringList{} << "failed"
                                                    << "deleted" << true << true;
        QTest::newRow("a checkpoint the history does not have")
            << QStringList{checkpoint} << "failed"
            << "" << true << false;
        QTest::newRow("one in another folder") << QStringList{"elsewhere/" + checkpoint} << "failed"
                                               << "" << true << false;
    }

    void aRunThatEndedBeforeItsFirstCheckpointStartsAgain()
    {
        QFETCH(QStringList, lies);
        QFETCH(QString, status);
        QFETCH(QString, kept);
        QFETCH(bool, resumable);
        QFETCH(bool, startsAgain);
        StoreRig rig;
        const std::int64_t id = beginIn(rig, "u1");
        for (const QString& folder : lies)
            QVERIFY(QDir(rig.folder.path())
                        .mkpath(folder.startsWith("elsewhere") ? folder : "run/" + folder));
        if (!kept.isEmpty()) {
            const std::string state = kept.toStdString();
            QVERIFY(rig.store->addCheckpoint(id, {5, "/c/5", 1, state, 1, 1}, "").ok());
        }
        QVERIFY(rig.store->endRun(id, *runStatusOf(status.toStdString()), 1, "").ok());

        const RunRow row = rig.openReader()->run(id).value();

        QCOMPARE(row.resumable, resumable);
        QCOMPARE(row.startsAgain, startsAgain);
    }

    void aRunWhoseFolderAnotherHasTakenDoesNotStartAgain()
    {
        StoreRig rig;
        const std::int64_t first = beginIn(rig, "u1");
        QVERIFY(rig.store->endRun(first, RunStatus::Failed, 1, "").ok());
        QVERIFY(rig.openReader()->run(first).value().startsAgain);

        const std::int64_t second = beginIn(rig, "u2");
        QVERIFY(rig.store->endRun(second, RunStatus::Failed, 1, "").ok());

        QVERIFY(!rig.openReader()->run(first).value().resumable);
        QVERIFY(rig.openReader()->run(second).value().startsAgain);
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

MR_TEST(TestRunReader)

} // namespace mr::test::tst_run_reader

#include "tst_run_reader.moc"
