// Windows with state on disk: every number is that of a run with its state in memory, whatever the
// share and the engine, and the bytes moved are those planned.

#include "core/model/weights.h"
#include "core/prove/state_of.h"
#include "core/prove/tiny_device.h"
#include "core/prove/zenflow_rig.h"
#include "core/save/checkpoint.h"
#include "core/tier/faulty_io.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_zenflow_disk {

namespace {

using Mode = CpuDeviceOptions::Mode;

struct Variant {
    const char* name;
    const char* policy;
    Options options;
    Options onDisk; // added for a run on disk
    DiskEngine engine = DiskEngine::Auto;
    Mode mode = Mode::Threaded;
};

// Columns change owner after every third or fourth step where `select` says so.
const Variant kVariants[] = {
    {"all", "zenflow", {{"interval", "3"}, {"select", "3"}}, {{"disk-share", "1"}}},
    {"all, by threads", "zenflow", {{"interval", "3"}, {"select", "3"}}, {{"disk-share", "1"}},
        DiskEngine::Threads},
    {"all, inline, small tiles", "zenflow", {{"interval", "3"}, {"select", "6"}},
        {{"disk-share", "1"}, {"tile", "2KiB"}}, DiskEngine::Auto, Mode::Inline},
    {"0.3", "zenflow", {{"interval", "4"}, {"select", "4"}},
        {{"disk-share", "0.3"}, {"tile", "8KiB"}}},
    {"0.3, sums on the device", "zenflow",
        {{"interval", "3"}, {"select", "6"}, {"accumulate-on", "device"}},
        {{"disk-share", "0.3"}, {"tile", "4KiB"}}},
    {"all, sums on the device, by threads", "zenflow",
        {{"interval", "4"}, {"select", "4"}, {"accumulate-on", "device"}},
        {{"disk-share", "1"}, {"tile", "4KiB"}}, DiskEngine::Threads},
    {"0.7, windows of one step", "zenflow", {{"interval", "1"}, {"select", "2"}},
        {{"disk-share", "0.7"}, {"tile", "4KiB"}}},
    {"all, closed in the step", "zenflow", {{"interval", "3"}, {"select", "3"}, {"overlap", "off"}},
        {{"disk-share", "1"}, {"tile", "2KiB"}}},
    {"all, no urgent columns", "zenflow", {{"interval", "3"}, {"urgent", "0"}},
        {{"disk-share", "1"}, {"tile", "4KiB"}}},
    {"all, moments as published", "zenflow",
        {{"interval", "3"}, {"select", "3"}, {"host-clock", "updates"}, {"energy", "l1"}},
        {{"disk-share", "1"}, {"tile", "4KiB"}}},
    {"delayed update, all", "zero-offload-dpu", {}, {{"disk-share", "1"}, {"tile", "4KiB"}}},
    {"delayed update, 0.5, inline", "zero-offload-dpu", {}, {{"disk-share", "0.5"}},
        DiskEngine::Auto, Mode::Inline},
    {"none", "zenflow", {{"interval", "3"}, {"select", "3"}}, {{"disk-share", "0"}}},
};

} // namespace

class TestZenflowDisk : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void numbersAreThoseOfStateInMemory_data();
    void numbersAreThoseOfStateInMemory();
    void everyStepMovesWhatWasPlanned_data();
    void everyStepMovesWhatWasPlanned();
    void lookingBetweenStepsChangesNothing();
    void aCheckpointGoesOnWhereverTheStateIs_data();
    void aCheckpointGoesOnWhereverTheStateIs();
    void aDiskThatFailsInAWindowEndsTheRun_data();
    void aDiskThatFailsInAWindowEndsTheRun();

private:
    PlainRunSpec onDisk(Options options, const std::string& share);

    QTemporaryDir m_folder;
    int m_runs = 0; // each has a file of its own
};

