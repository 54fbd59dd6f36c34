// Boundaries on disk: how a plan moves them, their cost, and the errors of the checker when a part
// is missing or out of place.

#include "core/plan/cost_model.h"
#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/disk_bench.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace mr::test::tst_plan_boundaries {

namespace {

using Options = std::map<std::string, std::string>;

constexpr const char* kLastReader = "a slot is refilled only after its last reader";
constexpr std::size_t kBoundary = 5000; // bytes: two pages on disk

// Five blocks: the outputs of four layers are saved.
Bench deepBench(Options options = {})
{
    options.insert({{"boundaries-on-disk", "1"}, {"late", "0"}});
    Bench bench = diskBench(options);
    bench.shape = smallShape(5);
    bench.shape.boundaryBytes = kBoundary;
    return bench;
}

int countOf(const StepPlan& plan, TaskKind kind)
{
    return static_cast<int>(std::ranges::count(plan.tasks, kind, &Task::kind));
}

std::size_t hostBytes(const Bench& bench, MemoryUse use)
{
    return memoryOf(bench).bytes(Tier::PinnedHost, use);
}

// Inserts a task at this index; waits follow their tasks.
void insert(StepPlan& plan, TaskIndex at, Task task, const std::vector<Wait>& waits)
{
    for (Wait& wait : plan.waits)
        if (!wait.isCarried() && wait.index() >= at)
            wait = Wait::onTask(wait.index() + 1);
    task.firstWait = static_cast<std::uint32_t>(plan.waits.size());
    task.waitCount = static_cast<std::uint16_t>(waits.size());
    plan.waits.insert(plan.waits.end(), waits.begin(), waits.end());
    plan.tasks.insert(plan.tasks.begin() + at, task);
}

bool isAny(const Task& /*task*/)
{
    return true;
}

} // namespace

