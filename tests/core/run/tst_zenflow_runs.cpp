// Whole runs of policies with windows: stopped anywhere and resumed, looked at, exported.

#include "core/run/engine.h"
#include "core/run/run_rig.h"
#include "support/master_buffers.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <string>

namespace mr::test::tst_zenflow_runs {

namespace fs = std::filesystem;

namespace {

using Options = std::map<std::string, std::string>;

struct Case {
    const char* name;
    const char* policy;
    Options options;
    PrecisionChoice precision;
};

// Windows of 3 after two warm-up steps: 3-5, 6-8 (closed in its own last step, because columns
// change owner), 9-11, and one step of the next.
const Case kCases[] = {
    {"zenflow, fp32", "zenflow",
        {{"interval", "3"}, {"warmup", "2"}, {"select", "6"}, {"urgent", "0.3"}, {"tile", "4KiB"}},
        PrecisionChoice::F32},
    {"zenflow, bf16", "zenflow",
        {{"interval", "3"}, {"warmup", "2"}, {"select", "6"}, {"urgent", "0.3"}, {"tile", "4KiB"}},
        PrecisionChoice::BF16},
    {"zenflow, overlap off", "zenflow",
        {{"interval", "4"}, {"warmup", "1"}, {"overlap", "off"}, {"order", "by-layer"}},
        PrecisionChoice::BF16},
    {"zenflow, sums on the device", "zenflow",
        {{"interval", "3"}, {"warmup", "2"}, {"select", "6"}, {"urgent", "0.3"}, {"tile", "4KiB"},
            {"accumulate-on", "device"}},
        PrecisionChoice::BF16},
    {"zenflow, sums on the device, overlap off", "zenflow",
        {{"interval", "4"}, {"warmup", "1"}, {"overlap", "off"}, {"order", "by-layer"},
            {"accumulate-on", "device"}},
        PrecisionChoice::BF16},
    {"zero-offload-dpu", "zero-offload-dpu",
        {{"warmup", "4"}, {"tile", "4KiB"}, {"accumulate-on", "device"}}, PrecisionChoice::BF16},
    {"zenflow, compact state", "zenflow",
        {{"interval", "3"}, {"warmup", "2"}, {"select", "6"}, {"urgent", "0.3"}, {"tile", "4KiB"},
            {"state", "compact"}},
        PrecisionChoice::BF16},
    {"zero-offload-dpu, compact state", "zero-offload-dpu",
        {{"warmup", "4"}, {"tile", "4KiB"}, {"state", "compact"}}, PrecisionChoice::BF16},
    {"zenflow, 0.4 on disk, compact state, sums on the device", "zenflow",
        {{"interval", "3"}, {"warmup", "2"}, {"select", "6"}, {"urgent", "0.3"}, {"tile", "4KiB"},
            {"disk-share", "0.4"}, {"state", "compact"}, {"accumulate-on", "device"}},
        PrecisionChoice::BF16},
    {"zenflow, interval by magnitude, state on disk", "zenflow",
        {{"interval", "magnitude"}, {"warmup", "3"}, {"select", "6"}, {"urgent", "0.3"},
            {"tile", "4KiB"}, {"disk-share", "1"}},
        PrecisionChoice::BF16},
    {"zero-offload-dpu, fp32, state on disk", "zero-offload-dpu",
        {{"warmup", "4"}, {"tile", "4KiB"}, {"disk-share", "1"}}, PrecisionChoice::F32},
};

RunSpec specOf(const RunRig& rig, const Case& of, const std::string& name)
{
    RunSpec spec = rig.spec(std::string(of.name) + " " + name);
    spec.policy = of.policy;
    spec.policyOptions = of.options;
    spec.precision = of.precision;
    if (of.options.count("disk-share") > 0)
        spec.diskPaths = {rig.folder.path()};
    spec.clipNorm = 0.5;
    spec.schedule = ScheduleKind::Constant;
    spec.warmupSteps = 0;
    return spec;
}

} // namespace

class TestZenflowRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { m_rig = std::make_unique<RunRig>(); }
    void aRunStoppedAtAnyStepResumesToTheHashOfTheUninterruptedOne_data() { addCases(); }
    void aRunStoppedAtAnyStepResumesToTheHashOfTheUninterruptedOne();
    void evaluatingMoreOftenChangesNothing_data() { addCases(); }
    void evaluatingMoreOftenChangesNothing();
    void onDiskARunIsTheOneInMemory_data() { addCases(); }
    void onDiskARunIsTheOneInMemory();
    void theStepRecordHasTheStalenessOfThePlan();
    void theExportedModelHasWhatWasPending_data();
    void theExportedModelHasWhatWasPending();
    void inFp32EveryExportIsThatOfTheHostsSums();
    void aDamagedWindowFileIsNoticed();

private:
    static void addCases()
    {
        QTest::addColumn<int>("index");
        for (int i = 0; i < int(std::size(kCases)); ++i)
            QTest::newRow(kCases[i].name) << i;
    }

