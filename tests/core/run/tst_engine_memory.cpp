// Runs that meet the end of the memory: when they open, in a step, in an evaluation.

#include "core/run/engine.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"
#include "support/wrapped_device.h"

#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

namespace mr::test::tst_engine_memory {

namespace {

// Refuses calls for lack of memory, once so many steps of a run are done. The engine asks for the
// memory usage once in every step.
class ScarceDevice final : public WrappedDevice
{
public:
    struct Refusal {
        int afterSteps = 0;
        std::string_view what;
        int skip = 0;  // calls that go through before
        int times = 1; // -1: all from then on
    };

    ScarceDevice(Device& inner, std::vector<Refusal> refusals)
        : WrappedDevice(inner)
        , m_refusals(std::move(refusals))
    {
    }

    Status onCall(const DeviceCall& call) override
    {
        for (Refusal& refusal : m_refusals) {
            if (m_steps < refusal.afterSteps || call.what != refusal.what || refusal.times == 0)
                continue;
            if (refusal.skip-- > 0)
                continue;
            --refusal.times;
            ++refused;
            return Status::error(ErrorKind::OutOfMemory, "taken by somebody else");
        }
        return {};
    }

    MemoryUsage memoryUsage() const noexcept override
    {
        ++m_steps;
        return WrappedDevice::memoryUsage();
    }

    int refused = 0;

private:
    std::vector<Refusal> m_refusals;
    mutable int m_steps = 0;
};

// "<policy>", or "<policy> late".
void setPolicy(RunSpec& spec, const QString& words)
{
    const QStringList parts = words.split(QLatin1Char(' '));
    spec.policy = parts.first().toStdString();
    const bool late = parts.size() > 1;
    if (late)
        spec.policyOptions = {{"late", "0.6"}, {"tile", "4KiB"}};
    if (spec.policy != "ssd-vertical")
        return;
    spec.diskPaths = {std::filesystem::path(spec.outDir).parent_path().string()};
    spec.policyOptions["order"] = "by-layer"; // as in the others' hash
    if (!late)
        spec.policyOptions["late"] = "0";
}

constexpr const char* kReplanned = "memory_replanned";

int count(const std::string& text, std::string_view word)
{
    int found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        ++found;
    return found;
}

} // namespace

class TestEngineMemory : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void aRunThatFindsLessThanItPlannedOpensWithAnotherPlan();
    void aRunThatFindsNothingFails();
    void anAllocationThatFailsOnceIsPlannedAround();
    void aStepThatLacksMemoryIsDoneAgainWithTheSameBits_data();
    void aStepThatLacksMemoryIsDoneAgainWithTheSameBits();
    void aStepThatHadBegunItsUpdateGoesBackToTheLastCheckpoint_data();
    void aStepThatHadBegunItsUpdateGoesBackToTheLastCheckpoint();
    void anEvaluationThatLacksMemoryIsMadeAgain();
    void memoryThatLacksWhileTheRunOpensAgainIsPlannedAroundToo();
    void aRunThatLacksMemoryAgainAndAgainFailsAndCanBeResumed();
    void aRunThatWentBackShowsNoStepsItDoesNotHave();
    void memoryThatLacksInACopyDamagesNothing_data();
    void memoryThatLacksInACopyDamagesNothing();
    void aRunResumedWithLessMemoryIsPlannedAgain();
    void windowsGoOnFromTheirCheckpoint_data();
    void windowsGoOnFromTheirCheckpoint();
    void aStopWhileARunOpensAgainIsNoFailure();

private:
    std::string hashOf(const RunSpec& spec) const;

    std::unique_ptr<RunRig> m_rig;
    std::string m_hash; // every exact run's weights
};

std::string TestEngineMemory::hashOf(const RunSpec& spec) const
{
    const auto device = smallDevice();
    const Outcome run = m_rig->train(spec, *device);
    return run.ended.ok() ? run.progress.weightsHash : std::string();
}

void TestEngineMemory::initTestCase()
{
    m_rig = std::make_unique<RunRig>();
    m_hash = hashOf(m_rig->spec("plain"));
    QCOMPARE(m_hash.size(), std::size_t{32});
}