void TestZenflowDisk::numbersAreThoseOfStateInMemory_data()
{
    QTest::addColumn<int>("index");
    QTest::addColumn<int>("type"); // 0 F32, 1 BF16, 2 BF16 with compact state
    QTest::addColumn<double>("clip");
    const char* types[] = {"fp32", "bf16", "compact"};
    for (int i = 0; i < static_cast<int>(std::size(kVariants)); ++i)
        for (const int type : {0, 1, 2})
            for (const double clip : {0.0, 0.25}) {
#ifdef __SANITIZE_THREAD__ // neither a type nor clipping changes a wait
                const bool isOften = clip == 0.0 || type != i % 3;
#else
                const bool isOften = clip == 0.0 && type != i % 3;
#endif
                if (isOften)
                    continue;
                QTest::addRow("%s, %s, clip %g", kVariants[i].name, types[type], clip)
                    << i << type << clip;
            }
}

void TestZenflowDisk::numbersAreThoseOfStateInMemory()
{
    QFETCH(int, index);
    QFETCH(int, type);
    QFETCH(double, clip);
    const Variant& variant = kVariants[index];
    TinyRun run;
    run.policy = variant.policy;
    run.options = variant.options;
    run.options.insert({"warmup", "2"});
    if (run.policy == "zenflow")
        run.options.insert({"urgent", "0.25"});
    if (type == 2)
        run.options["state"] = "compact";
    run.compute = type == 0 ? DType::F32 : DType::BF16;
    run.clipNorm = clip;
    run.accumulate = 2;
    run.config = tinyConfig(index % 2 == 0);
    run.steps = 11;
    [[maybe_unused]] const TinyRun inMemory = run;
    for (const auto& [option, value] : variant.onDisk)
        run.options[option] = value;
    run.disk.folders = {m_folder.path().toStdString()};
    run.disk.store.engine = variant.engine;
    run.disk.store.verify = DiskVerify::All;
    run.updateThreads = 3;

    auto disk = runOn(variant.mode, run);

    QVERIFY2(disk.ok(), disk.status().message().c_str());
#ifndef __SANITIZE_THREAD__ // release compares the bits
    auto memory = runOn(Mode::Inline, inMemory);
    QVERIFY2(memory.ok(), memory.status().message().c_str());
    QCOMPARE(disk.value().weightsHash, memory.value().weightsHash);
    QCOMPARE(disk.value().losses, memory.value().losses);
    QCOMPARE(disk.value().norms, memory.value().norms);
#endif
    QCOMPARE(disk.value().peakHostBytes, disk.value().plannedHostBytes);
    QCOMPARE(disk.value().peakDeviceBytes, disk.value().plannedDeviceBytes);
    QCOMPARE(disk.value().allocationsInSteps, std::size_t{0});
    QVERIFY(std::filesystem::is_empty(m_folder.path().toStdString()));
}

PlainRunSpec TestZenflowDisk::onDisk(Options options, const std::string& share)
{
    options.insert({{"interval", "3"}, {"warmup", "1"}, {"select", "6"}, {"urgent", "0.25"},
        {"tile", "4KiB"}});
    options["disk-share"] = share;
    PlainRunSpec spec = specOf("zenflow", options);
    spec.learningRate = 1e-3;
    spec.disk.folders = {m_folder.path().toStdString()};
    spec.disk.runId = "rig-" + std::to_string(++m_runs);
    spec.disk.store.verify = DiskVerify::All;
    return spec;
}

void TestZenflowDisk::everyStepMovesWhatWasPlanned_data()
{
    QTest::addColumn<QString>("share");
    QTest::addColumn<QString>("codec");
    for (const char* share : {"0.4", "1"})
        for (const char* codec : {"fp32", "compact"})
            QTest::addRow("%s, %s", share, codec)
                << QString::fromUtf8(share) << QString::fromUtf8(codec);
}

