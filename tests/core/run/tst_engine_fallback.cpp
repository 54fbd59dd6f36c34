// Runs with damaged checkpoints: they go on from the newest whole one, with the same bits.

#include "core/run/damage.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"
#include "support/wrapped_device.h"

#include <QtTest>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace mr::test::tst_engine_fallback {

namespace fs = std::filesystem;

namespace {

// Refuses one call for lack of memory once so many steps are done: after the update was begun.
class ScarceOnce final : public WrappedDevice
{
public:
    ScarceOnce(Device& inner, int afterSteps)
        : WrappedDevice(inner)
        , m_afterSteps(afterSteps)
    {
    }

    Status onCall(const DeviceCall& call) override
    {
        if (m_steps < m_afterSteps || call.what != "embed" || isRefused)
            return {};
        isRefused = true;
        return Status::error(ErrorKind::OutOfMemory, "taken by somebody else");
    }

    MemoryUsage memoryUsage() const noexcept override
    {
        ++m_steps;
        return WrappedDevice::memoryUsage();
    }

    bool isRefused = false;

private:
    int m_afterSteps;
    mutable int m_steps = 0;
};

} // namespace

class TestEngineFallback : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void whateverIsDamagedTheOneBeforeGoesOnWithTheSameBits_data();
    void whateverIsDamagedTheOneBeforeGoesOnWithTheSameBits();
    void everyPolicyGoesOnFromTheOneBefore_data();
    void everyPolicyGoesOnFromTheOneBefore();
    void twoBrokenOnesAreBothPassedOver();
    void whatIsNotOfThisRunIsPassedOverAndKept_data();
    void whatIsNotOfThisRunIsPassedOverAndKept();
    void whereNoneIsWholeEachIsNamedAndSoIsTheWayOut();
    void aRunThatLacksMemoryGoesBackToOneThatIsWhole();
    void aBrokenOneIsRemovedOnceANewerOneIsThere();

private:
    // Stopped after step 8, with checkpoints of 4 and 8.
    RunSpec stoppedRun(const std::string& name);
    // The data of all events "checkpoint_broken".
    std::vector<nlohmann::json> broken(std::int64_t run) const;

    std::unique_ptr<RunRig> m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
    std::string m_hash;
};

void TestEngineFallback::initTestCase()
{
    m_rig = std::make_unique<RunRig>();
    const Outcome plain = m_rig->train(m_rig->spec("plain"), *m_device);
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    m_hash = plain.progress.weightsHash;
}

RunSpec TestEngineFallback::stoppedRun(const std::string& name)
{
    RunSpec spec = m_rig->spec(name);
    spec.checkpointEvery = 4;
    const Outcome stopped = m_rig->train(spec, *m_device, stopAt(8));
    if (stopped.progress.step != 8 || listCheckpoints(spec.outDir).size() != 2)
        qFatal("no two checkpoints: %s", stopped.ended.message().c_str());
    return spec;
}

std::vector<nlohmann::json> TestEngineFallback::broken(std::int64_t run) const
{
    std::vector<nlohmann::json> found;
    const std::vector<EventRow> events =
        RunReader::open(m_rig->database).value()->events(run, -1).value();
    for (const EventRow& event : events)
        if (event.code == "checkpoint_broken")
            found.push_back(nlohmann::json::parse(event.data));
    return found;
}

void TestEngineFallback::whateverIsDamagedTheOneBeforeGoesOnWithTheSameBits_data()
{
    QTest::addColumn<QString>("damage");
    QTest::addColumn<QString>("file");
    for (const char* damage : {"bit", "cut", "gone"})
        for (const char* file : {"state/state.safetensors", "state/state.json",
                 "model/model.safetensors", "model/config.json", "manifest.json"})
            QTest::addRow("%s: %s", damage, file) << damage << file;
    QTest::newRow("emptied") << "emptied"
                             << "";
    QTest::newRow("a folder is gone") << "gone"
                                      << "state";
}

