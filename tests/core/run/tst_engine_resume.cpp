// Runs that are resumed otherwise than they began: other threads, other budgets, another mode, or
// without any checkpoint yet.

#include "core/run/changed_model.h"
#include "core/run/run_rig.h"
#include "core/store/sqlite.h"
#include "core/telemetry/run_folder.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QtTest>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>

namespace mr::test::tst_engine_resume {

namespace fs = std::filesystem;

class TestEngineResume : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void cleanup()
    {
        m_rig->changes = {};
        m_rig->saveFolder.clear();
    }
    void otherThreadsBudgetsAndModesGiveTheSameBits_data();
    void otherThreadsBudgetsAndModesGiveTheSameBits();
    void aSmallerBudgetIsPlannedFor_data();
    void aSmallerBudgetIsPlannedFor();
    void aBudgetNothingFitsIsRefusedWithAdvice();
    void aRunWithoutACheckpointStartsAgain();
    void aRunWhoseCheckpointsAreGoneDoesNotStartAgain_data();
    void aRunWhoseCheckpointsAreGoneDoesNotStartAgain();
    void anotherRunMayTakeTheFolderOfOneWithoutACheckpoint();
    void theFolderOfARunThatGoesOnIsNotTaken();
    void aFolderIsWrittenByOneRunAtATime();
    void aHoleInTheHistoryIsFilledFromTheFolder();
    void checkpointsOfHistoryAndFolderAgreeAfterAResume();
    void aHistoryThatIsDeletedUnderTheRunIsMadeAgain();
    void leftoversOfAKilledProcessAreRemoved();
    void noMoreAreKeptAfterAKillAtTheLastStep();
    void whatIsNotTheFoldersOwnIsRefused_data();
    void whatIsNotTheFoldersOwnIsRefused();
    void aFolderThatARecordNamesIsNotUsedUnasked();
    void anEarlierProgramsSumsGoOnAsTheyBegan();
    void columnsThatAnEarlierProgramGuessedAreNamedOnResume();
    void aRunFolderIsItsOwnersAlone();

private:
    // Left as a run that was killed before its first checkpoint, which has done some steps.
    RunSpec killedRun(const std::string& name, RunStatus status);

    // Stopped after its checkpoint of step 8; the one of step 4 is there, too.
    RunSpec stoppedRun(const std::string& name);
    std::int64_t idOf(const RunSpec& spec) const;
    Status change(const std::string& sql) const;

    std::unique_ptr<RunRig> m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
    std::string m_hash;
};

void TestEngineResume::initTestCase()
{
    m_rig = std::make_unique<RunRig>();
    const Outcome plain = m_rig->train(m_rig->spec("plain"), *m_device);
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    m_hash = plain.progress.weightsHash;
}

RunSpec TestEngineResume::killedRun(const std::string& name, RunStatus status)
{
    const RunSpec spec = m_rig->spec(name);
    const Outcome run = m_rig->train(spec, *m_device);
    if (!run.ended.ok() || !m_rig->store->setStatus(run.id, status).ok())
        qFatal("%s", run.ended.message().c_str());
    const std::string checkpoint = (run.dir / "checkpoints" / checkpointName(12)).string();
    if (!m_rig->store->setCheckpointState(checkpoint, "deleted").ok()) // it never was
        qFatal("no %s", checkpoint.c_str());
    fs::remove_all(run.dir / "model");
    fs::rename(run.dir / "checkpoints" / checkpointName(12), // killed while it wrote its first
        run.dir / "checkpoints" / ("." + checkpointName(12)));
    return spec;
}

void TestEngineResume::otherThreadsBudgetsAndModesGiveTheSameBits_data()
{
    QTest::addColumn<QString>("words");
    for (const char* words : {"resident", "zero-offload late=0.6", "deep-optimizer-states",
             "streamed late=0.6", "streamed device-share=0.4", "zero-offload-dpu warmup=2",
             "zenflow interval=3 warmup=2", "zenflow interval=3 warmup=2 state=compact",
             "zenflow interval=3 warmup=2 disk-share=1", "resident state=compact",
             "ssd-vertical late=0.25", "ssd-vertical weights-on-disk=1 gradients-on-disk=1",
             "resident fp8=", "streamed fp8= late=0.6"})
        QTest::newRow(words) << QString::fromLatin1(words);
}