// A step that moves columns moves each tile of their weights once more.
void TestZenflowDisk::everyStepMovesWhatWasPlanned()
{
    QFETCH(QString, share);
    QFETCH(QString, codec);
    Rig rig(onDisk({{"state", codec.toStdString()}}, share.toStdString()));
    installCoarseWeights(*rig.run);
    const auto all =
        static_cast<std::int64_t>(rig.run->memoryPlan().bytes(Tier::Disk) - kDiskAlign);
    std::int64_t movedSteps = 0;
    std::int64_t written = 0;
    for (int s = 1; s <= 13; ++s) {
        const StepResult step = rig.step();

        const DiskTraffic planned =
            diskTraffic(rig.run->stepPlan(), rig.run->shape(), rig.run->precision());
        const std::int64_t more = step.diskReadBytes - planned.readBytes;
        QCOMPARE(step.diskWrittenBytes - planned.writtenBytes, more);
        if (step.movedBytes == 0)
            QCOMPARE(more, 0);
        else
            QVERIFY(more > 0 && more <= all);
        movedSteps += step.movedBytes > 0 ? 1 : 0;
        written += s > 7 && s <= 10 ? step.diskWrittenBytes : 0;
    }
    QCOMPARE(movedSteps, 3);                // after steps 1, 7 and 13
    QCOMPARE(rig.unplannedBytes > 0, true); // moved columns, over the link
    QVERIFY(written <= all);
    QVERIFY(all > 0);
}

// The host has its own columns and the device its own, and no job is in flight: columns moved.
constexpr int kBetweenWindows[] = {1, 7};

bool isBetweenWindows(int step)
{
    return std::ranges::find(kBetweenWindows, step) != std::end(kBetweenWindows);
}

// Weights are read between any two steps.
void TestZenflowDisk::lookingBetweenStepsChangesNothing()
{
    Rig inMemory(onDisk({}, "0"));
    Rig alone(onDisk({}, "1"));
    Rig lookedAt(onDisk({}, "1"));
    for (Rig* rig : {&inMemory, &alone, &lookedAt})
        installCoarseWeights(*rig->run);
    MasterBuffers last = stateOf(*lookedAt.run);
    for (int s = 1; s <= 10; ++s) {
        const double loss = inMemory.step().lossSum;
        QCOMPARE(alone.step().lossSum, loss);
        QCOMPARE(lookedAt.step().lossSum, loss);
        last = stateOf(*lookedAt.run);
        if (!isBetweenWindows(s)) // else a master is ahead as far as its tiles are cut
            continue;
        const MasterBuffers expected = stateOf(*inMemory.run);
        QVERIFY(last.high == expected.high);
        QVERIFY(last.low == expected.low);
    }
    const MasterBuffers expected = stateOf(*alone.run);
    QVERIFY(last.high == expected.high);
    QVERIFY(last.low == expected.low);
}

// Context to write a checkpoint from and to load it into.
CheckpointContext contextOf(Rig& rig, const std::string& carryFrom)
{
    return {rig.run->spec().config, rig.run->table(), const_cast<RunMemory&>(rig.run->memory()),
        rig.run->executor(), carryFrom};
}

void TestZenflowDisk::aCheckpointGoesOnWhereverTheStateIs_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("codec");
    for (const char* codec : {"fp32", "compact"})
        for (const auto& [from, to] : {std::pair{"0", "1"}, {"1", "0"}, {"0.4", "1"}, {"1", "1"}})
            QTest::addRow("from %s to %s, %s", from, to, codec)
                << QString::fromUtf8(from) << QString::fromUtf8(to) << QString::fromUtf8(codec);
}