class TestPlanBoundaries : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPlanHoldsAndEveryWaitIsNeeded_data()
    {
        QTest::addColumn<QString>("order");
        QTest::addColumn<QString>("share");
        QTest::addColumn<bool>("rest"); // is on disk, too
        for (const char* order : {"by-layer-flip", "by-layer", "by-microbatch"})
            for (const char* share : {"0.3", "1"})
                for (const bool rest : {false, true})
                    QTest::addRow("%s, %s on disk%s", order, share, rest ? ", all else, too" : "")
                        << QString::fromUtf8(order) << QString::fromUtf8(share) << rest;
    }

    void everyPlanHoldsAndEveryWaitIsNeeded()
    {
        QFETCH(const QString, order);
        QFETCH(const QString, share);
        QFETCH(const bool, rest);
        Options options = {{"order", order.toStdString()}, {"late", "0.25"},
            {"boundaries-on-disk", share.toStdString()}, {"disk-share", "0"}};
        if (rest)
            options.insert_or_assign("disk-share", "1");
        if (rest)
            options.insert({{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}});
        Bench bench = deepBench(options);
        for (const Precision precision : {Precision::BF16, Precision::F32})
            for (const double clip : {0.0, 1.0})
                for (const int microBatches : {1, 3, 8}) {
                    bench.precision = precision;
                    bench.in = carryOf(6);
                    for (int step = 0; step < 2; ++step) { // the second makes late parts
                        bench.build(microBatches, clip);
                        HOLDS(bench);
                        const std::string needless = needlessWaits(bench, isAny);
                        QVERIFY2(needless.empty(), needless.c_str());
                        QVERIFY(countOf(bench.plan(), TaskKind::ReadBoundary) > 0);
                        bench.in = bench.built.out;
                    }
                    flush(bench);
                    HOLDS(bench);
                    QCOMPARE(bench.plan().boundaryStages, 0);
                }
    }

    // Saved and written in forward, read and loaded in backward; the layer above reads the fresh
    // boundary on the device.
    void eachGoesAndComesOnceAStep()
    {
        Bench bench = deepBench();
        bench.build();
        for (const TaskKind kind : {TaskKind::SaveBoundary, TaskKind::WriteBoundary,
                 TaskKind::ReadBoundary, TaskKind::LoadBoundary})
            QCOMPARE(countOf(bench.plan(), kind), 4 * 3);
        const auto firstRead =
            std::ranges::find(bench.plan().tasks, TaskKind::ReadBoundary, &Task::kind);
        const auto firstBackward =
            std::ranges::find(bench.plan().tasks, TaskKind::Backward, &Task::kind);
        QVERIFY(firstBackward < firstRead);

        const DiskTraffic with = diskTraffic(bench.plan(), bench.shape, Precision::BF16);
        bench = deepBench({{"boundaries-on-disk", "0"}});
        bench.build();
        const DiskTraffic without = diskTraffic(bench.plan(), bench.shape, Precision::BF16);
        QCOMPARE(with.readBytes - without.readBytes, std::int64_t{4 * 3 * 8192});
        QCOMPARE(with.writtenBytes - without.writtenBytes, std::int64_t{4 * 3 * 8192});
    }

    // The first of backward are read while the device still works, as far as there are places.
    void readsWaitForAPlaceOnly()
    {
        Bench bench = deepBench();
        bench.build();
        int read = 0;
        for (const Task& task : bench.plan().tasks) {
            if (task.kind != TaskKind::ReadBoundary)
                continue;
            const auto waits = bench.plan().waitsOf(task);
            QCOMPARE(waits.size(), std::size_t{read++ < kDiskStages ? 0U : 1U});
            for (const Wait wait : waits)
                QCOMPARE(bench.plan().tasks[wait.index()].kind, TaskKind::LoadBoundary);
        }
        QCOMPARE(read, 12);
    }

    void evaluationsSaveNone()
    {
        Bench bench = deepBench({{"disk-share", "0"}});
        Result<StepPlan> evaluation =
            buildEvaluation(specOf(7, 4), bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(evaluation.ok());
        bench.built = {std::move(evaluation).value(), bench.in};
        HOLDS(bench);
        QVERIFY(std::ranges::none_of(
            bench.plan().tasks, [](const Task& task) { return isDisk(task.lane); }));
    }

    // Boundaries on disk take disk bytes in place of host bytes, except for four stages.
    void bytesToTheByte()
    {
        const Bench none = deepBench({{"boundaries-on-disk", "0"}});
        const Bench half = deepBench({{"boundaries-on-disk", "0.5"}});
        const Bench all = deepBench();
        QCOMPARE(hostBytes(none, MemoryUse::Boundaries), 12 * kBoundary);
        QCOMPARE(hostBytes(half, MemoryUse::Boundaries), 6 * kBoundary);
        QCOMPARE(hostBytes(all, MemoryUse::Boundaries), std::size_t{0});
        for (const Bench* bench : {&half, &all})
            QCOMPARE(hostBytes(*bench, MemoryUse::DiskSlots),
                hostBytes(none, MemoryUse::DiskSlots) + std::size_t{4 * 8192});
        QCOMPARE(memoryOf(half).bytes(Tier::Disk),
            memoryOf(none).bytes(Tier::Disk) + std::size_t{6 * 8192});
        QCOMPARE(
            memoryOf(all).bytes(Tier::Disk, MemoryUse::DiskBoundaries), std::size_t{12 * 8192});
        QCOMPARE(memoryOf(all).bytes(Tier::Device), memoryOf(none).bytes(Tier::Device));
    }

    // State in memory, and the disk for activations alone.
    void nothingElseNeedsToBeOnDisk()
    {
        const Bench bench = deepBench({{"disk-share", "0"}});
        const MemoryPlan plan = memoryOf(bench);
        QCOMPARE(plan.bytes(Tier::PinnedHost, MemoryUse::DiskSlots), std::size_t{4 * 8192 + 4096});
        QCOMPARE(plan.bytes(Tier::Disk), std::size_t{12 * 8192 + 4096});
        QVERIFY(plan.usesDisk() && !plan.disk.isActive());
    }

    void placesDoNotGrowWithDepth()
    {
        Bench deep = deepBench({{"disk-share", "0"}});
        deep.shape = smallShape(40);
        deep.shape.boundaryBytes = kBoundary;
        QCOMPARE(hostBytes(deep, MemoryUse::DiskSlots), std::size_t{4 * 8192 + 4096});
        QCOMPARE(hostBytes(deep, MemoryUse::Boundaries), std::size_t{0});
    }

    void whatIsMissingOrElsewhereIsFound_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("nth");
        QTest::addColumn<QString>("change");
        QTest::addColumn<QString>("rule");
        const auto row = [](TaskKind kind, int nth, const char* change, const char* rule) {
            QTest::addRow("%s %d %s", std::string(name(kind)).c_str(), nth, change)
                << static_cast<int>(kind) << nth << QString::fromUtf8(change)
                << QString::fromUtf8(rule);
        };
        constexpr const char* kNotSaved = "it may not be saved yet";
        constexpr const char* kNotCome = "it may not have come from disk";
        row(TaskKind::WriteBoundary, 1, "erased", kLastReader);
        row(TaskKind::WriteBoundary, 11, "erased", "it may not be on disk yet");
        row(TaskKind::ReadBoundary, 1, "erased", kNotCome);
        row(TaskKind::LoadBoundary, 1, "erased", "the output of the layer before may not be there");
        row(TaskKind::SaveBoundary, 1, "erased", kNotSaved);
        row(TaskKind::WriteBoundary, 1, "elsewhere", kNotSaved);
        row(TaskKind::SaveBoundary, 2, "elsewhere", kNotSaved);
        row(TaskKind::SaveBoundary, 5, "elsewhere", kLastReader);
        row(TaskKind::ReadBoundary, 2, "elsewhere", kNotCome);
        row(TaskKind::LoadBoundary, 2, "elsewhere", kNotCome);
        row(TaskKind::WriteBoundary, 1, "of another", kNotSaved);
        row(TaskKind::ReadBoundary, 1, "of another", kNotCome);
        for (const TaskKind kind : {TaskKind::SaveBoundary, TaskKind::WriteBoundary,
                 TaskKind::ReadBoundary, TaskKind::LoadBoundary}) {
            row(kind, 2, "nowhere", "there is no such place");
            row(kind, 2, "behind all", "there is no such place");
        }
    }

    void whatIsMissingOrElsewhereIsFound()
    {
        QFETCH(const int, kind);
        QFETCH(const int, nth);
        QFETCH(const QString, change);
        QFETCH(const QString, rule);
        Bench bench = deepBench({{"disk-share", "0"}});
        bench.build();
        HOLDS(bench);
        QCOMPARE(bench.plan().boundaryStages, 4);
        Task& task = bench.find(static_cast<TaskKind>(kind), nth);
        if (change == QStringLiteral("elsewhere"))
            task.stage ^= 1;
        else if (change == QStringLiteral("of another"))
            task.micro.value = (task.micro.value + 1) % 3;
        else if (change == QStringLiteral("nowhere"))
            task.stage = -1;
        else if (change == QStringLiteral("behind all"))
            task.stage = 4;
        else
            bench.erase(static_cast<TaskKind>(kind), nth);

        BREAKS(bench, rule.toStdString());
    }

    void whatIsNotOnDiskIsNotRead()
    {
        Bench bench = deepBench({{"disk-share", "0"}, {"order", "by-microbatch"}});
        bench.build();
        HOLDS(bench);
        // The second micro-batch's turn with the tile of layer 0 comes after the first one's.
        Task& read = bench.find(TaskKind::ReadBoundary, 3);
        QCOMPARE(read.group, GroupId{0});
        read.micro = MicroBatch{1};
        BREAKS(bench, "it may not be on disk yet");
    }

    // A second save, to a free stage, and its write over a boundary that no task has read.
    void whatWasNotReadIsNotWrittenOver()
    {
        Bench bench = deepBench({{"disk-share", "0"}});
        bench.build();
        StepPlan& plan = bench.plan();
        Task save = bench.find(TaskKind::SaveBoundary);
        Task write = bench.find(TaskKind::WriteBoundary);
        save.stage = write.stage = 3;
        const auto behind =
            static_cast<TaskIndex>(&bench.find(TaskKind::WriteBoundary) - plan.tasks.data() + 1);
        insert(plan, behind, save, {plan.waitsOf(save)[0]});
        insert(plan, behind + 1, write, {Wait::onTask(behind)});
        BREAKS(bench, "what is there may still be read from disk");
    }

    void whatHasItsHomeOnTheHostNamesNoPlace()
    {
        Bench bench = deepBench({{"disk-share", "0"}, {"boundaries-on-disk", "0.5"}});
        bench.build();
        HOLDS(bench);
        bench.find(TaskKind::SaveBoundary, 11).stage = 0;
        BREAKS(bench, "its home is the host, and it names a place");
        bench.build();
        bench.find(TaskKind::WriteBoundary, 1).group = GroupId{3};
        BREAKS(bench, "its home is the host");
    }

    void placesAreThoseOfTheAnswers()
    {
        Bench bench = deepBench();
        bench.build();
        bench.plan().boundaryStages -= 1;
        BREAKS(bench, "it has other places than its answers need");
        bench.build();
        for (GroupAnswers& answers : bench.plan().answers)
            answers.boundariesOnDisk = 0.0;
        BREAKS(bench, "it has other places than its answers need");
        bench.build();
        bench.find(TaskKind::WriteBoundary).lane = Lane::DiskOut;
        BREAKS(bench, "a task runs on a lane of its kind");
        bench.build();
        bench.find(TaskKind::ReadBoundary).micro = MicroBatch{3};
        BREAKS(bench, "the step has no such micro-batch");
    }

    // Both directions count, and each shares its rate with all other reads or writes.
    void aForecastKnowsWhatTheyCost()
    {
        Bench bench = deepBench();
        bench.build();
        Feedback known = rates(1e9, 1e9, 1e9, 1e9, 1e9);
        known.diskReadBytesPerSecond = 1e12;
        known.diskWriteBytesPerSecond = 1e6;
        StepForecaster forecaster;
        const auto seconds = [&] {
            const StepForecast forecast = forecaster.forecast(
                bench.plan(), {bench.shape, known, Precision::BF16, Recompute::Block});
            return forecast.stepSeconds;
        };
        const DiskTraffic traffic = diskTraffic(bench.plan(), bench.shape, Precision::BF16);
        const double byWrites = static_cast<double>(traffic.writtenBytes) / 1e6;
        QVERIFY(std::abs(seconds() / byWrites - 1.0) < 0.01);
        std::swap(known.diskReadBytesPerSecond, known.diskWriteBytesPerSecond);
        const double byReads = static_cast<double>(traffic.readBytes) / 1e6;
        QVERIFY(std::abs(seconds() / byReads - 1.0) < 0.01);
    }

    // Blocks of 860 million elements, eight micro-batches of 4,096 tokens, and a disk that is fast
    // enough for all of it: four stages suffice with weights, gradients and state on disk.
    void aDiskThatIsFastEnoughHidesThem()
    {
        Feedback known = rates(25e9, 25e9, 3e9, 1e11, 1.5e14);
        known.diskReadBytesPerSecond = 14e9;
        known.diskWriteBytesPerSecond = 11e9;
        known.embedding = {0.001, 0.002, 0.0};
        known.block = {0.047, 0.094, 0.047};
        known.head = {0.0, 0.03, 0.0};
        for (const double clip : {0.0, 1.0})
            for (const char* late : {"0", "0.1"}) {
                const auto forecastOf = [&](const char* share) {
                    Bench bench = deepBench(
                        {{"late", late}, {"weights-on-disk", "1"}, {"gradients-on-disk", "1"},
                            {"tile", "64MiB"}, {"boundaries-on-disk", share}});
                    bench.shape = smallShape(20);
                    for (GroupShape& group : bench.shape.groups)
                        group.elements = 860'000'000;
                    bench.shape.boundaryBytes = std::size_t{64} << 20;
                    bench.build(8, clip);
                    bench.in = bench.built.out;
                    bench.build(8, clip); // with the late parts of the first
                    StepForecaster forecaster;
                    return forecaster.forecast(
                        bench.plan(), {bench.shape, known, Precision::BF16, Recompute::Block});
                };
                const StepForecast none = forecastOf("0");
                const StepForecast all = forecastOf("1");
                QVERIFY(none.known && all.known);
                QVERIFY2(all.stepSeconds < 1.01 * none.stepSeconds,
                    std::to_string(all.stepSeconds / none.stepSeconds).c_str());
            }
    }

    void boundariesThatStayOnTheDeviceAreNotOnDisk()
    {
        const auto policy =
            makePolicy("ssd-vertical", {{"boundary", "device"}, {"boundaries-on-disk", "0.5"}});
        QVERIFY(!policy.ok());
        QVERIFY(policy.status().message().find("boundary=host") != std::string::npos);
        QVERIFY(!makePolicy("streamed", {{"boundaries-on-disk", "0.5"}}).ok());
    }
};

MR_TEST(TestPlanBoundaries)

} // namespace mr::test::tst_plan_boundaries

#include "tst_plan_boundaries.moc"