void TestEngineResume::otherThreadsBudgetsAndModesGiveTheSameBits()
{
    QFETCH(QString, words);
    RunSpec spec = m_rig->spec(QTest::currentDataTag());
    QStringList options = words.split(QLatin1Char(' '));
    spec.policy = options.takeFirst().toStdString();
    for (const QString& option : options)
        spec.policyOptions[option.section(QLatin1Char('='), 0, 0).toStdString()] =
            option.section(QLatin1Char('='), 1).toStdString();
    if (words.contains(QLatin1String("compact")))
        spec.precision = PrecisionChoice::BF16;
    const ChangedModel wide({{"hidden_size", 32}, {"intermediate_size", 48}}); // allows FP8
    if (spec.policyOptions.erase("fp8") > 0) {
        spec.precision = PrecisionChoice::Fp8;
        spec.modelDir = wide.folder.path();
    }
    spec.diskPaths = {m_rig->folder.path()};
    spec.checkpointEvery = 5;
    const Outcome whole = m_rig->train(spec, *m_device);
    QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
    spec.outDir += " stopped";
    const Outcome stopped = m_rig->train(spec, *m_device, stopAt(5));
    QCOMPARE(stopped.progress.step, 5);
    const auto threaded = smallDevice(3, CpuDeviceOptions::Mode::Threaded);
    m_rig->changes = {3, std::uint64_t{48} << 20, std::uint64_t{1} << 30, true};

    const Outcome resumed = m_rig->resume(spec.outDir, *threaded);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, whole.progress.weightsHash);
    const RunSpec kept = readRunSpec(spec.outDir).value();
    QCOMPARE(kept.threads, 3);
    QVERIFY(kept.threadedDevice);
    QCOMPARE(kept.deviceMemoryBytes, std::uint64_t{48} << 20);
    QCOMPARE(m_rig->row(resumed.id).configJson, toJson(kept));
}

void TestEngineResume::aSmallerBudgetIsPlannedFor_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<bool>("isDevice");
    QTest::newRow("the device's") << "resident" << true;
    QTest::newRow("the host's") << "zero-offload" << false;
}

void TestEngineResume::aSmallerBudgetIsPlannedFor()
{
    QFETCH(QString, policy);
    QFETCH(bool, isDevice);
    RunSpec spec = m_rig->spec("smaller " + policy.toStdString());
    spec.policy = policy.toStdString();
    spec.checkpointEvery = 5;
    (void)m_rig->train(spec, *m_device, stopAt(5));
    const PlanReport plan = planRun(spec).value();
    const auto less = static_cast<std::uint64_t>(plan.tiers[isDevice ? 0 : 1].totalBytes - 1);
    (isDevice ? m_rig->changes.deviceMemoryBytes : m_rig->changes.hostMemoryBytes) = less;

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    QVERIFY(contains(m_rig->messages(resumed.id), "Resumed with another budget"));
    const PlanReport now = planReportFromJson(m_rig->row(resumed.id).planJson).value();
    QVERIFY(static_cast<std::uint64_t>(now.tiers[isDevice ? 0 : 1].totalBytes) <= less);
}

void TestEngineResume::aBudgetNothingFitsIsRefusedWithAdvice()
{
    RunSpec spec = m_rig->spec("nothing fits");
    spec.checkpointEvery = 5;
    (void)m_rig->train(spec, *m_device, stopAt(5));
    m_rig->changes.deviceMemoryBytes = 4096;

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QCOMPARE(resumed.opened.kind(), ErrorKind::OutOfMemory);
    QVERIFY(contains(resumed.opened.message(), "device memory: needs"));
    m_rig->changes = {};
    QCOMPARE(m_rig->resume(spec.outDir, *m_device).progress.weightsHash, m_hash);
}

