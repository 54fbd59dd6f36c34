// A run without room for a checkpoint or its model: it pauses and loses nothing.
//
// The telemetry thread answers when the message of the pause arrives. The rig looks for room once
// an hour, so a run that goes on does so because of an answer.

#include "core/run/run_rig.h"
#include "core/store/sqlite.h"
#include "support/full_disk.h"
#include "support/test_room.h"

#include <QTest>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <thread>

namespace mr::test::tst_engine_full_disk {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> namesIn(const fs::path& folder)
{
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

using Names = std::vector<std::string>;

} // namespace

class TestEngineFullDisk : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void cleanup();
    void aCheckpointThatFailsAnywherePausesTheRunAndLosesNothing_data();
    void aCheckpointThatFailsAnywherePausesTheRunAndLosesNothing();
    void roomIsLookedForBeforeTheFirstByte();
    void itGoesOnByItselfWhenThereIsRoom();
    void aPausedRunDoesNotSpin();
    void aStopWhilePausedKeepsTheLastGoodCheckpoint();
    void aStopWhilePausedSavesIfThereIsRoomByThen();
    void aQuotaIsWaitedForWithoutWriting();
    void checkpointsGoToAnotherFolderAndAreFoundThere_data();
    void checkpointsGoToAnotherFolderAndAreFoundThere();
    void aFolderThatIsNotThereIsNotTaken();
    void itGoesOnWithoutTheCheckpointIfItMay();
    void aModelWithoutRoomIsWrittenByWhoResumes();
    void aRunFolderThatIsGoneIsWaitedFor();
    void aLockedHistoryEndsNothing();
    void theRecordsOfACheckpointAreOnTheDiskBeforeIt();
    void theHashOfAnOlderStepIsNotThatOfTheLast();
    void aRunFolderThatIsGonePromisesNoResume();
    void whoDoesNotWaitStopsOrSkips_data();
    void whoDoesNotWaitStopsOrSkips();

private:
    RunSpec spec(const std::string& name) const;
    // One answer for each pause that the run reports: `answers` in their order.
    using Step = std::function<void(Engine&)>;
    void onPause(std::vector<Step> answers);

    std::unique_ptr<RunRig> m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
    std::string m_hash;
    std::size_t m_pauses = 0;
    std::string m_text; // message of the last pause
    nlohmann::json m_data;
};

void again(Engine& engine)
{
    engine.answerPause({PauseAnswer::Kind::TryAgain, {}});
}

void without(Engine& engine)
{
    engine.answerPause({PauseAnswer::Kind::GoOnWithout, {}});
}

RunSpec TestEngineFullDisk::spec(const std::string& name) const
{
    RunSpec spec = m_rig->spec(name);
    spec.checkpointEvery = 4;
    return spec;
}

void TestEngineFullDisk::onPause(std::vector<Step> answers)
{
    m_rig->onDiskFull = OnDiskFull::Wait;
    m_rig->onMessage = [this, answers = std::move(answers)](Engine& engine, const EventRow& row) {
        if (row.code != "paused")
            return;
        m_text = row.text;
        m_data = nlohmann::json::parse(row.data);
        const std::size_t which = m_pauses++;
        if (which < answers.size())
            answers[which](engine);
        else
            engine.requestStop(); // no answer left: the test fails by the run's end
    };
}

void TestEngineFullDisk::initTestCase()
{
    m_rig = std::make_unique<RunRig>();
    const Outcome plain = m_rig->train(spec("plain"), *m_device);
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    m_hash = plain.progress.weightsHash;
}

void TestEngineFullDisk::cleanup()
{
    m_pauses = 0;
    m_rig->onMessage = {};
    m_rig->onDiskFull = OnDiskFull::Stop;
    m_rig->pauseCheck = std::chrono::hours(1);
    m_rig->saveFolder.clear();
}

void TestEngineFullDisk::aCheckpointThatFailsAnywherePausesTheRunAndLosesNothing_data()
{
    QTest::addColumn<int>("permille"); // part of a checkpoint that fits
    QTest::addColumn<int>("error");
    QTest::newRow("the first byte") << 0 << ENOSPC;
    QTest::newRow("in the weights") << 100 << ENOSPC;
    QTest::newRow("in the state") << 600 << ENOSPC;
    QTest::newRow("in what is written last") << 998 << ENOSPC;
    QTest::newRow("a quota") << 500 << EDQUOT;
    QTest::newRow("a broken disk") << 500 << EIO;
}

