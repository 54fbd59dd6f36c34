#include "core/store/run_store.h"
#include "core/store/store_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <limits>
#include <thread>

namespace mr::test::tst_run_store {

class TestRunStore : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void beginRunKeepsEverythingItWasGiven()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        const RunRow run = rig.openReader()->run(id).value();
        QCOMPARE(run.status, RunStatus::Starting);
        QCOMPARE(run.uuid, std::string("u1"));
        QCOMPARE(run.modelName, std::string("tiny"));
        QCOMPARE(run.datasetName, std::string("talks.jsonl"));
        QCOMPARE(run.totalSteps, 300);
        QVERIFY(run.createdMs > 0);
        QVERIFY(!run.resumable);
        QCOMPARE(rig.store->findRun("u1").value(), id);
        QCOMPARE(rig.store->findRun("u2").status().kind(), ErrorKind::InvalidArgument);
        QVERIFY(!rig.store->beginRun(StoreRig::newRun("u1")).ok());
    }

    void aNewHistoryIsItsOwnersAlone()
    {
        StoreRig rig;
        QVERIFY(rig.begin("u1") > 0);
        const QFile::Permissions others =
            QFile::ReadGroup | QFile::WriteGroup | QFile::ReadOther | QFile::WriteOther;
        for (const char* beside : {"", "-wal"})
            QCOMPARE(QFile::permissions(QString::fromStdString(rig.path + beside)) & others,
                QFile::Permissions());
    }

    void aFileThatWasDeletedOrReplacedIsNoticed()
    {
        StoreRig rig;
        const QString file = QString::fromStdString(rig.path);
        QVERIFY(!rig.store->isGone());
        QVERIFY(QFile::rename(file, file + QStringLiteral("-moved")));
        QVERIFY(rig.store->isGone());
        QVERIFY(QFile::copy(file + QStringLiteral("-moved"), file));
        QVERIFY(rig.store->isGone());
        QVERIFY(QFile::remove(file));
        QVERIFY(QFile::rename(file + QStringLiteral("-moved"), file));
        QVERIFY(!rig.store->isGone());
    }

    void stepsThatAreThereAreCounted()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        StoreBatch batch;
        batch.steps = {StoreRig::step(1, 1.0), StoreRig::step(2, 1.0), StoreRig::step(5, 1.0)};
        QVERIFY(rig.store->append(rig.begin("u2"), batch).ok());
        QVERIFY(rig.store->append(id, batch).ok());
        QVERIFY(rig.store->sync().ok());
        QCOMPARE(rig.store->countSteps(id, 4).value(), 2);
        QCOMPARE(rig.store->countSteps(id, 5).value(), 3);
    }

    void whatWasAskedForIsKeptBesideWhatWasChosen()
    {
        StoreRig rig;
        NewRun run = StoreRig::newRun("u1");
        run.askedJson = R"({"threads":0})";
        const std::int64_t id = rig.store->beginRun(run).value();
        QVERIFY(rig.store->setConfig(id, R"({"threads":8})").ok());

        const RunRow read = rig.openReader()->run(id).value();

        QCOMPARE(read.askedJson, run.askedJson);
        QCOMPARE(read.configJson, std::string(R"({"threads":8})"));
        QVERIFY(rig.openReader()->run(rig.begin("u2")).value().askedJson.empty());
    }

    void aHistoryOfFormatOneIsReadAndThenMigrated()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        rig.store.reset();
        QVERIFY(rig.change("ALTER TABLE run DROP COLUMN asked_json; DROP TABLE interval;"
                           "DROP INDEX export_run; ALTER TABLE export DROP COLUMN verdict_json;"
                           "PRAGMA user_version=1")
                    .ok());

        const auto reader = rig.openReader();
        QVERIFY(reader != nullptr);
        const Result<RunRow> before = reader->run(id);
        QVERIFY2(before.ok(), before.status().message().c_str());
        QVERIFY(Result(before).value().askedJson.empty());

        rig.store = rig.openStore();
        QVERIFY(rig.store != nullptr);
        NewRun run = StoreRig::newRun("u2");
        run.askedJson = R"({"threads":0})";
        const std::int64_t next = rig.store->beginRun(run).value();
        QCOMPARE(rig.openReader()->run(next).value().askedJson, run.askedJson);
        QCOMPARE(rig.openReader()->run(id).value().name, std::string("run u1"));
    }

    void anAnswerComesBackAsItWasGivenAndTheLastCounts()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        AnswerRow row;
        row.step = 5;
        row.id = 77;
        row.prompt = {"What?", "Be brief.", PromptForm::Chat, 31, 0.5, 0.9, ~std::uint64_t{0}};
        row.answer = {"<s>What?", true, "So", 3, 1, false, 0.25};
        StoreBatch batch;
        batch.answers = {row};
        QVERIFY(rig.store->append(id, batch).ok());
        row.answer = {"<s>What?", true, "So it is.\xFF", 3, 4, true, 1.5};
        row.state = AnswerState::Failed;
        row.message = "no room";
        AnswerRow later = row;
        later.step = 9;
        batch.answers = {row, later};

        QVERIFY(rig.store->append(id, batch).ok());

        const std::vector<AnswerRow> rows = rig.openReader()->answers(id).value();
        QCOMPARE(rows.size(), std::size_t{2});
        const AnswerRow& read = rows[0];
        QCOMPARE(read.step, 5);
        QCOMPARE(read.id, 77);
        QCOMPARE(read.prompt.text, row.prompt.text);
        QCOMPARE(read.prompt.system, row.prompt.system);
        QVERIFY(read.prompt.form == row.prompt.form);
        QCOMPARE(read.prompt.maxTokens, row.prompt.maxTokens);
        QCOMPARE(read.prompt.temperature, row.prompt.temperature);
        QCOMPARE(read.prompt.topP, row.prompt.topP);
        QCOMPARE(read.prompt.seed, row.prompt.seed);
        QCOMPARE(read.answer.read, row.answer.read);
        QCOMPARE(read.answer.byTemplate, true);
        QCOMPARE(read.answer.text, row.answer.text);
        QCOMPARE(read.answer.tokens, 4);
        QCOMPARE(read.answer.promptTokens, 3);
        QCOMPARE(read.answer.ended, true);
        QCOMPARE(read.answer.seconds, 1.5);
        QVERIFY(read.state == AnswerState::Failed);
        QCOMPARE(read.message, row.message);
        QCOMPARE(rig.number("SELECT count(*) FROM prompt"), 1); // one row for one text
        QVERIFY(rig.store->rewind(id, 5).ok());
        QCOMPARE(rig.openReader()->answers(id).value().size(), std::size_t{1});
    }

    void configurationIsFlattened()
    {
        StoreRig rig;
        rig.begin("u1");
        QCOMPARE(rig.number("SELECT count(*) FROM run_param WHERE key='policyOptions.order' AND"
                            " value='by-layer' AND num IS NULL"),
            1);
        QCOMPARE(
            rig.number("SELECT count(*) FROM run_param WHERE key='learningRate' AND num=0.002"), 1);
    }

    void anotherConfigurationTakesThePlaceOfTheFirst()
    {
        StoreRig rig;
        const std::int64_t other = rig.begin("u0");
        const std::int64_t id = rig.begin("u1");
        const std::string config = R"({"policy":"zero-offload","policyOptions":{}})";

        QVERIFY(rig.store->setConfig(id, config).ok());

        QCOMPARE(rig.openReader()->run(id).value().configJson, config);
        QVERIFY(rig.openReader()->run(other).value().configJson != config);
        QCOMPARE(rig.number("SELECT count(*) FROM run_param WHERE run_id=2 AND key='policy' AND"
                            " value='zero-offload'"),
            1);
        QCOMPARE(
            rig.number("SELECT count(*) FROM run_param WHERE run_id=2 AND key='learningRate'"), 0);
        QCOMPARE(rig.number("SELECT count(DISTINCT config_hash) FROM run"), 2);
        QCOMPARE(
            rig.number("SELECT count(*) FROM run_param WHERE run_id=1 AND key='learningRate'"), 1);
        QVERIFY(!rig.store->setConfig(id, "[]").ok());
        QCOMPARE(rig.openReader()->run(id).value().configJson, config);
    }

    void brokenConfigurationIsRefusedWhole()
    {
        StoreRig rig;
        NewRun run = StoreRig::newRun("u1");
        run.configJson = "{\"a\":";
        QVERIFY(!rig.store->beginRun(run).ok());
        run.configJson = "[1]";
        QCOMPARE(rig.store->beginRun(run).status().kind(), ErrorKind::InvalidArgument);
        QCOMPARE(rig.number("SELECT count(*) FROM run"), 0);
        QVERIFY(rig.store->beginRun(StoreRig::newRun("u1")).ok());
    }

    void modelAndDatasetAreKeptOnce()
    {
        StoreRig rig;
        rig.begin("u1");
        rig.begin("u2");
        QCOMPARE(rig.number("SELECT count(*) FROM model"), 1);
        QCOMPARE(rig.number("SELECT count(*) FROM dataset"), 1);
    }

    void summaryFollowsTheSteps()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        QVERIFY(rig.store->append(id, StoreRig::steps(1, 3)).ok());
        QVERIFY(rig.store->append(id, StoreRig::steps(4, 5)).ok());
        const RunRow run = rig.openReader()->run(id).value();
        QCOMPARE(run.status, RunStatus::Running);
        QCOMPARE(run.lastStep, 5);
        QCOMPARE(run.tokens, 5 * 4096);
        QCOMPARE(run.computeUs, 5 * 700);
        QCOMPARE(run.stallUs, 5 * 300);
        QCOMPARE(run.activeUs, 10'000); // the clock of step 5, more than 5 ms of steps
        QCOMPARE(run.devicePeakBytes, 1005);
        QCOMPARE(run.hostPeakBytes, 2005);
        QCOMPARE(run.lastLoss, 9.95);
        QCOMPARE(rig.number("SELECT length(spark) FROM run"), 5 * 4);
    }

    void sameRowsTwiceCountOnce()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        StoreBatch batch = StoreRig::steps(1, 4);
        batch.scalars.push_back({"eval_loss", {2, 5, 3.0}});
        batch.events.push_back({0, 2, 5, EventLevel::Warning, "nan", "step skipped"});
        QVERIFY(rig.store->append(id, batch).ok());
        QVERIFY(rig.store->append(id, batch).ok());
        const RunRow run = rig.openReader()->run(id).value();
        QCOMPARE(run.tokens, 4 * 4096);
        QCOMPARE(rig.openReader()->events(id, 0).value().size(), std::size_t{1});
        QCOMPARE(rig.openReader()->scalars(id, "eval_loss", -1).value().size(), std::size_t{1});
    }

    void bestEvaluationIsTheSmallestFinite()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        StoreBatch batch;
        batch.scalars = {{"eval_loss", {10, 1, 3.0}}, {"eval_loss", {20, 2, 2.5}},
            {"eval_loss", {30, 3, std::numeric_limits<double>::quiet_NaN()}},
            {"eval_loss", {40, 4, 2.75}}, {"other", {40, 4, 0.1}}};
        QVERIFY(rig.store->append(id, batch).ok());
        const RunRow run = rig.openReader()->run(id).value();
        QCOMPARE(run.bestEval, 2.5);
        QCOMPARE(run.bestEvalStep, 20);
    }

    void theBaseIsNoResultOfTheRun()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        StoreBatch batch = StoreRig::steps(1, 8);
        batch.scalars = {
            {"eval_loss", {0, 1, 1.5}}, {"eval_loss", {4, 8, 3.0}}, {"eval_loss", {8, 16, 4.0}}};
        QVERIFY(rig.store->append(id, batch).ok());

        RunRow run = rig.openReader()->run(id).value();
        QCOMPARE(run.firstEval, 1.5);
        QCOMPARE(run.bestEval, 3.0);
        QCOMPARE(run.bestEvalStep, 4);
        QCOMPARE(run.lastEval, 4.0);
        QCOMPARE(run.lastEvalStep, 8);
        QCOMPARE(rig.number("SELECT best_eval_step FROM run"), 4);
        // As earlier programs kept it.
        QVERIFY(rig.change("UPDATE run SET best_eval=1.5, best_eval_step=0").ok());
        run = rig.openReader()->run(id).value();
        QCOMPARE(run.bestEval, 3.0);
        QCOMPARE(run.bestEvalStep, 4);
        QVERIFY(rig.store->rewind(id, 3).ok());
        run = rig.openReader()->run(id).value();
        QVERIFY(std::isnan(run.bestEval) && std::isnan(run.lastEval));
        QCOMPARE(run.bestEvalStep, -1);
        QCOMPARE(run.lastEvalStep, -1);
        QCOMPARE(run.firstEval, 1.5);
    }

    void goingBackRemovesWhatCameAfterAndStaysInTheSegment()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        QVERIFY(rig.store->append(id, StoreRig::steps(1, 8)).ok());

        QVERIFY(rig.store->rewind(id, 5).ok());

        const RunRow run = rig.openReader()->run(id).value();
        QCOMPARE(run.status, RunStatus::Running);
        QCOMPARE(run.lastStep, 5);
        QCOMPARE(rig.openReader()->steps(id, 0, 100).value().size(), std::size_t{5});
        QCOMPARE(rig.number("SELECT count(*) FROM segment"), 1);
        QVERIFY(rig.store->append(id, StoreRig::steps(6, 7)).ok());
        QCOMPARE(rig.openReader()->run(id).value().lastStep, 7);
        QCOMPARE(rig.store->rewind(77, 0).kind(), ErrorKind::InvalidArgument);
    }

    void resumingRemovesWhatCameAfter()
    {
        StoreRig rig;
        const std::int64_t before = rig.begin("u0");
        const std::int64_t id = rig.begin("u1");
        const std::int64_t after = rig.begin("u2");
        QVERIFY(rig.store->append(before, StoreRig::steps(1, 9)).ok());
        QVERIFY(rig.store->append(after, StoreRig::steps(1, 9)).ok());
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        StoreBatch batch = StoreRig::steps(1, 8);
        batch.scalars = {{"eval_loss", {4, 8, 3.0}}, {"eval_loss", {8, 16, 2.0}}};
        QVERIFY(rig.store->append(id, batch).ok());
        QVERIFY(rig.store->endRun(id, RunStatus::Failed, 4, "disk").ok());

        QVERIFY(rig.store->beginSegment(id, 5).ok());
        const RunRow run = rig.openReader()->run(id).value();
        QCOMPARE(run.status, RunStatus::Running);
        QCOMPARE(run.lastStep, 5);
        QCOMPARE(run.tokens, 5 * 4096);
        QCOMPARE(run.computeUs, 5 * 700);
        QCOMPARE(run.stallUs, 5 * 300);
        QCOMPARE(run.lastLoss, 9.95);
        QCOMPARE(run.bestEval, 3.0);
        QCOMPARE(run.bestEvalStep, 4);
        QCOMPARE(run.endedMs, 0);
        QCOMPARE(rig.openReader()->steps(id, 0, 100).value().size(), std::size_t{5});
        QCOMPARE(rig.openReader()->steps(before, 0, 100).value().size(), std::size_t{9});
        QCOMPARE(rig.openReader()->steps(after, 0, 100).value().size(), std::size_t{9});
        QCOMPARE(rig.number("SELECT count(*) FROM segment WHERE run_id=2"), 2);
        QCOMPARE(rig.number("SELECT first_step FROM segment WHERE run_id=2 AND seg=2"), 6);
    }

    void runOfAnotherLivingProcessIsNotTaken()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        // Process 1 lives; the boot text is made that of process 1 by this machine's own rule.
        QFile stat("/proc/1/stat");
        QFile boot("/proc/sys/kernel/random/boot_id");
        QVERIFY(stat.open(QIODevice::ReadOnly) && boot.open(QIODevice::ReadOnly));
        const QByteArray line = stat.readAll();
        const QByteArray start = line.mid(line.lastIndexOf(')') + 2).split(' ').at(19);
        const QByteArray sql =
            "UPDATE segment SET pid=1, boot_id='" + boot.readAll().trimmed() + ":" + start + "'";
        QVERIFY(rig.change(sql.constData()).ok());
        const Status refused = rig.store->beginSegment(id, 0);
        QVERIFY(!refused.ok());
        QVERIFY(refused.message().find("process 1") != std::string::npos);
    }

    void endedRunKeepsItsReason()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        QVERIFY(rig.store->append(id, StoreRig::steps(1, 2)).ok());
        QVERIFY(rig.store->endRun(id, RunStatus::Failed, 4, "disk full").ok());
        const RunRow run = rig.openReader()->run(id).value();
        QCOMPARE(run.status, RunStatus::Failed);
        QCOMPARE(run.exitReason, std::string("disk full"));
        QVERIFY(run.endedMs >= run.startedMs);
        QCOMPARE(rig.number("SELECT last_step FROM segment WHERE end_reason='failed'"), 2);
    }

    void unknownRunsAndWordsAreRefused()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QCOMPARE(rig.store->setStatus(77, RunStatus::Running).kind(), ErrorKind::InvalidArgument);
        QCOMPARE(rig.store->beginSegment(77, 0).kind(), ErrorKind::InvalidArgument);
        QVERIFY(!runStatusOf("sleeping"));
        QCOMPARE(rig.store->setCheckpointState("/no", "broken").kind(), ErrorKind::InvalidArgument);
        QVERIFY(rig.store->setStatus(id, RunStatus::Saving).ok());
    }

    void checkpointWrittenAgainReplacesItsRow()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->addCheckpoint(id, {20, "/c/20", 0, "writing", 1, 0}, "").ok());
        QVERIFY(rig.store->addCheckpoint(id, {20, "/c/20", 55, "complete", 1, 9}, "ab").ok());
        QVERIFY(rig.store->setCheckpointState("/c/20", "verified").ok());
        const auto rows = rig.openReader()->checkpoints(id).value();
        QCOMPARE(rows.size(), std::size_t{1});
        QCOMPARE(rows[0].bytes, 55);
        QCOMPARE(rows[0].state, std::string("verified"));
        QCOMPARE(rows[0].writeMs, 9);
    }

    void theBestCheckpointIsTheLowestOfThoseThatAreKept()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        const double none = std::numeric_limits<double>::quiet_NaN();
        const auto best = [&] {
            std::int64_t step = -1;
            const std::vector<CheckpointRow> rows = rig.openReader()->checkpoints(id).value();
            for (const CheckpointRow& row : rows)
                if (row.best)
                    step = step < 0 ? row.step : -2;
            return step == rig.openReader()->run(id).value().bestCheckpointStep ? step : -3;
        };
        QCOMPARE(best(), -1);
        QVERIFY(rig.store->addCheckpoint(id, {5, "/c/5", 1, "complete", 1, 0, none}, "").ok());
        QCOMPARE(best(), -1);
        QVERIFY(rig.store->addCheckpoint(id, {10, "/c/10", 1, "complete", 1, 0, 2.5}, "").ok());
        QVERIFY(rig.store->addCheckpoint(id, {20, "/c/20", 1, "complete", 1, 0, 2.0}, "").ok());
        QVERIFY(rig.store->addCheckpoint(id, {30, "/c/30", 1, "complete", 1, 0, 2.0}, "").ok());
        QCOMPARE(best(), 30); // the newest of equal ones
        QVERIFY(rig.store->setCheckpointState("/c/30", "broken").ok());
        QCOMPARE(best(), 20);
        QVERIFY(rig.store->setCheckpointState("/c/20", "deleted").ok());
        QCOMPARE(best(), 10);
        QVERIFY(rig.store->addCheckpoint(id, {10, "/c/10", 1, "complete", 1, 0, none}, "").ok());
        QCOMPARE(best(), -1); // written again without an evaluation
    }

    void manyThreadsMayWrite()
    {
        StoreRig rig;
        const std::int64_t a = rig.begin("u1");
        const std::int64_t b = rig.begin("u2");
        const auto write = [&](std::int64_t id) {
            for (std::int64_t s = 1; s <= 20; ++s) {
                if (!rig.store->append(id, StoreRig::steps(s, s)).ok())
                    return;
            }
        };
        {
            std::jthread first(write, a);
            std::jthread second(write, b);
        }
        QCOMPARE(rig.openReader()->steps(a, 0, 100).value().size(), std::size_t{20});
        QCOMPARE(rig.openReader()->steps(b, 0, 100).value().size(), std::size_t{20});
    }
};

MR_TEST(TestRunStore)

} // namespace mr::test::tst_run_store

#include "tst_run_store.moc"