void TestEngineFallback::whateverIsDamagedTheOneBeforeGoesOnWithTheSameBits()
{
    QFETCH(QString, damage);
    QFETCH(QString, file);
    std::string name = QTest::currentDataTag();
    std::replace(name.begin(), name.end(), '/', ' ');
    const RunSpec spec = stoppedRun(name);
    const fs::path checkpoint = fs::path(spec.outDir) / "checkpoints" / checkpointName(8);
    const fs::path path = checkpoint / file.toStdString();
    if (damage == QLatin1String("bit"))
        flipMiddleBit(path);
    if (damage == QLatin1String("cut"))
        cutByOneByte(path);
    if (damage == QLatin1String("gone"))
        fs::remove_all(path);
    if (damage == QLatin1String("emptied"))
        emptyFolder(checkpoint);
    std::string asideAtFirst;

    const Outcome resumed =
        m_rig->resume(spec.outDir, *m_device, [&](Engine& engine, std::int64_t step) {
            if (step != 8)
                return;
            asideAtFirst = broken(engine.runId()).at(0).at("set_aside");
        });

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.state, RunState::Finished);
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(resumed.id).size(), std::size_t{12});
    const auto events = broken(resumed.id);
    QCOMPARE(events.size(), std::size_t{1});
    QCOMPARE(events[0]["checkpoint"].get<std::string>(), checkpoint.string());
    QCOMPARE(events[0]["step"].get<int>(), 4);
    QVERIFY(contains(events[0]["why"].get<std::string>(), checkpointName(8)));
    QCOMPARE(asideAtFirst, (checkpoint.parent_path() / "broken-step-00000008").string());
}

void TestEngineFallback::everyPolicyGoesOnFromTheOneBefore_data()
{
    QTest::addColumn<QString>("words");
    for (const char* words : {"zero-offload", "zero-offload-dpu warmup=2", "streamed late=0.6",
             "deep-optimizer-states", "zenflow interval=3 warmup=2",
             "zenflow interval=3 warmup=2 state=compact", "zenflow interval=3 disk-share=1",
             "ssd-vertical late=0.25", "ssd-vertical disk-share=0.5 state=compact"})
        QTest::newRow(words) << QString::fromLatin1(words);
}

void TestEngineFallback::everyPolicyGoesOnFromTheOneBefore()
{
    QFETCH(QString, words);
    const std::string name = QTest::currentDataTag();
    RunSpec spec = m_rig->spec(name);
    QStringList options = words.split(QLatin1Char(' '));
    spec.policy = options.takeFirst().toStdString();
    for (const QString& option : options)
        spec.policyOptions[option.section(QLatin1Char('='), 0, 0).toStdString()] =
            option.section(QLatin1Char('='), 1).toStdString();
    if (words.contains(QLatin1String("compact")))
        spec.precision = PrecisionChoice::BF16;
    spec.diskPaths = {m_rig->folder.path()};
    spec.checkpointEvery = 4;
    const Outcome whole = m_rig->train(spec, *m_device);
    QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
    spec.outDir = m_rig->folder.path(name + " damaged");
    (void)m_rig->train(spec, *m_device, stopAt(8));
    flipMiddleBit(
        fs::path(spec.outDir) / "checkpoints" / checkpointName(8) / "state" / "state.safetensors");

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, whole.progress.weightsHash);
    QCOMPARE(broken(resumed.id).size(), std::size_t{1});
}

void TestEngineFallback::twoBrokenOnesAreBothPassedOver()
{
    RunSpec spec = m_rig->spec("two broken");
    spec.checkpointEvery = 2;
    spec.keepCheckpoints = 3;
    (void)m_rig->train(spec, *m_device, stopAt(8));
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    flipMiddleBit(folder / checkpointName(8) / "state" / "state.json");
    emptyFolder(folder / checkpointName(6));
    std::string atFirst;

    const Outcome resumed =
        m_rig->resume(spec.outDir, *m_device, [&](Engine& engine, std::int64_t step) {
            if (step != 6)
                return;
            const auto reader = std::move(RunReader::open(m_rig->database)).value();
            const std::vector<CheckpointRow> rows = reader->checkpoints(engine.runId()).value();
            for (const CheckpointRow& row : rows)
                atFirst += std::to_string(row.step) + " " + row.state + ", ";
        });

    QCOMPARE(resumed.progress.weightsHash, m_hash);
    const auto events = broken(resumed.id);
    QCOMPARE(events.size(), std::size_t{2});
    QCOMPARE(events[0]["step"].get<int>(), 4);
    QCOMPARE(events[1]["step"].get<int>(), 4);
    // That of step 6 was just written again.
    QCOMPARE(atFirst, std::string("2 deleted, 4 verified, 6 complete, 8 broken, "));
}