void TestEngineFullDisk::aCheckpointThatFailsAnywherePausesTheRunAndLosesNothing()
{
    QFETCH(int, permille);
    QFETCH(int, error);
    const RunSpec spec = this->spec("fails " + std::string(QTest::currentDataTag()));
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    FullDisk disk(folder.string());
    std::uint64_t one = 0;
    Names left;
    RunStatus status = RunStatus::Starting;
    onPause({[&](Engine& engine) {
        left = namesIn(folder);
        status = m_rig->row(engine.runId()).status;
        QCOMPARE(engine.state(), RunState::Paused);
        disk.heal();
        again(engine);
    }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4) {
            one = disk.bytesWritten();
            disk.failAfter(static_cast<std::int64_t>(one) * permille / 1000, error);
        }
    });

    QVERIFY(one > 10'000);
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(m_pauses, std::size_t{1});
    QCOMPARE(left, Names{"step-00000004"}); // nothing half written, nothing lost
    QCOMPARE(status, RunStatus::Paused);
    QCOMPARE(run.state, RunState::Finished);
    QVERIFY(run.unsaved.ok());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(namesIn(folder), (Names{"step-00000008", "step-00000012"}));
    QVERIFY2(contains(m_text, "the checkpoint of step 8 could not be written"), m_text.c_str());
    QVERIFY2(
        contains(m_text, error == EIO ? "Input/output error" : "no space left"), m_text.c_str());
    QVERIFY2(contains(m_text, "Paused: the disk is full") == (error != EIO), m_text.c_str());
    QVERIFY2(contains(m_text, "quota is reached") == (error == EDQUOT), m_text.c_str());
    QCOMPARE(m_data["quota"].get<bool>(), error == EDQUOT);
    QVERIFY(contains(m_rig->messages(run.id), "continued: "));
    QCOMPARE(m_rig->row(run.id).status, RunStatus::Done);
}