// Between two windows: a job in flight counts tiles.
void TestZenflowDisk::aCheckpointGoesOnWhereverTheStateIs()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, codec);
    const Options options = {{"state", codec.toStdString()}};
    QTemporaryDir saved;
    const std::string folder = saved.path().toStdString();
    Rig first(onDisk(options, from.toStdString()));
    installCoarseWeights(*first.run);
    for (int s = 0; s < 7; ++s) // closed in its own step, because columns move
        first.step();
    RunProgress progress;
    progress.step = 7;
    auto written = writeCheckpoint(contextOf(first, folder), folder, progress);
    QVERIFY2(written.ok(), written.status().message().c_str());
    Rig same(onDisk(options, from.toStdString()));
    Rig other(onDisk(options, to.toStdString()));
    for (Rig* rig : {&same, &other}) {
        const auto loaded = loadCheckpoint(contextOf(*rig, folder), written.value().path);
        QVERIFY2(loaded.ok(), loaded.status().message().c_str());
    }
    auto master = stateMaster(other.run->executor(), other.run->memory());
    QVERIFY(master.ok());
    auto hash = weightsHash(other.run->table(), *master.value());
    QVERIFY(hash.ok());
    QCOMPARE(hash.value(), progress.weightsHash);

    for (int s = 1; s <= 9; ++s) {
        QCOMPARE(other.step().lossSum, same.step().lossSum);
        if (!isBetweenWindows(s))
            continue;
        const MasterBuffers there = stateOf(*other.run);
        const MasterBuffers here = stateOf(*same.run);
        QVERIFY(there.high == here.high);
        QVERIFY(there.low == here.low);
    }
}

void TestZenflowDisk::aDiskThatFailsInAWindowEndsTheRun_data()
{
    QTest::addColumn<bool>("isRead");
    QTest::addColumn<int>("step");
    QTest::addColumn<Mode>("mode");
    for (const bool isRead : {false, true})
        for (const int step : {1, 5, 7}) // moves columns; is amid a window; ends two
            for (const Mode mode : {Mode::Inline, Mode::Threaded})
                QTest::addRow("%s of step %d, %s", isRead ? "read" : "write", step,
                    mode == Mode::Inline ? "inline" : "threaded")
                    << isRead << step << mode;
}

// The step is not done, nothing goes on, and no thread waits for bytes that do not come.
void TestZenflowDisk::aDiskThatFailsInAWindowEndsTheRun()
{
    QFETCH(bool, isRead);
    QFETCH(int, step);
    QFETCH(Mode, mode);
    TinyRun run;
    run.policy = "zenflow";
    run.options = {
        {"interval", "3"}, {"warmup", "1"}, {"select", "6"}, {"disk-share", "1"}, {"tile", "4KiB"}};
    run.compute = DType::BF16;
    run.disk.folders = {m_folder.path().toStdString()};
    run.steps = step;
    const DiskOp op = isRead ? DiskOp::Read : DiskOp::Write;
    DiskFaults faults;
    run.disk.store.wrapIo = [&faults](std::unique_ptr<DiskIo> io) {
        return std::unique_ptr<DiskIo>(std::make_unique<FaultyIo>(std::move(io), faults));
    };
    auto healthy = runOn(Mode::Inline, run);
    QVERIFY2(healthy.ok(), healthy.status().message().c_str());
    QVERIFY(healthy.value().diskReadBytes > 0);
    auto plan = PlainRun::plan(plainRunSpec(run));
    QVERIFY(plan.ok());
    // The last but one of the step: afterwards the hash reads every tile.
    const auto seen = static_cast<int>(std::ranges::count(faults.seen, op, &DiskRequest::op));
    const int after = isRead ? static_cast<int>(plan.value().disk.tiles.size()) : 0;
    faults.seen.clear();
    faults.rules = {{FaultKind::Result, op, seen - after - 2, -EIO, 2}};

    const auto failed = runOn(mode, run);

    QVERIFY(!failed.ok());
    QCOMPARE(failed.status().kind(), ErrorKind::Io);
    QVERIFY2(failed.status().message().find("smartctl") != std::string::npos,
        failed.status().message().c_str());
    QCOMPARE(faults.inFlightAtEnd.load(), 0);
    QVERIFY(std::filesystem::is_empty(m_folder.path().toStdString()));
}

MR_TEST_WITH_APP(TestZenflowDisk)

} // namespace mr::test::tst_zenflow_disk

#include "tst_zenflow_disk.moc"