    std::unique_ptr<RunRig> m_rig;
};

void TestZenflowRuns::aRunStoppedAtAnyStepResumesToTheHashOfTheUninterruptedOne()
{
    QFETCH(int, index);
    const Case& of = kCases[index];
    const auto device = smallDevice();
    const Outcome plain = m_rig->train(specOf(*m_rig, of, "plain"), *device);
    QVERIFY2(plain.ended.ok(), plain.ended.message().c_str());
    const std::vector<StepRow> expected = m_rig->steps(plain.id);
    // Every third step of 11, another third for each case.
    for (int stop = 1 + index % 3; stop < 12; stop += 3) {
        RunSpec spec = specOf(*m_rig, of, "stop " + std::to_string(stop));
        spec.checkpointEvery = 1;
        const auto first = smallDevice();
        const Outcome stopped =
            m_rig->train(spec, *first, [stop](Engine& engine, std::int64_t step) {
                if (step == stop)
                    engine.requestStop();
            });
        QCOMPARE(stopped.progress.step, stop);
        const auto second = smallDevice(2, CpuDeviceOptions::Mode::Threaded);

        const Outcome resumed = m_rig->resume(spec.outDir, *second);

        QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
        QVERIFY2(resumed.progress.weightsHash == plain.progress.weightsHash,
            qPrintable(QStringLiteral("stopped after step %1").arg(stop)));
        const std::vector<StepRow> steps = m_rig->steps(resumed.id);
        QCOMPARE(steps.size(), expected.size());
        for (std::size_t s = 0; s < steps.size(); ++s) {
            QCOMPARE(steps[s].loss, expected[s].loss);
            QCOMPARE(steps[s].staleness, expected[s].staleness);
        }
    }
}

void TestZenflowRuns::evaluatingMoreOftenChangesNothing()
{
    QFETCH(int, index);
    const Case& of = kCases[index];
    const auto device = smallDevice();
    RunSpec spec = specOf(*m_rig, of, "eval 0");
    const Outcome never = m_rig->train(spec, *device);
    spec = specOf(*m_rig, of, "eval 1");
    spec.evalEvery = 1;

    const Outcome often = m_rig->train(spec, *device);

    QVERIFY2(often.ended.ok(), often.ended.message().c_str());
    QCOMPARE(often.progress.weightsHash, never.progress.weightsHash);
}

// The exported model as well, with the pending update in it.
void TestZenflowRuns::onDiskARunIsTheOneInMemory()
{
    QFETCH(int, index);
    Case of = kCases[index];
    of.options.insert({"disk-share", "0.7"});
    const auto first = smallDevice();
    const Outcome onDisk = m_rig->train(specOf(*m_rig, of, "on disk"), *first);
    QVERIFY2(onDisk.ended.ok(), onDisk.ended.message().c_str());
    of.options.erase("disk-share");
    const auto second = smallDevice(2, CpuDeviceOptions::Mode::Threaded);

    const Outcome inMemory = m_rig->train(specOf(*m_rig, of, "in memory"), *second);

    QVERIFY2(inMemory.ended.ok(), inMemory.ended.message().c_str());
    if (!inMemory.progress.carry.hostJob) // else the host has got as far as its tiles are cut
        QCOMPARE(onDisk.progress.weightsHash, inMemory.progress.weightsHash);
    const std::vector<StepRow> expected = m_rig->steps(inMemory.id);
    const std::vector<StepRow> steps = m_rig->steps(onDisk.id);
    QCOMPARE(steps.size(), expected.size());
    for (std::size_t s = 0; s < steps.size(); ++s)
        QCOMPARE(steps[s].loss, expected[s].loss);
    const auto exported = [](const Outcome& run) {
        QFile file(QString::fromStdString((run.dir / "model" / "model.safetensors").string()));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    };
    QVERIFY(!exported(onDisk).isEmpty());
    QVERIFY(exported(onDisk) == exported(inMemory));
}

void TestZenflowRuns::theStepRecordHasTheStalenessOfThePlan()
{
    const auto device = smallDevice();
    const Outcome run = m_rig->train(specOf(*m_rig, kCases[0], "staleness"), *device);

    std::vector<std::int64_t> staleness;
    for (const StepRow& step : m_rig->steps(run.id))
        staleness.push_back(step.staleness);

    const std::vector<std::int64_t> expected{0, 0, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3};
    QCOMPARE(staleness, expected); // below 2 x 3
}

void TestZenflowRuns::theExportedModelHasWhatWasPending_data()
{
    QTest::addColumn<int>("index");
    QTest::newRow("zenflow, fp32") << 0;
    QTest::newRow("zenflow, bf16") << 1;
    QTest::newRow("zenflow, sums on the device") << 3;
    QTest::newRow("zenflow, compact state") << 6;
}