void TestEngineMemory::aRunThatFindsLessThanItPlannedOpensWithAnotherPlan()
{
    const RunSpec spec = m_rig->spec("less");
    const std::uint64_t planned = planRun(spec).value().tiers[0].totalBytes;
    CpuDeviceOptions options;
    options.memoryBytes = static_cast<std::size_t>(planned * 3 / 4);
    const auto device = std::move(makeCpuDevice(options)).value();

    const Outcome run = m_rig->train(spec, *device);

    QVERIFY2(run.opened.ok(), run.opened.message().c_str());
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    const std::string messages = m_rig->messages(run.id);
    QCOMPARE(count(messages, kReplanned), 1);
    QVERIFY2(contains(messages, "Planned as policy resident"), messages.c_str());
    // Record and history name the options in use.
    const RunSpec kept = readRunSpec(spec.outDir).value();
    QVERIFY(kept.deviceMemoryBytes <= options.memoryBytes);
    QVERIFY(kept.policy != "resident" || kept.recompute != RecomputeChoice::None);
    const RunRow row = m_rig->row(run.id);
    QCOMPARE(runSpecFromJson(row.configJson).value().policy, kept.policy);
    QVERIFY(contains(messages, "goes on as policy " + kept.policy));
}

void TestEngineMemory::aRunThatFindsNothingFails()
{
    CpuDeviceOptions options;
    options.memoryBytes = 4096;
    const auto device = std::move(makeCpuDevice(options)).value();

    const Outcome run = m_rig->train(m_rig->spec("nothing"), *device);

    QVERIFY(!run.opened.ok());
    QCOMPARE(run.opened.kind(), ErrorKind::OutOfMemory);
    QVERIFY2(contains(run.opened.message(), "no room for") &&
                 contains(run.opened.message(), "no other plan fits: device memory: needs"),
        run.opened.message().c_str());
}

void TestEngineMemory::anAllocationThatFailsOnceIsPlannedAround()
{
    const auto inner = smallDevice();
    for (int n = 0; n < 30; n += 3) {
        ScarceDevice device(*inner, {{0, "allocate", n}});

        const Outcome run = m_rig->train(m_rig->spec("once-" + std::to_string(n)), device);

        QVERIFY2(run.opened.ok(), run.opened.message().c_str());
        QCOMPARE(run.progress.weightsHash, m_hash);
        QCOMPARE(count(m_rig->messages(run.id), kReplanned), device.refused);
    }
}

void TestEngineMemory::aStepThatLacksMemoryIsDoneAgainWithTheSameBits_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<bool>("threaded");
    QTest::addColumn<int>("steps");
    QTest::addColumn<QString>("what");
    QTest::addColumn<int>("skip");
    QTest::newRow("resident") << "resident" << false << 2 << "embed" << 1;
    QTest::newRow("resident, threaded") << "resident" << true << 2 << "embed" << 1;
    QTest::newRow("zero-offload") << "zero-offload" << false << 2 << "embed" << 1;
    QTest::newRow("zero-offload, threaded") << "zero-offload" << true << 2 << "embed" << 1;
    QTest::newRow("deep-optimizer-states") << "deep-optimizer-states" << true << 2 << "embed" << 1;
    QTest::newRow("in the first step") << "resident" << true << 0 << "embed" << 1;
    QTest::newRow("at its end") << "zero-offload" << true << 2 << "normJoin" << 0;
    // The step before left updates, which are made before the run is saved.
    QTest::newRow("before late parts") << "zero-offload late" << true << 2 << "copy" << 0;
    QTest::newRow("before late parts on the device")
        << "deep-optimizer-states late" << true << 2 << "record" << 0;
    QTest::newRow("state on disk") << "ssd-vertical" << true << 2 << "normJoin" << 0;
    QTest::newRow("state on disk, inline") << "ssd-vertical" << false << 2 << "embed" << 1;
}

// The step is under way and has changed nothing; "embed" is the second micro-batch's first op.
void TestEngineMemory::aStepThatLacksMemoryIsDoneAgainWithTheSameBits()
{
    QFETCH(QString, policy);
    QFETCH(bool, threaded);
    QFETCH(int, steps);
    QFETCH(QString, what);
    QFETCH(int, skip);
    const std::string call = what.toStdString();
    const auto inner = smallDevice(
        2, threaded ? CpuDeviceOptions::Mode::Threaded : CpuDeviceOptions::Mode::Inline);
    ScarceDevice device(*inner, {{steps, call, skip}});
    RunSpec spec = m_rig->spec("step-" + std::string(QTest::currentDataTag()));
    setPolicy(spec, policy);

    const Outcome run = m_rig->train(spec, device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(device.refused, 1);
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{12});
    const std::string messages = m_rig->messages(run.id);
    QCOMPARE(count(messages, kReplanned), 1);
    QVERIFY2(
        contains(messages, steps == 0 ? "from the beginning" : "from step 2"), messages.c_str());
    QCOMPARE(count(messages, "repeated"), 0);
    const RunSpec kept = readRunSpec(spec.outDir).value();
    // Under all policies one of the two frees a tenth.
    QVERIFY(kept.recompute == RecomputeChoice::Cheap || kept.recompute == RecomputeChoice::Block);
    QCOMPARE(m_rig->row(run.id).configJson, toJson(kept));
    const std::string how(name(kept.recompute));
    QVERIFY(contains(m_rig->row(run.id).planJson, "\"recompute\":\"" + how + "\""));
}

