#include "core/store/store_rig.h"
#include "core/telemetry/recorder.h"
#include "core/telemetry/run_folder.h"
#include "core/telemetry/step_json.h"
#include "core/telemetry/trace_sampler.h"
#include "support/test_room.h"

#include <QDir>
#include <QFile>
#include <QtTest>

#include <atomic>
#include <semaphore>
#include <thread>

namespace mr::test::tst_recorder {

namespace {

struct RecorderRig : StoreRig {
    std::int64_t runId = begin("u1");
    std::string runDir = folder.path().toStdString();

    RecorderRig() { segmentBegun = store->beginSegment(runId, 0).ok(); }

    std::unique_ptr<Recorder> start(RecorderHooks hooks = {}) const
    {
        auto recorder = Recorder::start(*store, runId, runDir, std::move(hooks));
        return recorder.ok() ? std::move(recorder).value() : nullptr;
    }

    QByteArray file(const char* name) const
    {
        QFile f(folder.filePath(name));
        return f.open(QIODevice::ReadOnly) ? f.readAll() : QByteArray();
    }

    bool segmentBegun = false;
};

MachineSample sampleAt(std::int64_t timeMs)
{
    MachineSample sample;
    sample.timeMs = timeMs;
    sample[MachineMetric::HostCpu] = static_cast<double>(timeMs) / 1000.0;
    return sample;
}

// Time after the last sample of the processor use that the history has; 0: none.
std::int64_t samplesEndMs(const RecorderRig& rig)
{
    const auto counters = rig.openReader()->counters(rig.runId).value();
    return counters.empty() ? 0 : counters.front().endMs;
}

TraceEvent taskOf(StepIndex step)
{
    TraceEvent e;
    e.step = step;
    e.beginNs = 10;
    e.endNs = 20;
    return e;
}

} // namespace

class TestRecorder : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void flushedRecordsAreInTheStoreAndInTheFolder()
    {
        RecorderRig rig;
        const auto recorder = rig.start();
        recorder->step(StoreRig::step(1, 3.0));
        recorder->step(StoreRig::step(2, 2.5));
        recorder->scalar("eval_loss", {2, 9, 2.25});
        recorder->message(EventLevel::Warning, "nan", 2, 9, "step skipped");
        QVERIFY(recorder->flush().ok());

        const auto reader = rig.openReader();
        QCOMPARE(reader->steps(rig.runId, 0, 9).value().size(), std::size_t{2});
        QCOMPARE(reader->scalars(rig.runId, "eval_loss", 0).value().size(), std::size_t{1});
        QCOMPARE(reader->events(rig.runId, 0).value().size(), std::size_t{1});
        const std::string lines =
            toJson(StoreRig::step(1, 3.0)) + "\n" + toJson(StoreRig::step(2, 2.5)) + "\n";
        QCOMPARE(rig.file("steps.jsonl"), QByteArray::fromStdString(lines));
        QCOMPARE(rig.file("events.jsonl").count('\n'), 2);
    }