void TestEngineResume::aRunWithoutACheckpointStartsAgain()
{
    const RunSpec spec = killedRun("without", RunStatus::Failed);
    const auto runs = RunReader::open(m_rig->database).value()->runs().value();
    QVERIFY(runs.front().resumable && runs.front().startsAgain);

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.state, RunState::Finished);
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(resumed.id).size(), std::size_t{12});
    QVERIFY(contains(m_rig->messages(resumed.id), "started_again: The run ended before its first"));
    QVERIFY(!fs::exists(resumed.dir / "checkpoints" / ("." + checkpointName(12))));
}

void TestEngineResume::aRunWhoseCheckpointsAreGoneDoesNotStartAgain_data()
{
    QTest::addColumn<bool>("isDone");
    QTest::addColumn<QString>("said");
    QTest::newRow("its model is there") << true << "Train on with --model";
    QTest::newRow("it was stopped") << false << "the checkpoints of this run are gone";
}

void TestEngineResume::aRunWhoseCheckpointsAreGoneDoesNotStartAgain()
{
    QFETCH(bool, isDone);
    QFETCH(QString, said);
    RunSpec spec = m_rig->spec(QTest::currentDataTag());
    spec.checkpointEvery = 4;
    (void)m_rig->train(spec, *m_device, stopAt(isDone ? 0 : 8));
    const Folder elsewhere;
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    fs::rename(folder, elsewhere.path("checkpoints"));

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QCOMPARE(resumed.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(
        contains(resumed.opened.message(), said.toStdString()), resumed.opened.message().c_str());
    if (isDone)
        return;
    fs::rename(elsewhere.path("checkpoints"), folder);
    QCOMPARE(m_rig->resume(spec.outDir, *m_device).progress.weightsHash, m_hash);
}

void TestEngineResume::anotherRunMayTakeTheFolderOfOneWithoutACheckpoint()
{
    const RunSpec spec = killedRun("taken", RunStatus::Lost);
    const std::int64_t before =
        m_rig->store->findRun(readRunRecord(spec.outDir).value().uuid).value();

    const Outcome again = m_rig->train(spec, *m_device);

    QVERIFY2(again.opened.ok(), again.opened.message().c_str());
    QCOMPARE(again.progress.weightsHash, m_hash);
    QVERIFY(again.id != before);
    QVERIFY(contains(m_rig->messages(again.id), "takes its place"));
    const auto other = RunStore::open(m_rig->folder.path("rebuilt.db")).value().release();
    const std::unique_ptr<RunStore> owned(other);
    auto rebuilt = rebuildFromRunFolder(*other, spec.outDir);
    QVERIFY2(rebuilt.ok(), rebuilt.status().message().c_str());
    const auto reader = std::move(RunReader::open(m_rig->folder.path("rebuilt.db"))).value();
    QCOMPARE(reader->steps(rebuilt.value(), -1, 1000).value().size(), std::size_t{12});
    QCOMPARE(m_rig->train(spec, *m_device).opened.kind(), ErrorKind::InvalidArgument);
}

void TestEngineResume::theFolderOfARunThatGoesOnIsNotTaken()
{
    const RunSpec spec = killedRun("alive", RunStatus::Running);

    const Outcome again = m_rig->train(spec, *m_device);

    QCOMPARE(again.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY(contains(again.opened.message(), "a run is being trained there"));
}

RunSpec TestEngineResume::stoppedRun(const std::string& name)
{
    RunSpec spec = m_rig->spec(name);
    spec.checkpointEvery = 4;
    if (m_rig->train(spec, *m_device, stopAt(8)).progress.step != 8)
        qFatal("%s did not stop", name.c_str());
    return spec;
}

std::int64_t TestEngineResume::idOf(const RunSpec& spec) const
{
    return m_rig->store->findRun(readRunRecord(spec.outDir).value().uuid).value();
}

Status TestEngineResume::change(const std::string& sql) const
{
    auto database = Database::open(m_rig->database, OpenMode::ReadWriteCreate);
    MR_TRY(database.status());
    return database.value()->script(sql.c_str());
}

void TestEngineResume::aFolderIsWrittenByOneRunAtATime()
{
    RunSpec spec = m_rig->spec("one at a time");
    spec.checkpointEvery = 4;
    const auto other = std::move(RunStore::open(m_rig->folder.path("other.db"))).value();
    const auto device = smallDevice();
    std::vector<Status> refused;

    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step != 4)
            return;
        refused.push_back(Engine::resume(spec.outDir, *device, *other, {}).status());
        refused.push_back(Engine::open(spec, *device, *other, {}).status());
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(refused.size(), std::size_t{2});
    const std::string pid = "process " + std::to_string(::getpid());
    for (const Status& status : refused) {
        QVERIFY(!status.ok());
        QCOMPARE(status.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(contains(status.message(), spec.outDir) && contains(status.message(), pid),
            status.message().c_str());
    }
}

void TestEngineResume::aHoleInTheHistoryIsFilledFromTheFolder()
{
    const RunSpec spec = stoppedRun("hole");
    const std::int64_t id = idOf(spec);
    const std::vector<StepRow> before = m_rig->steps(id);
    const std::string first = "(" + std::to_string(id) + "<<40)";
    QVERIFY(change("DELETE FROM step WHERE id>=" + first + "+3 AND id<=" + first + "+6").ok());
    QCOMPARE(m_rig->steps(id).size(), std::size_t{4});

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    const std::vector<StepRow> steps = m_rig->steps(id);
    QCOMPARE(steps.size(), std::size_t{12});
    for (std::size_t i = 0; i < before.size(); ++i)
        QCOMPARE(steps[i].loss, before[i].loss);
    QCOMPARE(m_rig->row(id).status, RunStatus::Done);
}

void TestEngineResume::checkpointsOfHistoryAndFolderAgreeAfterAResume()
{
    const RunSpec spec = stoppedRun("agree");
    const std::string folder = spec.outDir + "/checkpoints/";
    const std::int64_t id = idOf(spec);
    const auto rows = RunReader::open(m_rig->database).value()->checkpoints(id).value();
    const std::string gone = folder + checkpointName(2);
    const std::string older = folder + checkpointName(4);
    QVERIFY(change("DELETE FROM checkpoint WHERE path='" + rows.back().path + "'").ok());
    QVERIFY(change("UPDATE checkpoint SET path='" + gone + "', step=2 WHERE path='" + older + "'")
                .ok());

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    std::map<std::string, CheckpointRow> after;
    const auto now = RunReader::open(m_rig->database).value()->checkpoints(id).value();
    for (const CheckpointRow& row : now)
        after[row.path] = row;
    QCOMPARE(after[gone].state, std::string("deleted"));
    const CheckpointRow& entered = after[rows.back().path];
    QCOMPARE(entered.state, std::string("complete"));
    QCOMPARE(entered.step, 8);
    QCOMPARE(entered.bytes, rows.back().bytes);
    QCOMPARE(after[older].state, std::string("deleted")); // two are kept
    QCOMPARE(after[folder + checkpointName(12)].state, std::string("complete"));
}

void TestEngineResume::aHistoryThatIsDeletedUnderTheRunIsMadeAgain()
{
    RunRig rig;
    RunSpec spec = rig.spec("history gone");
    spec.checkpointEvery = 4;

    const Outcome run = rig.train(spec, *m_device, [&rig](Engine&, std::int64_t step) {
        if (step == 4)
            fs::remove(rig.database);
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.state, RunState::Finished);
    QVERIFY(fs::exists(rig.database));
    const auto reader = std::move(RunReader::open(rig.database)).value();
    const std::vector<RunRow> runs = reader->runs().value();
    QCOMPARE(runs.size(), std::size_t{1});
    QCOMPARE(runs[0].status, RunStatus::Done);
    QCOMPARE(reader->steps(runs[0].id, -1, 1000).value().size(), std::size_t{12});
    QCOMPARE(reader->checkpoints(runs[0].id).value().size(), std::size_t{2});
}

void TestEngineResume::leftoversOfAKilledProcessAreRemoved()
{
    const RunSpec spec = stoppedRun("leftovers");
    const fs::path dir = spec.outDir;
    fs::create_directory(dir / "model");
    const std::vector<fs::path> left = {dir / "run.json.tmp-99999", dir / "trace-8.json.tmp-1",
        dir / "model" / "config.json.tmp-99999", dir / "model" / ".model.safetensors.part"};
    const std::vector<fs::path> own = {dir / "notes.tmp-1", dir / "thesis.json.tmp-x"};
    for (const auto* paths : {&left, &own})
        for (const fs::path& path : *paths)
            std::ofstream(path) << "{}";

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    for (const fs::path& path : left)
        QVERIFY2(!fs::exists(path), path.c_str());
    for (const fs::path& path : own)
        QVERIFY2(fs::exists(path), path.c_str());
}

void TestEngineResume::noMoreAreKeptAfterAKillAtTheLastStep()
{
    RunSpec spec = m_rig->spec("kept one");
    spec.checkpointEvery = 8;
    spec.keepCheckpoints = 1;
    const fs::path copy = m_rig->folder.path("copy of the older one");
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    const Outcome run = m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) {
        if (step == 8)
            fs::copy(folder / checkpointName(8), copy, fs::copy_options::recursive);
    });
    fs::rename(copy, folder / checkpointName(8)); // killed before it was removed
    fs::remove_all(run.dir / "model");
    QVERIFY(m_rig->store->setStatus(run.id, RunStatus::Lost).ok());

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QVERIFY(fs::exists(run.dir / "model" / "config.json"));
    QVERIFY(!fs::exists(folder / checkpointName(8)));
    QVERIFY(fs::exists(folder / checkpointName(12)));
}

void TestEngineResume::whatIsNotTheFoldersOwnIsRefused_data()
{
    QTest::addColumn<bool>("isPipe");
    for (const char* name :
        {"model", "checkpoints", ".lock", "steps.jsonl", "events.jsonl", "samples.jsonl"})
        QTest::addRow("%s", name) << false;
    for (const char* name : {"steps.jsonl", "events.jsonl", "samples.jsonl"})
        QTest::addRow("%s as a pipe", name) << true;
}

void TestEngineResume::whatIsNotTheFoldersOwnIsRefused()
{
    QFETCH(bool, isPipe);
    const std::string tag = QTest::currentDataTag();
    const RunSpec spec = stoppedRun("foreign " + tag);
    const fs::path path = fs::path(spec.outDir) / tag.substr(0, tag.find(' '));
    const fs::path theirs = m_rig->folder.path("theirs " + tag);
    if (fs::exists(path))
        fs::rename(path, theirs);
    else
        fs::create_directory(theirs);
    if (isPipe)
        QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
    else
        fs::create_symlink(theirs, path);
    const bool isFile = fs::is_regular_file(theirs);
    const auto bytes = isFile ? fs::file_size(theirs) : 0;

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY(!resumed.opened.ok());
    QCOMPARE(resumed.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(contains(resumed.opened.message(), path.string()), resumed.opened.message().c_str());
    if (isFile)
        QCOMPARE(fs::file_size(theirs), bytes);
    fs::remove(path);
    fs::rename(theirs, path);
    QCOMPARE(m_rig->resume(spec.outDir, *m_device).progress.weightsHash, m_hash);
}

void TestEngineResume::aFolderThatARecordNamesIsNotUsedUnasked()
{
    const RunSpec spec = stoppedRun("names a folder");
    const fs::path theirs = m_rig->folder.path("somebody's");
    fs::create_directories(theirs / "checkpoints" / ".step-00000001");
    NewRun record = readRunRecord(spec.outDir).value();
    RunSpec forged = runSpecFromJson(record.configJson).value();
    forged.saveDir = theirs.string();
    record.configJson = toJson(forged);
    QVERIFY(saveRunRecord(spec.outDir, record).ok());

    const Outcome refused = m_rig->resume(spec.outDir, *m_device);

    QVERIFY(!refused.opened.ok());
    QCOMPARE(refused.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(contains(refused.opened.message(), "save_dir") &&
                 contains(refused.opened.message(), "--checkpoint-dir " + theirs.string()),
        refused.opened.message().c_str());
    fs::create_directory(m_rig->folder.path("mine"));
    m_rig->saveFolder = m_rig->folder.path("mine");
    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    QVERIFY(fs::exists(theirs / "checkpoints" / ".step-00000001"));
    QCOMPARE(std::distance(fs::directory_iterator(theirs), {}), std::ptrdiff_t{1});
}

// Earlier programs summed in flipped order by default, and did not say so.
void TestEngineResume::anEarlierProgramsSumsGoOnAsTheyBegan()
{
    RunSpec spec = m_rig->spec("flipped");
    spec.policy = "ssd-vertical";
    spec.accumulate = 3;
    spec.diskPaths = {m_rig->folder.path()};
    const std::string ascending = m_rig->train(spec, *m_device).progress.weightsHash;
    spec.policyOptions = {{"order", "by-layer-flip"}};
    spec.outDir += " whole";
    const std::string flipped = m_rig->train(spec, *m_device).progress.weightsHash;
    QVERIFY(flipped != ascending);
    spec.checkpointEvery = 5;
    spec.outDir += " stopped";
    QCOMPARE(m_rig->train(spec, *m_device, stopAt(5)).progress.step, 5);
    NewRun record = readRunRecord(spec.outDir).value();
    RunSpec config = runSpecFromJson(record.configJson).value();
    QCOMPARE(config.policyOptions.erase("order"), std::size_t{1});
    record.configJson = toJson(config);
    record.ascendingSums = false;
    QVERIFY(saveRunRecord(spec.outDir, record).ok());

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, flipped);
}

void TestEngineResume::columnsThatAnEarlierProgramGuessedAreNamedOnResume()
{
    RunSpec spec = m_rig->spec("guessed");
    std::string rows = smallPairs(60);
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"prompt", "left"},
             std::pair<std::string, std::string>{"response", "right"}})
        for (std::size_t at = rows.find("\"" + from + "\""); at != std::string::npos;
             at = rows.find("\"" + from + "\"", at))
            rows.replace(at + 1, from.size(), to);
    spec.data[0].path = m_rig->folder.write("unnamed.jsonl", rows);
    const std::map<std::string, std::string> columns{{"prompt", "left"}, {"response", "right"}};
    spec.data[0].columns = columns;
    const Outcome whole = m_rig->train(spec, *m_device);
    spec.outDir += " stopped";
    spec.checkpointEvery = 5;
    QCOMPARE(m_rig->train(spec, *m_device, stopAt(5)).progress.step, 5);
    NewRun record = readRunRecord(spec.outDir).value();
    RunSpec config = runSpecFromJson(record.configJson).value();
    for (const auto& [role, column] : columns)
        QCOMPARE(config.data[0].columns.erase(role), std::size_t{1});
    record.configJson = toJson(config);
    QVERIFY(saveRunRecord(spec.outDir, record).ok());

    const Status asked = m_rig->resume(spec.outDir, *m_device).opened;
    QCOMPARE(asked.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(
        contains(asked.message(), "--map prompt=left,response=right"), asked.message().c_str());
    m_rig->changes.columns = {{"prompt", "right"}, {"response", "left"}};
    const Status other = m_rig->resume(spec.outDir, *m_device).opened;
    QVERIFY2(contains(other.message(), "its tokens differ"), other.message().c_str());
    m_rig->changes.columns = columns;

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, whole.progress.weightsHash);
    QCOMPARE(readRunSpec(spec.outDir).value().data[0].columns.at("prompt"), std::string("left"));
}

void TestEngineResume::aRunFolderIsItsOwnersAlone()
{
    const RunSpec spec = m_rig->spec("private");
    QVERIFY(m_rig->train(spec, *m_device).ended.ok());
    QCOMPARE(fs::status(spec.outDir).permissions(), fs::perms::owner_all);
}

MR_TEST(TestEngineResume)

} // namespace mr::test::tst_engine_resume

#include "tst_engine_resume.moc"