void TestEngineMemory::aStepThatHadBegunItsUpdateGoesBackToTheLastCheckpoint_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("what");
    QTest::addColumn<int>("every");
    QTest::addColumn<QString>("text");
    QTest::newRow("no checkpoint")
        << "resident"
        << "adamw" << 0 << "from the beginning; steps 1 to 3 are repeated";
    QTest::newRow("a checkpoint") << "resident"
                                  << "adamw" << 2 << "from step 2; step 3 is repeated";
    QTest::newRow("the checkpoint of this step") << "resident"
                                                 << "adamw" << 3 << "from step 3";
    QTest::newRow("late parts") << "zero-offload late"
                                << "embed" << 2 << "from step 2; step 3 is repeated";
    QTest::newRow("late parts on disk") << "ssd-vertical late"
                                        << "embed" << 2 << "from step 2; step 3 is repeated";
}

void TestEngineMemory::aStepThatHadBegunItsUpdateGoesBackToTheLastCheckpoint()
{
    QFETCH(QString, policy);
    QFETCH(QString, what);
    QFETCH(int, every);
    QFETCH(QString, text);
    const std::string call = what.toStdString();
    const auto inner = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    ScarceDevice device(*inner, {{3, call, 1}});
    RunSpec spec = m_rig->spec("begun-" + std::string(QTest::currentDataTag()));
    setPolicy(spec, policy);
    spec.checkpointEvery = every;
    spec.evalEvery = 2;

    const Outcome run = m_rig->train(spec, device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(device.refused, 1);
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{12});
    const std::string messages = m_rig->messages(run.id);
    QVERIFY2(contains(messages, text.toStdString()), messages.c_str());
    const auto evals =
        RunReader::open(m_rig->database).value()->scalars(run.id, "eval_loss", -1).value();
    QCOMPARE(evals.size(), std::size_t{7}); // one curve: before, and after every second step
}

void TestEngineMemory::anEvaluationThatLacksMemoryIsMadeAgain()
{
    const auto inner = smallDevice();
    ScarceDevice device(*inner, {{3, "attention", 1}});
    RunSpec spec = m_rig->spec("evaluation");
    spec.evalEvery = 3;

    const Outcome run = m_rig->train(spec, device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(device.refused, 1);
    QCOMPARE(run.progress.weightsHash, m_hash);
    const std::string messages = m_rig->messages(run.id);
    QVERIFY2(contains(messages, "from step 3."), messages.c_str());
    const auto evals =
        RunReader::open(m_rig->database).value()->scalars(run.id, "eval_loss", -1).value();
    QCOMPARE(evals.size(), std::size_t{5}); // before, and after 3, 6, 9 and 12
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{12});
}

void TestEngineMemory::memoryThatLacksWhileTheRunOpensAgainIsPlannedAroundToo()
{
    const auto inner = smallDevice();
    ScarceDevice device(*inner, {{2, "embed", 1}, {2, "allocate", 3}});

    const Outcome run = m_rig->train(m_rig->spec("again"), device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(device.refused, 2);
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(count(m_rig->messages(run.id), kReplanned), 2);
}

void TestEngineMemory::aRunThatLacksMemoryAgainAndAgainFailsAndCanBeResumed()
{
    const auto inner = smallDevice();
    ScarceDevice device(*inner, {{2, "embed", 0, -1}});
    const RunSpec spec = m_rig->spec("always");

    const Outcome run = m_rig->train(spec, device);

    QVERIFY(!run.ended.ok());
    QCOMPARE(run.ended.kind(), ErrorKind::OutOfMemory);
    QVERIFY2(contains(run.ended.message(), "out of memory 4 times without a step in between"),
        run.ended.message().c_str());
    QCOMPARE(count(m_rig->messages(run.id), kReplanned), 3);
    const Outcome resumed = m_rig->resume(spec.outDir, *inner);
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_hash);
}

void TestEngineMemory::aRunThatWentBackShowsNoStepsItDoesNotHave()
{
    const auto inner = smallDevice();
    // In step 4, and from then on for good.
    ScarceDevice device(*inner, {{3, "adamw", 1}, {3, "embed", 2, -1}});

    const Outcome run = m_rig->train(m_rig->spec("back"), device);

    QVERIFY(!run.ended.ok());
    QCOMPARE(run.progress.step, 0);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{0});
    QVERIFY(contains(m_rig->messages(run.id), "from the beginning; steps 1 to 3 are repeated"));
}