void TestEngineFallback::whatIsNotOfThisRunIsPassedOverAndKept_data()
{
    QTest::addColumn<QString>("what");
    for (const char* what : {"another run's", "another step's", "somebody's own"})
        QTest::newRow(what) << what;
}

void TestEngineFallback::whatIsNotOfThisRunIsPassedOverAndKept()
{
    QFETCH(QString, what);
    const RunSpec spec = stoppedRun(what.toStdString());
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    const fs::path foreign = folder / checkpointName(9);
    if (what == QLatin1String("another run's"))
        fs::copy(fs::path(m_rig->folder.path("plain")) / "checkpoints" / checkpointName(12),
            folder / checkpointName(12), fs::copy_options::recursive);
    if (what == QLatin1String("another step's"))
        fs::copy(folder / checkpointName(8), foreign, fs::copy_options::recursive);
    if (what == QLatin1String("somebody's own")) {
        fs::create_directory(foreign);
        std::ofstream(foreign / "thesis.txt") << "the only copy";
    }

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    const auto events = broken(resumed.id);
    QCOMPARE(events.size(), std::size_t{1});
    QCOMPARE(events[0]["step"].get<int>(), 8);
    const fs::path kept = events[0]["set_aside"].get<std::string>();
    QVERIFY(kept.filename().string().starts_with("other-step-"));
    QVERIFY(!fs::is_empty(kept));
}

void TestEngineFallback::whereNoneIsWholeEachIsNamedAndSoIsTheWayOut()
{
    const RunSpec spec = stoppedRun("none whole");
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    cutByOneByte(folder / checkpointName(8) / "model" / "model.safetensors");
    flipMiddleBit(folder / checkpointName(4) / "state" / "state.safetensors");

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);
    const Outcome again = m_rig->resume(spec.outDir, *m_device);

    QVERIFY(!resumed.opened.ok());
    QCOMPARE(resumed.opened.kind(), ErrorKind::DataCorrupt);
    const std::string& said = resumed.opened.message();
    for (const char* part : {"step-00000008/model/model.safetensors: has ",
             "step-00000004/state/state.safetensors: the bytes are not", "from a copy", "--out",
             "step-00000004/model are whole"})
        QVERIFY2(contains(said, part), said.c_str());
    QCOMPARE(again.opened.message(), said); // nothing was touched
    QCOMPARE(listCheckpoints(spec.outDir).size(), std::size_t{2});
    flipMiddleBit(folder / checkpointName(4) / "state" / "state.safetensors"); // put back
    QCOMPARE(m_rig->resume(spec.outDir, *m_device).progress.weightsHash, m_hash);
}

void TestEngineFallback::aRunThatLacksMemoryGoesBackToOneThatIsWhole()
{
    ScarceOnce device(*m_device, 10);
    RunSpec spec = m_rig->spec("scarce");
    spec.checkpointEvery = 4;
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";

    const Outcome run = m_rig->train(spec, device, [&](Engine&, std::int64_t step) {
        if (step == 10) // saved because memory lacks, and damaged before it is read
            flipMiddleBit(folder / checkpointName(10) / "state" / "state.safetensors");
    });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QVERIFY(device.isRefused);
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{12});
    const auto events = broken(run.id);
    QCOMPARE(events.size(), std::size_t{1});
    QCOMPARE(events[0]["step"].get<int>(), 8);
    QVERIFY(contains(m_rig->messages(run.id), "steps 9 to 10 are repeated"));
}

void TestEngineFallback::aBrokenOneIsRemovedOnceANewerOneIsThere()
{
    const RunSpec spec = stoppedRun("removed");
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    flipMiddleBit(folder / checkpointName(8) / "state" / "state.safetensors");

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY(!fs::exists(folder / "broken-step-00000008"));
    QVERIFY(contains(m_rig->messages(resumed.id), "checkpoint_removed: The broken checkpoint in"));
    QVERIFY(examineCheckpoint(folder / checkpointName(8), {}, VerifyDepth::Bytes).ok());
}

MR_TEST(TestEngineFallback)

} // namespace mr::test::tst_engine_fallback

#include "tst_engine_fallback.moc"