MasterBuffers weightsOf(const fs::path& folder, const ParamTable& table, const ModelConfig& config)
{
    MasterBuffers master(table);
    auto weights = openWeights(folder, config, table);
    if (!weights.ok() || !master.fill(*weights.value()).ok())
        qFatal("%s cannot be loaded", folder.c_str());
    return master;
}

// A run that ends with a window in flight, against one that goes on until the window's update is in
// the weights: the host's columns are the same, by the export's update or by the step's.
void TestZenflowRuns::theExportedModelHasWhatWasPending()
{
    QFETCH(int, index);
    const auto device = smallDevice();
    RunSpec spec = specOf(*m_rig, kCases[index], "export");
    spec.steps = 11;
    spec.policyOptions["select"] = "0";
    const Outcome ends = m_rig->train(spec, *device);
    spec = specOf(*m_rig, kCases[index], "export later");
    spec.steps = 14;
    spec.checkpointEvery = 14;
    spec.policyOptions["select"] = "0";
    const Outcome goesOn = m_rig->train(spec, *device);
    QVERIFY2(ends.ended.ok() && goesOn.ended.ok(), ends.ended.message().c_str());

    const ModelConfig config = readModelConfig(ends.dir / "model").value();
    const ParamTable table = buildParamTable(config);
    const MasterBuffers exported = weightsOf(ends.dir / "model", table, config);
    const MasterBuffers applied =
        weightsOf(goesOn.dir / "checkpoints" / "step-00000014" / "model", table, config);
    const MasterBuffers before =
        weightsOf(ends.dir / "checkpoints" / "step-00000011" / "model", table, config);
    std::size_t pending = 0;
    for (std::size_t g = 0; g < table.groups.size(); ++g)
        for (const ParamSlot& slot : table.groups[g].paramSlots) {
            if (slot.rank != 2)
                continue;
            const auto urgent = static_cast<std::int64_t>(0.3 * double(slot.cols));
            for (std::int64_t i = 0; i < slot.count(); ++i) {
                if (i % slot.cols < urgent)
                    continue; // the device goes on with these
                const auto at = static_cast<std::size_t>(slot.first + i);
                QCOMPARE(exported.high[g][at], applied.high[g][at]);
                QCOMPARE(exported.low[g][at], applied.low[g][at]);
                pending += exported.high[g][at] != before.high[g][at] ? 1 : 0;
            }
        }
    QVERIFY(pending > 100); // the checkpoint keeps it as pending
}

// Whether the run ends with a window in flight, with one that is complete, or within one. Hashes of
// the host's master are not compared: in the middle of a window it is ahead by another share.
void TestZenflowRuns::inFp32EveryExportIsThatOfTheHostsSums()
{
    const auto device = smallDevice();
    for (const int steps : {8, 9, 10, 11, 12}) {
        const std::string name = "export fp32 " + std::to_string(steps);
        RunSpec spec = specOf(*m_rig, kCases[0], name + " host");
        spec.steps = steps;
        const Outcome host = m_rig->train(spec, *device);
        spec = specOf(*m_rig, kCases[0], name + " device");
        spec.steps = steps;
        spec.policyOptions["accumulate-on"] = "device";

        const Outcome onDevice = m_rig->train(spec, *device);

        QVERIFY2(onDevice.ended.ok(), onDevice.ended.message().c_str());
        const ModelConfig config = readModelConfig(host.dir / "model").value();
        const ParamTable table = buildParamTable(config);
        const MasterBuffers expected = weightsOf(host.dir / "model", table, config);
        const MasterBuffers exported = weightsOf(onDevice.dir / "model", table, config);
        for (std::size_t g = 0; g < table.groups.size(); ++g) {
            QVERIFY(std::ranges::equal(exported.high[g], expected.high[g]));
            QVERIFY(std::ranges::equal(exported.low[g], expected.low[g]));
        }
    }
}

void TestZenflowRuns::aDamagedWindowFileIsNoticed()
{
    const auto device = smallDevice();
    RunSpec spec = specOf(*m_rig, kCases[1], "damaged");
    spec.checkpointEvery = 4;
    const Outcome stopped = m_rig->train(spec, *device, [](Engine& engine, std::int64_t step) {
        if (step == 4)
            engine.requestStop();
    });
    const fs::path file =
        stopped.dir / "checkpoints" / "step-00000004" / "state" / "window.safetensors";
    QVERIFY(fs::exists(file));
    fs::resize_file(file, fs::file_size(file) - 1);

    const Outcome resumed = m_rig->resume(spec.outDir, *device);

    QVERIFY(!resumed.opened.ok());
    QVERIFY2(resumed.opened.message().find("window.safetensors") != std::string::npos,
        resumed.opened.message().c_str());
}

MR_TEST(TestZenflowRuns)

} // namespace mr::test::tst_zenflow_runs

#include "tst_zenflow_runs.moc"