    void closeKeepsWhatWasNotFlushed()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        for (std::int64_t s = 1; s <= 10; ++s)
            recorder->step(StoreRig::step(s, 1.0));
        QVERIFY(recorder->close().ok());
        QCOMPARE(rig.openReader()->steps(rig.runId, 0, 99).value().size(), std::size_t{10});
        QVERIFY(recorder->close().ok()); // a second time is harmless
        QVERIFY(recorder->flush().ok());
    }

    void hooksSeeMessagesAfterTheirStep()
    {
        RecorderRig rig;
        std::string seen; // written on the telemetry thread, read after close()
        const auto note = [&](char kind, std::int64_t step) {
            seen += kind;
            seen += std::to_string(step);
        };
        RecorderHooks hooks;
        hooks.onStep = [&](const StepRow& row) { note('s', row.step); };
        hooks.onScalar = [&](std::string_view, const ScalarRow& row) { note('e', row.step); };
        hooks.onMessage = [&](const EventRow& row) { note('m', row.step); };
        hooks.onCommitted = [&] { seen += "."; };
        auto recorder = rig.start(hooks);
        recorder->message(EventLevel::Info, "started", 0, 0, "go");
        recorder->step(StoreRig::step(1, 1.0));
        recorder->scalar("eval_loss", {1, 5, 1.0});
        recorder->step(StoreRig::step(2, 1.0));
        recorder->message(EventLevel::Info, "x", 2, 0, "y");
        QVERIFY(recorder->close().ok());
        std::erase(seen, '.');
        QCOMPARE(seen, std::string("m0s1e1s2m2"));
    }

    void flushedSamplesAreInTheStoreAndInTheFolder()
    {
        RecorderRig rig;
        const auto recorder = rig.start();
        recorder->sample(sampleAt(1000));
        recorder->sample(sampleAt(2000));
        QVERIFY(recorder->flush().ok());

        QCOMPARE(samplesEndMs(rig), 3000);
        QCOMPARE(rig.file("samples.jsonl"),
            QByteArray("{\"event\":\"sample\",\"time_ms\":1000,\"host.cpu\":1}\n"
                       "{\"event\":\"sample\",\"time_ms\":2000,\"host.cpu\":2}\n"));
    }

    void aYoungRunIsShownAtOnce()
    {
        RecorderRig rig;
        const auto recorder = rig.start();
        recorder->sample(sampleAt(1000));

        QTRY_COMPARE(samplesEndMs(rig), 2000);
    }

    void aLongRunIsWrittenEveryTenSeconds()
    {
        RecorderRig rig;
        std::atomic<int> commits = 0;
        RecorderHooks hooks;
        hooks.onCommitted = [&] { ++commits; };
        const auto recorder = rig.start(hooks);
        constexpr std::int64_t kHourMs = 3'600'000;
        for (std::int64_t s = 0; s < 9; ++s)
            recorder->sample(sampleAt(kHourMs + s * 1000));
        QTRY_COMPARE(rig.file("samples.jsonl").count('\n'), 9); // the folder has them at once
        QCOMPARE(samplesEndMs(rig), 0);

        recorder->sample(sampleAt(kHourMs + 9000));

        QTRY_COMPARE(samplesEndMs(rig), kHourMs + 10'000);
        QCOMPARE(commits.load(), 1);
    }

    void closeKeepsSamplesThatWait()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        recorder->sample(sampleAt(3'600'000));
        QVERIFY(recorder->close().ok());
        QCOMPARE(samplesEndMs(rig), 3'601'000);
    }

    void moreStepsThanTheQueueHoldsAreAllKept()
    {
        RecorderRig rig;
        std::atomic<std::int64_t> count = 0;
        RecorderHooks hooks;
        hooks.onStep = [&](const StepRow&) { ++count; };
        auto recorder = rig.start(hooks);
        for (std::int64_t s = 1; s <= 10'000; ++s)
            recorder->step(StoreRig::step(s, 1.0));
        QVERIFY(recorder->close().ok());
        QCOMPARE(count.load(), 10'000);
        QCOMPARE(rig.openReader()->run(rig.runId).value().tokens, std::int64_t{10'000} * 4096);
    }

    void fullRingsDropAndCount()
    {
        RecorderRig rig;
        std::binary_semaphore draining{0};
        std::binary_semaphore goOn{0};
        RecorderHooks hooks;
        hooks.onStep = [&](const StepRow&) {
            draining.release();
            goOn.acquire(); // the telemetry thread is held here
        };
        auto recorder = rig.start(hooks);
        Recorder::Producer& one = recorder->producer("one");
        Recorder::Producer& other = recorder->producer("other");
        recorder->step(StoreRig::step(1, 1.0));
        draining.acquire();
        const auto record = [](Recorder::Producer& producer, int count) {
            for (int i = 0; i < count; ++i)
                producer.record(taskOf(1));
        };
        {
            std::jthread first([&] { record(one, 5000); });
            std::jthread second([&] { record(other, 4096); });
        }
        QCOMPARE(recorder->droppedSpans(), std::uint64_t{5000 - 4096});
        goOn.release();
        QVERIFY(recorder->close().ok());
    }

    void failingDatabaseLeavesTheFolderComplete()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        QVERIFY(rig.change("ALTER TABLE step RENAME TO hidden").ok());
        recorder->step(StoreRig::step(1, 1.0));
        QVERIFY(!recorder->flush().ok());
        recorder->step(StoreRig::step(2, 1.0));
        QVERIFY(!recorder->flush().ok());
        QCOMPARE(rig.file("steps.jsonl").count('\n'), 2);
        // Once it works again, it gets the missed rows.
        QVERIFY(rig.change("ALTER TABLE hidden RENAME TO step").ok());
        recorder->step(StoreRig::step(3, 1.0));
        QVERIFY(!recorder->close().ok()); // the first failure
        QCOMPARE(rig.openReader()->steps(rig.runId, 0, 9).value().size(), std::size_t{3});
    }

    void aFailureOfTheHistoryAndItsEndAreSaidOnce()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        QVERIFY(rig.change("ALTER TABLE step RENAME TO hidden").ok());
        for (std::int64_t s = 1; s <= 3; ++s) {
            recorder->step(StoreRig::step(s, 1.0));
            QVERIFY(!recorder->flush().ok());
        }
        QVERIFY(rig.change("ALTER TABLE hidden RENAME TO step").ok());
        recorder->step(StoreRig::step(4, 1.0));
        (void)recorder->flush().ok();
        QVERIFY(!recorder->close().ok());

        QCOMPARE(rig.file("events.jsonl").count("history_failed"), 1);
        QCOMPARE(rig.file("events.jsonl").count("history_back"), 1);
        QCOMPARE(rig.openReader()->events(rig.runId, 0).value().size(), std::size_t{2});
    }

    void checkpointsWaitForAHistoryThatFails()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        QVERIFY(rig.change("ALTER TABLE checkpoint RENAME TO hidden").ok());
        CheckpointRow row;
        row.path = "/runs/u1/checkpoints/step-00000001";
        row.state = "complete";
        row.step = 1;
        recorder->checkpoint(row, "h");
        row.path = "/runs/u1/checkpoints/step-00000002";
        row.step = 2;
        recorder->checkpoint(row, "h");
        recorder->checkpointState("/runs/u1/checkpoints/step-00000001", "deleted");
        recorder->checkpointState("/runs/u1/never", "deleted"); // is no reason to stop
        QVERIFY(!recorder->flush().ok());
        QVERIFY(rig.change("ALTER TABLE hidden RENAME TO checkpoint").ok());
        (void)recorder->close().ok();

        const auto rows = rig.openReader()->checkpoints(rig.runId).value();
        QCOMPARE(rows.size(), std::size_t{2});
        QCOMPARE(rows[0].state, std::string("deleted"));
        QCOMPARE(rows[1].state, std::string("complete"));
    }

    void aLockedHistoryIsNotWaitedForLong()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        auto other = Database::open(rig.path, OpenMode::ReadWriteCreate);
        QVERIFY(other.ok() && other.value()->script("BEGIN EXCLUSIVE").ok());
        recorder->step(StoreRig::step(1, 1.0));
        QElapsedTimer timer;
        timer.start();
        for (int i = 0; i < 20; ++i)
            (void)recorder->flush().ok();
        const qint64 waitedMs = timer.elapsed();
        QVERIFY(other.value()->script("ROLLBACK").ok());
        (void)recorder->close().ok();

        QVERIFY2(waitedMs < 4500, QByteArray::number(waitedMs).constData()); // SQLite waits 5 s
        QCOMPARE(rig.openReader()->steps(rig.runId, 0, 9).value().size(), std::size_t{1});
    }

    void aHistoryThatIsDeletedIsSaidOnce()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        QVERIFY(QFile::remove(QString::fromStdString(rig.path)));
        for (std::int64_t s = 1; s <= 3; ++s) {
            recorder->step(StoreRig::step(s, 1.0));
            (void)recorder->flush().ok();
        }
        (void)recorder->close().ok();

        QCOMPARE(rig.file("events.jsonl").count("was deleted or replaced"), 1);
        QCOMPARE(rig.file("steps.jsonl").count('\n'), 3);
    }

    void folderThatIsNotThereIsRefused()
    {
        RecorderRig rig;
        const auto recorder = Recorder::start(*rig.store, rig.runId, rig.runDir + "/none", {});
        QVERIFY(!recorder.ok());
        QVERIFY(recorder.status().message().find("none") != std::string::npos);
    }

    void lineCutByACrashDoesNotSpoilTheNext()
    {
        RecorderRig rig;
        {
            QFile f(rig.folder.filePath("steps.jsonl"));
            QVERIFY(f.open(QIODevice::WriteOnly));
            f.write("{\"event\":\"st");
        }
        auto recorder = rig.start();
        recorder->step(StoreRig::step(1, 1.0));
        QVERIFY(recorder->close().ok());
        QCOMPARE(rig.file("steps.jsonl").split('\n').at(1),
            QByteArray::fromStdString(toJson(StoreRig::step(1, 1.0))));
    }

    void timelineOfASampledStepIsKept()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        Recorder::Producer& producer = recorder->producer("engine");
        for (std::int64_t s = 1; s <= 60; ++s) {
            producer.record(taskOf(s));
            recorder->step(StoreRig::step(s, 1.0));
        }
        QVERIFY(recorder->close().ok());
        QVERIFY(rig.file("trace-50.json").contains("\"step\":50"));
        QVERIFY(!rig.file("trace-50.json").contains("\"step\":49"));
        QCOMPARE(rig.number("SELECT count(*) FROM trace WHERE step=50 AND bytes>0"), 1);
        QCOMPARE(QDir(rig.folder.path()).entryList({"trace-*.json"}).size(), 1);
    }

    // Its times are zero: it would stretch the picture to the start of the machine.
    void aTaskThatDidNotRunIsNoPartOfTheTimeline()
    {
        RecorderRig rig;
        auto recorder = rig.start();
        Recorder::Producer& producer = recorder->producer("engine");
        TraceEvent skipped = taskOf(50);
        skipped.task = TaskKind::SelectColumns;
        skipped.beginNs = skipped.endNs = 0;
        producer.record(taskOf(50));
        producer.record(skipped);
        recorder->step(StoreRig::step(50, 1.0));
        QVERIFY(recorder->close().ok());
        QVERIFY(rig.file("trace-50.json").contains("\"step\":50"));
        QVERIFY(!rig.file("trace-50.json").contains("SelectColumns"));
    }

    void timelinesAreFewHoweverLongTheRun()
    {
        QTemporaryDir folder;
        TraceSampler sampler(folder.path().toStdString());
        for (std::int64_t s = 1; s <= 20'000; ++s) {
            sampler.add(taskOf(s));
            StepRow row = StoreRig::step(s, 1.0);
            row.wallUs = 1000 * s; // slower and slower
            sampler.stepEnded(row);
        }
        QCOMPARE(QDir(folder.path()).entryList({"trace-*.json"}).size(), 20);
    }

    void lostHistoryIsRebuiltFromTheFolder()
    {
        RecorderRig rig;
        NewRun run = StoreRig::newRun("u1");
        run.totalSteps = 6;
        QVERIFY(saveRunRecord(rig.runDir, run).ok());
        auto recorder = rig.start();
        for (std::int64_t s = 1; s <= 5; ++s)
            recorder->step(StoreRig::step(s, 9.0));
        recorder->scalar("eval_loss", {4, 9, 2.25});
        for (std::int64_t s = 1; s <= 5; ++s)
            recorder->sample(sampleAt(s * 1000));
        QVERIFY(recorder->close().ok());
        recorder = rig.start(); // resumed from step 3
        MachineSample again = sampleAt(3000);
        again[MachineMetric::HostCpu] = 77.0;
        recorder->sample(again);
        for (std::int64_t s = 4; s <= 6; ++s)
            recorder->step(StoreRig::step(s, 8.0));
        QVERIFY(recorder->close().ok());

        auto opened = RunStore::open(rig.folder.filePath("other.db").toStdString());
        QVERIFY(opened.ok());
        RunStore& fresh = *opened.value();
        for (int i = 0; i < 2; ++i) { // a second time changes nothing
            const auto id = rebuildFromRunFolder(fresh, rig.runDir);
            QVERIFY2(id.ok(), id.status().message().c_str());
            auto reading = RunReader::open(fresh.path());
            QVERIFY(reading.ok());
            RunReader& reader = *reading.value();
            const RunRow row = reader.run(1).value();
            QCOMPARE(row.status, RunStatus::Done);
            QCOMPARE(row.name, run.name);
            QCOMPARE(row.lastStep, 6);
            QCOMPARE(row.tokens, 6 * 4096);
            QCOMPARE(row.bestEval, 2.25);
            const auto steps = reader.steps(1, 0, 99).value();
            QCOMPARE(steps.size(), std::size_t{6});
            QCOMPARE(steps[2].loss, 9.0);
            QCOMPARE(steps[3].loss, 8.0);
            const auto cpu = reader.counter(1, "host.cpu", {0, 9000, 9}).value().entries;
            QCOMPARE(cpu.size(), std::size_t{4});
            QCOMPARE(cpu[2].mean, 2.0F);
            QCOMPARE(cpu[3].mean, 77.0F);
        }
    }

    void folderWithoutARecordIsRefusedByName()
    {
        RecorderRig rig;
        QVERIFY(!rebuildFromRunFolder(*rig.store, rig.runDir).ok());
        QFile f(rig.folder.filePath("run.json"));
        QVERIFY(f.open(QIODevice::WriteOnly));
        f.write("[]");
        f.close();
        const Status refused = rebuildFromRunFolder(*rig.store, rig.runDir).status();
        QCOMPARE(refused.kind(), ErrorKind::DataCorrupt);
        QVERIFY(refused.message().find("run.json") != std::string::npos);
    }
};

MR_TEST(TestRecorder)

} // namespace mr::test::tst_recorder

#include "tst_recorder.moc"