void TestEngineMemory::memoryThatLacksInACopyDamagesNothing_data()
{
    QTest::addColumn<int>("steps");
    QTest::addColumn<int>("skip");
    // While a step is saved that lacked memory, while it is loaded again, while the run ends.
    for (const int steps : {2, 12})
        for (const int skip : {0, 3, 10, 20, 30, 40, 60})
            QTest::addRow("after %d steps and %d copies", steps, skip) << steps << skip;
}

void TestEngineMemory::memoryThatLacksInACopyDamagesNothing()
{
    QFETCH(int, steps);
    QFETCH(int, skip);
    const auto inner = smallDevice();
    ScarceDevice device(*inner, {{2, "embed", 1}, {steps, "copy", skip}});

    const Outcome run = m_rig->train(m_rig->spec(QTest::currentDataTag()), device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(run.id).size(), std::size_t{12});
    QCOMPARE(count(m_rig->messages(run.id), "checkpoint_broken"), 0);
    const auto rows = RunReader::open(m_rig->database).value()->checkpoints(run.id).value();
    for (const CheckpointRow& row : rows)
        QVERIFY(row.state != "broken");
    QVERIFY(std::filesystem::exists(run.dir / "model" / "model.safetensors"));
}

void TestEngineMemory::aRunResumedWithLessMemoryIsPlannedAgain()
{
    RunSpec spec = m_rig->spec("resumed");
    spec.checkpointEvery = 5;
    const auto first = smallDevice();
    const Outcome stopped =
        m_rig->train(spec, *first, [](Engine& engine, std::int64_t) { engine.requestStop(); });
    QCOMPARE(stopped.progress.step, 5);
    CpuDeviceOptions options;
    options.memoryBytes = static_cast<std::size_t>(planRun(spec).value().tiers[0].totalBytes - 1);
    const auto second = std::move(makeCpuDevice(options)).value();

    const Outcome run = m_rig->resume(spec.outDir, *second);

    QVERIFY2(run.opened.ok(), run.opened.message().c_str());
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_hash);
    QCOMPARE(count(m_rig->messages(run.id), kReplanned), 1);
    const RunSpec kept = readRunSpec(spec.outDir).value();
    QCOMPARE(kept.recompute, RecomputeChoice::Cheap);
    QCOMPARE(m_rig->row(run.id).configJson, toJson(kept));
    QCOMPARE(m_rig->row(run.id).createdMs, m_rig->row(stopped.id).createdMs);
}

void TestEngineMemory::windowsGoOnFromTheirCheckpoint_data()
{
    QTest::addColumn<QString>("share");
    QTest::newRow("in memory") << "0";
    QTest::newRow("on disk") << "1";
}

// Sums and the job in flight mean something to this policy alone, so it stays.
void TestEngineMemory::windowsGoOnFromTheirCheckpoint()
{
    QFETCH(QString, share);
    const std::string name = "windows " + share.toStdString();
    RunSpec spec = m_rig->spec(name + " plain");
    spec.policy = "zenflow";
    spec.policyOptions = {{"warmup", "2"}, {"interval", "3"}, {"disk-share", share.toStdString()}};
    spec.diskPaths = {m_rig->folder.path()};
    spec.checkpointEvery = 3;
    const std::string hash = hashOf(spec);
    const auto inner = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    ScarceDevice device(*inner, {{7, "embed", 1}});
    spec.outDir = m_rig->folder.path(name);

    const Outcome run = m_rig->train(spec, device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(device.refused, 1);
    QCOMPARE(run.progress.weightsHash, hash);
    QVERIFY(contains(m_rig->messages(run.id), "from step 6; step 7 is repeated"));
    QCOMPARE(readRunSpec(spec.outDir).value().policy, std::string("zenflow"));
}

// Its body is gone and its new file is being filled.
void TestEngineMemory::aStopWhileARunOpensAgainIsNoFailure()
{
    const auto inner = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    ScarceDevice device(*inner, {{3, "embed", 1}});
    RunSpec spec = m_rig->spec("stopped-again");
    setPolicy(spec, QStringLiteral("ssd-vertical late"));
    spec.checkpointEvery = 2;
    int asked = 0;
    m_rig->opening.isCancelled = [&asked] { return ++asked >= 2; }; // its second file

    const Outcome stopped = m_rig->train(spec, device);
    m_rig->opening = {};
    const Outcome resumed = m_rig->resume(spec.outDir, *inner);

    QCOMPARE(device.refused, 1);
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.state, RunState::Stopped);
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_hash);
    QCOMPARE(m_rig->steps(resumed.id).size(), std::size_t{12});
}

MR_TEST(TestEngineMemory)

} // namespace mr::test::tst_engine_memory

#include "tst_engine_memory.moc"