void TestEngineFullDisk::roomIsLookedForBeforeTheFirstByte()
{
    const RunSpec spec = this->spec("looks first");
    FullDisk disk(spec.outDir);
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    onPause({[&](Engine& engine) {
        after = disk.bytesWritten();
        disk.heal();
        again(engine);
    }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        before = disk.bytesWritten();
        if (step == 4)
            disk.sayFree(10'000);
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(m_pauses, std::size_t{1});
    QVERIFY(before > 0);
    QVERIFY(after < before + 10'000); // lines of the log
    QCOMPARE(m_data["reason"], "full");
    QCOMPARE(m_data["what"], "checkpoint");
    QCOMPARE(m_data["step"], 8);
    QCOMPARE(m_data["folder"], spec.outDir);
    QCOMPARE(m_data["free_bytes"], 10'000);
    const auto needed = m_data["needed_bytes"].get<std::uint64_t>();
    const auto rows = RunReader::open(m_rig->database).value()->checkpoints(run.id).value();
    QVERIFY(needed >= static_cast<std::uint64_t>(rows.back().bytes));
    QVERIFY(needed < static_cast<std::uint64_t>(rows.back().bytes) + 65'536);
    QVERIFY2(contains(m_text, "Paused: the disk is full. In " + spec.outDir +
                                  ", the checkpoint of step 8 needs "),
        m_text.c_str());
    QVERIFY2(contains(m_text, "; 9.8 KiB are free."), m_text.c_str());
}

void TestEngineFullDisk::itGoesOnByItselfWhenThereIsRoom()
{
    const RunSpec spec = this->spec("by itself");
    FullDisk disk(spec.outDir);
    m_rig->pauseCheck = std::chrono::milliseconds(1);
    onPause({[&](Engine&) { disk.heal(); }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            disk.sayFree(0);
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(m_pauses, std::size_t{1});
    QCOMPARE(run.state, RunState::Finished);
    QCOMPARE(run.progress.weightsHash, m_hash);
}

// It asks for the free bytes when it tries and when it reports, and not between answers.
void TestEngineFullDisk::aPausedRunDoesNotSpin()
{
    const RunSpec spec = this->spec("does not spin");
    FullDisk disk(spec.outDir);
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    onPause({[&](Engine& engine) {
                 first = disk.timesAsked();
                 again(engine);
             },
        [&](Engine& engine) {
            second = disk.timesAsked();
            disk.heal();
            again(engine);
        }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            disk.sayFree(0);
    });

    QCOMPARE(run.state, RunState::Finished);
    QCOMPARE(m_pauses, std::size_t{2});
    QCOMPARE(second - first, std::uint64_t{2});
}

void TestEngineFullDisk::aStopWhilePausedKeepsTheLastGoodCheckpoint()
{
    const RunSpec spec = this->spec("stopped");
    FullDisk disk(spec.outDir);
    onPause({[](Engine& engine) { engine.requestStop(); }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            disk.sayFree(0);
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.state, RunState::Stopped);
    QCOMPARE(run.progress.step, 8);
    QVERIFY(!run.unsaved.ok());
    QVERIFY2(contains(run.unsaved.message(), "the checkpoint of step 8 could not be written") &&
                 contains(run.unsaved.message(),
                     "the last good checkpoint is " + spec.outDir + "/checkpoints/step-00000004"),
        run.unsaved.message().c_str());
    const RunRow row = m_rig->row(run.id);
    QCOMPARE(row.status, RunStatus::Stopped);
    QCOMPARE(row.exitReason, run.unsaved.message());
    QVERIFY(row.resumable);
    disk.heal();
    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);
    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_hash);
}

void TestEngineFullDisk::aStopWhilePausedSavesIfThereIsRoomByThen()
{
    const RunSpec spec = this->spec("stopped with room");
    FullDisk disk(spec.outDir);
    onPause({[&](Engine& engine) {
        disk.heal();
        engine.requestStop();
    }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            disk.sayFree(0);
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.state, RunState::Stopped);
    QVERIFY2(run.unsaved.ok(), run.unsaved.message().c_str());
    QCOMPARE(
        namesIn(fs::path(spec.outDir) / "checkpoints"), (Names{"step-00000004", "step-00000008"}));
    QCOMPARE(m_rig->resume(spec.outDir, *m_device).progress.weightsHash, m_hash);
}

void TestEngineFullDisk::aQuotaIsWaitedForWithoutWriting()
{
    const RunSpec spec = this->spec("quota");
    FullDisk disk(spec.outDir);
    m_rig->pauseCheck = std::chrono::milliseconds(1);
    std::uint64_t asked = 0;
    std::uint64_t written = 0;
    onPause({[&](Engine& engine) {
        asked = disk.timesAsked();
        written = disk.bytesWritten();
        while (disk.timesAsked() < asked + 20) // it looks, and looks again
            std::this_thread::yield();
        written = disk.bytesWritten() - written;
        engine.requestStop();
    }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            disk.failAfter(100, EDQUOT);
    });

    QCOMPARE(run.state, RunState::Stopped);
    QVERIFY2(written < 4096, std::to_string(written).c_str()); // the records, at most
    QVERIFY(contains(run.unsaved.message(), "steps 5 to 8 are made again with the same bits"));
    QCOMPARE(m_rig->row(run.id).status, RunStatus::Stopped);
    disk.heal();
    QCOMPARE(m_rig->resume(spec.outDir, *m_device).progress.weightsHash, m_hash);
}

void TestEngineFullDisk::checkpointsGoToAnotherFolderAndAreFoundThere_data()
{
    QTest::addColumn<bool>("byNewFolder");
    QTest::newRow("resumed by its folder") << false;
    QTest::newRow("resumed by the new one, the old one is gone") << true;
}

void TestEngineFullDisk::checkpointsGoToAnotherFolderAndAreFoundThere()
{
    QFETCH(bool, byNewFolder);
    const RunSpec spec = this->spec(byNewFolder ? "moved for good" : "moved");
    const fs::path other = m_rig->folder.path(byNewFolder ? "other for good" : "other");
    fs::create_directory(other);
    FullDisk disk(spec.outDir);
    onPause({[&](Engine& engine) {
        engine.answerPause({PauseAnswer::Kind::OtherFolder, other.string()});
    }});
    const Outcome run = m_rig->train(spec, *m_device, [&](Engine& engine, std::int64_t step) {
        if (step == 4 && byNewFolder)
            disk.failAfter(0, ENOSPC); // not even the choice can be noted there
        else if (step == 4)
            disk.sayFree(10'000);
        if (step == 8) {
            disk.heal();
            engine.requestStop();
        }
    });
    QCOMPARE(run.state, RunState::Stopped);
    QVERIFY(run.unsaved.ok());
    QCOMPARE(run.saveDir.parent_path(), other);
    QCOMPARE(namesIn(run.saveDir / "checkpoints"), Names{"step-00000008"});
    QCOMPARE(namesIn(run.dir / "checkpoints"), Names{"step-00000004"});
    QCOMPARE(contains(m_rig->messages(run.id), "could not be noted"), byNewFolder);
    if (byNewFolder)
        fs::remove_all(run.dir);

    const Outcome resumed = m_rig->resume(byNewFolder ? run.saveDir : run.dir, *m_device);

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.id, run.id);
    QVERIFY(contains(m_rig->messages(run.id), "resumed: Resumed after step 8."));
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    QCOMPARE(resumed.saveDir, run.saveDir);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{12});
    QCOMPARE(namesIn(run.saveDir / "checkpoints"), (Names{"step-00000008", "step-00000012"}));
    QVERIFY(namesIn(run.dir / "checkpoints").empty()); // two are kept, wherever they are
    QVERIFY(fs::exists(run.saveDir / "model" / "config.json"));
}

void TestEngineFullDisk::aFolderThatIsNotThereIsNotTaken()
{
    const RunSpec spec = this->spec("bad folder");
    FullDisk disk(spec.outDir);
    onPause(
        {[&](Engine& engine) {
             engine.answerPause({PauseAnswer::Kind::OtherFolder, m_rig->folder.path("nowhere")});
         },
            [&](Engine& engine) {
                disk.heal();
                again(engine);
            }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            disk.sayFree(0);
    });

    QCOMPARE(m_pauses, std::size_t{2});
    QVERIFY(contains(m_data["why"], "nowhere: the folder is gone"));
    QCOMPARE(run.state, RunState::Finished);
    QCOMPARE(run.saveDir, run.dir);
    QCOMPARE(run.progress.weightsHash, m_hash);
}

void TestEngineFullDisk::itGoesOnWithoutTheCheckpointIfItMay()
{
    const RunSpec spec = this->spec("without");
    FullDisk disk(spec.outDir);
    onPause({[&](Engine& engine) {
        disk.heal();
        without(engine);
    }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            disk.sayFree(0);
    });

    QCOMPARE(run.state, RunState::Finished);
    QVERIFY(run.unsaved.ok());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(namesIn(run.dir / "checkpoints"), (Names{"step-00000004", "step-00000012"}));
    QVERIFY(contains(m_rig->messages(run.id), "checkpoint_failed: The checkpoint could not"));
}

void TestEngineFullDisk::aModelWithoutRoomIsWrittenByWhoResumes()
{
    const RunSpec spec = this->spec("no room for the model");
    FullDisk disk(spec.outDir + "/model");
    onPause({without});
    disk.failAfter(5000, ENOSPC);

    const Outcome run = m_rig->train(spec, *m_device);

    QCOMPARE(m_pauses, std::size_t{1});
    QCOMPARE(m_data["what"], "model");
    QCOMPARE(run.state, RunState::Stopped);
    QVERIFY(contains(run.unsaved.message(), "the trained model could not be written"));
    QVERIFY(contains(run.unsaved.message(), "step-00000012"));
    QVERIFY(!fs::exists(run.dir / "model"));
    disk.heal();
    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);
    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QCOMPARE(resumed.state, RunState::Finished);
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    QVERIFY(fs::exists(run.dir / "model" / "config.json"));
}

void TestEngineFullDisk::aRunFolderThatIsGoneIsWaitedFor()
{
    const RunSpec spec = this->spec("unplugged");
    const fs::path away = spec.outDir + " away";
    onPause({[&](Engine& engine) {
        fs::rename(away, spec.outDir);
        again(engine);
    }});

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            fs::rename(spec.outDir, away);
    });

    QCOMPARE(m_pauses, std::size_t{1});
    QVERIFY2(contains(m_text, "the folder is gone"), m_text.c_str());
    QCOMPARE(m_data["reason"], "unwritable");
    QCOMPARE(run.state, RunState::Finished);
    QCOMPARE(run.progress.weightsHash, m_hash);
}

void TestEngineFullDisk::aLockedHistoryEndsNothing()
{
    auto other = Database::open(m_rig->database, OpenMode::ReadWriteCreate);
    QVERIFY(other.ok());
    std::string said;
    m_rig->onMessage = [&](Engine&, const EventRow& row) {
        if (row.code == "history_failed")
            said = row.text;
        if (row.code == "done" || row.code == "stopped" || row.code == "failed")
            (void)other.value()->script("ROLLBACK").ok();
    };

    const Outcome run =
        m_rig->train(spec("locked history"), *m_device, [&](Engine&, std::int64_t step) {
            if (step == 4)
                (void)other.value()->script("BEGIN EXCLUSIVE").ok();
        });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QVERIFY2(run.unsaved.ok(), run.unsaved.message().c_str());
    QCOMPARE(run.state, RunState::Finished);
    QCOMPARE(run.progress.weightsHash, m_hash);
    QVERIFY2(contains(said, "is locked by another program"), said.c_str());
    QCOMPARE(m_rig->row(run.id).status, RunStatus::Done);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{12});
    const auto rows = RunReader::open(m_rig->database).value()->checkpoints(run.id).value();
    QCOMPARE(rows.size(), std::size_t{3});
    QCOMPARE(rows[0].state, std::string("deleted"));
    QCOMPARE(rows[2].state, std::string("complete"));
}

void TestEngineFullDisk::theRecordsOfACheckpointAreOnTheDiskBeforeIt()
{
    const RunSpec spec = this->spec("order");
    FullDisk disk(m_rig->folder.path());
    std::vector<std::string> order;

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            order = disk.synced();
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const auto steps = std::find(order.begin(), order.end(), spec.outDir + "/steps.jsonl");
    const auto log = std::find(steps, order.end(), m_rig->database + "-wal");
    const auto checkpoint = std::find_if(order.begin(), order.end(),
        [](const std::string& path) { return contains(path, "checkpoints/.step-00000004"); });
    QVERIFY(checkpoint != order.end());
    QVERIFY(steps < log);
    QVERIFY(log < checkpoint);
}

void TestEngineFullDisk::theHashOfAnOlderStepIsNotThatOfTheLast()
{
    const RunSpec spec = this->spec("older hash");
    FullDisk disk(spec.outDir);
    m_rig->onDiskFull = OnDiskFull::Skip;
    std::string older;

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine& engine, std::int64_t step) {
        older = engine.progress().weightsHash;
        if (step == 4)
            disk.sayFree(10'000);
    });

    QCOMPARE(run.progress.step, 12);
    QVERIFY(!older.empty());
    QCOMPARE(run.progress.weightsHash, std::string());
}

void TestEngineFullDisk::aRunFolderThatIsGonePromisesNoResume()
{
    const RunSpec spec = this->spec("deleted");

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            fs::remove_all(spec.outDir);
    });

    QCOMPARE(run.state, RunState::Stopped);
    QVERIFY(!run.unsaved.ok());
    const std::string why = run.unsaved.message();
    QVERIFY2(why.find("the run folder is gone") != std::string::npos, why.c_str());
    QVERIFY2(why.find("resumed") == std::string::npos, why.c_str());
}

void TestEngineFullDisk::whoDoesNotWaitStopsOrSkips_data()
{
    QTest::addColumn<bool>("skips");
    QTest::newRow("stop") << false;
    QTest::newRow("skip") << true;
}

void TestEngineFullDisk::whoDoesNotWaitStopsOrSkips()
{
    QFETCH(bool, skips);
    const RunSpec spec = this->spec(skips ? "skips" : "stops");
    m_rig->onDiskFull = skips ? OnDiskFull::Skip : OnDiskFull::Stop;
    FullDisk disk(spec.outDir);

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 4)
            disk.sayFree(0);
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.state, RunState::Stopped); // skipping, too: its end is nowhere on the disk
    QCOMPARE(run.progress.step, skips ? 12 : 8);
    QVERIFY(contains(run.unsaved.message(), "step-00000004"));
    QVERIFY(!contains(m_rig->messages(run.id), "paused: "));
    QCOMPARE(namesIn(run.dir / "checkpoints"), Names{"step-00000004"});
}

MR_TEST(TestEngineFullDisk)

} // namespace mr::test::tst_engine_full_disk

#include "tst_engine_full_disk.moc"
