// Runs that are resumed otherwise than they began: other threads, other budgets, another mode, or
// without any checkpoint yet.

#include "core/engine/run_rig.h"
#include "core/telemetry/run_folder.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QtTest>

using namespace mr;
using namespace mr::test;
namespace fs = std::filesystem;

namespace {

class TestEngineResume : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void cleanup() { m_rig->changes = {}; }
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

private:
    // Left as a run that was killed before its first checkpoint, which has done some steps.
    RunSpec killedRun(const std::string& name, const char* status);

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

RunSpec TestEngineResume::killedRun(const std::string& name, const char* status)
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
             "ssd-vertical late=0.25", "ssd-vertical weights-on-disk=1 gradients-on-disk=1"})
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
    const RunSpec spec = killedRun("without", "failed");
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
    const RunSpec spec = killedRun("taken", "lost");
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
    const RunSpec spec = killedRun("alive", "running");

    const Outcome again = m_rig->train(spec, *m_device);

    QCOMPARE(again.opened.kind(), ErrorKind::InvalidArgument);
    QVERIFY(contains(again.opened.message(), "a run is being trained there"));
}

} // namespace

MR_TEST(TestEngineResume)
#include "tst_engine_resume.moc"
