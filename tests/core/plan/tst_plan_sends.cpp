// Updates that follow their gradients, with state on disk: the sends of the device, the reads and
// the memory they save, and the errors of the checker when a send is missing or out of place.

#include "core/plan/cost_model.h"
#include "core/plan/plan_check.h"
#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/disk_bench.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_plan_sends {

namespace {

using Options = std::map<std::string, std::string>;

constexpr const char* kAtHand = "state on disk comes before its update and goes back after";

// All on disk, unless the options say something else.
Bench sendBench(Options options = {})
{
    options.insert({{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"late", "0"}});
    return diskBench(options);
}

// A step of which nothing is clipped; one before it leaves late parts.
void buildSecond(Bench& bench, int microBatches = 1)
{
    bench.build(microBatches, 0.0);
    bench.in = bench.built.out;
    bench.build(microBatches, 0.0);
}

std::vector<TaskIndex> tasksOf(const StepPlan& plan, TaskKind kind)
{
    std::vector<TaskIndex> tasks;
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i)
        if (plan.tasks[i].kind == kind)
            tasks.push_back(i);
    return tasks;
}

MemoryPlan eagerMemory(const Bench& bench)
{
    StepSpec spec = specOf(1, 1);
    spec.clipNorm = 0.0;
    spec.precision = bench.precision;
    auto memory = planMemory(spec, bench.shape, bench.budget, {}, bench.policy);
    return memory.ok() ? std::move(memory).value() : MemoryPlan{};
}

// Groups of 100 million elements, two of which stream.
Bench largeBench(double late, bool gradients)
{
    Bench bench = sendBench({{"late", std::to_string(late)}, {"tile", "16MiB"}, {"buffers", "1"},
        {"gradients-on-disk", gradients ? "1" : "0"}});
    for (GroupShape& group : bench.shape.groups)
        group.elements = 100'000'000;
    return bench;
}

bool isNear(std::int64_t bytes, double expected)
{
    return std::abs(static_cast<double>(bytes) / expected - 1.0) < 0.002;
}

} // namespace

class TestPlanSends : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // One tile of the block: its weights and its gradient go from the device to where its state
    // has come, and neither is read from disk.
    void anUpdateGetsFromTheDeviceWhatItHas()
    {
        Bench bench = sendBench({{"buffers", "1"}});
        bench.shape = smallShape(1);
        for (GroupShape& group : bench.shape.groups)
            group.elements = 512;

        bench.build(1, 0.0);

        HOLDS(bench);
        QCOMPARE(QString::fromStdString("\n" + toText(bench.plan())), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,512) v6 <- 0
2 ReadWeights DiskWeights g1 [0,512) s3 v6
3 FetchWeights CopyIn g1 [0,512) s3 v6 <- 2
4 Forward Compute g1 m0 [0,512) v6 <- 3
5 Backward Compute g2 m0 [0,512) v6
6 FinishGradient Compute g2 [0,512) v7
7 NormPart Compute g2 [0,512) v7
8 JoinNorm Compute g2 v7
9 SendScalars CopyOut g2 v7 <- 8
10 ReadFromDisk DiskIn g2 [0,512) s0 v7
11 SendWeights CopyOut g2 [0,512) s0 v7
12 SendGradient CopyOut g2 [0,512) s0 v7
13 UpdateOnHost Host g2 [0,512) s0 v7 <- 10 12
14 WriteToDisk DiskOut g2 [0,512) s0 v7 <- 13
15 Backward Compute g1 m0 [0,512) v6
16 FinishGradient Compute g1 [0,512) v7
17 NormPart Compute g1 [0,512) v7
18 JoinNorm Compute g1 v7
19 SendScalars CopyOut g1 v7 <- 18
20 ReadFromDisk DiskIn g1 [0,512) s1 v7
21 SendWeights CopyOut g1 [0,512) s1 v7
22 SendGradient CopyOut g1 [0,512) s1 v7
23 UpdateOnHost Host g1 [0,512) s1 v7 <- 20 22
24 WriteToDisk DiskOut g1 [0,512) s1 v7 <- 23
25 Backward Compute g0 m0 [0,512) v6
26 FinishGradient Compute g0 [0,512) v7
27 NormPart Compute g0 [0,512) v7
28 JoinNorm Compute g0 v7
29 SendScalars CopyOut g0 v7 <- 28
30 ReadFromDisk DiskIn g0 [0,512) s2 v7
31 SendWeights CopyOut g0 [0,512) s2 v7
32 SendGradient CopyOut g0 [0,512) s2 v7
33 UpdateOnHost Host g0 [0,512) s2 v7 <- 30 32
34 WriteToDisk DiskOut g0 [0,512) s2 v7 <- 33
35 FetchWeights CopyIn g0 [0,512) s2 v7 <- 33
36 JoinNorm Compute v7
37 SendScalars CopyOut v7 <- 36
38 ReadWeights DiskWeights g2 [0,512) s4 v7 <- 14
39 FetchWeights CopyIn g2 [0,512) s4 v7 <- 38
)"));
    }

    // decisions.md 14: without exact clipping 14 P are read and 12 P written with everything on
    // disk, at any late share. Finished gradients of late parts go there and back where memory has
    // no room for them.
    void everyLateShareMovesWhatTheLiteratureSays_data()
    {
        QTest::addColumn<double>("late");
        QTest::addColumn<bool>("gradients");
        for (const double late : {0.0, 0.25, 0.5, 1.0})
            for (const bool gradients : {false, true})
                QTest::addRow("%g late, %s", late, gradients ? "gradients, too" : "weights")
                    << late << gradients;
    }

    void everyLateShareMovesWhatTheLiteratureSays()
    {
        QFETCH(const double, late);
        QFETCH(const bool, gradients);
        Bench bench = largeBench(late, gradients);

        buildSecond(bench);
        HOLDS(bench);

        const DiskTraffic traffic = diskTraffic(bench.plan(), bench.shape, Precision::BF16);
        const double group = 100e6;
        const double spilled = gradients ? 2.0 * late * 4.0 * group : 0.0;
        // The last block of forward is the first of backward and still there. Weights that stay are
        // read for late updates, and those of the head again where they are brought to the device
        // when no layer needs the copy lane.
        const double streamed = 2.0 * 14.0 * group - 2.0 * group;
        const double embedding = (10.0 + 2.0 * late) * group;
        const double head = 12.0 * group;
        QVERIFY(isNear(traffic.readBytes, streamed + embedding + head + spilled));
        QVERIFY(isNear(traffic.writtenBytes, 12.0 * 4.0 * group + spilled));
    }

    void aDeepModelMovesFourteenAndTwelveBytes()
    {
        for (const double late : {0.0, 0.25, 0.5, 1.0}) {
            Bench bench = largeBench(late, false);
            bench.shape = smallShape(60);
            for (GroupShape& group : bench.shape.groups)
                group.elements = 10'000'000;
            bench.shape.groups.front().elements = bench.shape.groups.back().elements = 4096;

            buildSecond(bench);

            const DiskTraffic traffic = diskTraffic(bench.plan(), bench.shape, Precision::BF16);
            const double all = 60.0 * 10e6;
            QVERIFY(isNear(traffic.readBytes, 14.0 * all - 2.0 * 10e6));
            QVERIFY(isNear(traffic.writtenBytes, 12.0 * all));
        }
    }

    // Neither tier has room for a gradient that goes straight to its update.
    void gradientsOfWhatIsNotLateHaveNoHome()
    {
        const MemoryPlan none = eagerMemory(sendBench());
        QCOMPARE(none.bytes(Tier::Disk, MemoryUse::DiskGradients), std::size_t{0});
        QCOMPARE(none.bytes(Tier::PinnedHost, MemoryUse::Gradients), std::size_t{0});
        QCOMPARE(none.disk.gradientStages, 0);
        QCOMPARE(none.gradientStageBytes, std::size_t{0});
        QCOMPARE(none.diskSlotBytes, std::size_t{3 + 1 + 1} * 4096);

        // At a late share of a quarter 1250 of 5000 elements are late, cut to 904 and to one tile
        // of 2 KiB.
        const MemoryPlan some = eagerMemory(sendBench({{"late", "0.25"}}));
        QCOMPARE(some.bytes(Tier::Disk, MemoryUse::DiskGradients), std::size_t{4} * 4096);
        QCOMPARE(some.disk.gradientStages, 4);

        // With exact clipping every one waits for the norm, on disk.
        const MemoryPlan exact = memoryOf(sendBench());
        QCOMPARE(exact.bytes(Tier::Disk, MemoryUse::DiskGradients), std::size_t{4 * 5} * 4096);
    }

    void inF32WeightsAreReadAndGradientsAreSent()
    {
        Bench bench = sendBench();
        bench.precision = Precision::F32;
        bench.build(1, 0.0);

        HOLDS(bench);
        QVERIFY(tasksOf(bench.plan(), TaskKind::SendWeights).empty());
        QVERIFY(tasksOf(bench.plan(), TaskKind::SpillGradient).empty());
        // 8 bytes of moments and both halves of 1024 elements.
        const Task& read = bench.find(TaskKind::ReadFromDisk);
        QCOMPARE(
            diskBytes(bench.plan(), read, bench.shape, Precision::F32), std::int64_t{3 * 4096});
    }

    // State comes ahead of its gradient, as far as there are slots.
    void readsRunAheadOfBackward()
    {
        Bench bench = sendBench();
        bench.build(1, 0.0);
        const auto reads = tasksOf(bench.plan(), TaskKind::ReadFromDisk);
        QVERIFY(reads.size() > kDiskSlots);
        for (std::size_t i = 0; i < kDiskSlots; ++i)
            QCOMPARE(bench.plan().waitsOf(bench.plan().tasks[reads[i]]).size(), std::size_t{0});
    }

    // Held back uploads have left the slots of their updates.
    void noUpdateWaitsForTheEndOfTheStep()
    {
        Bench bench = sendBench();
        bench.build(1, 0.0);
        const auto updates = tasksOf(bench.plan(), TaskKind::UpdateOnHost);
        QCOMPARE(bench.plan().tasks[updates.front()].group, GroupId{3}); // the head
        for (const TaskIndex fetch : tasksOf(bench.plan(), TaskKind::FetchWeights)) {
            const Task& task = bench.plan().tasks[fetch];
            if (task.group == GroupId{3})
                QVERIFY(task.stage >= bench.plan().diskSlots);
        }
    }

    void whatIsMissingOrElsewhereIsFound_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("nth");
        QTest::addColumn<bool>("erase"); // else it names the place next to its own
        QTest::addColumn<QString>("rule");
        const auto row = [](const char* name, TaskKind kind, int nth, bool erase,
                             const char* rule) {
            QTest::newRow(name) << static_cast<int>(kind) << nth << erase
                                << QString::fromUtf8(rule);
        };
        row("a gradient", TaskKind::SendGradient, 7, true, "the gradient may not have come to the");
        row("weights", TaskKind::SendWeights, 1, true, "its weights may not have come from the de");
        row("a gradient, elsewhere", TaskKind::SendGradient, 7, false, kAtHand);
        row("weights, elsewhere", TaskKind::SendWeights, 7, false, kAtHand);
    }

    void whatIsMissingOrElsewhereIsFound()
    {
        QFETCH(const int, kind);
        QFETCH(const int, nth);
        QFETCH(const bool, erase);
        QFETCH(const QString, rule);
        Bench bench = sendBench();
        bench.build(1, 0.0);
        QCOMPARE(tasksOf(bench.plan(), static_cast<TaskKind>(kind)).size(), std::size_t{20});
        if (erase)
            bench.erase(static_cast<TaskKind>(kind), nth);
        else
            bench.find(static_cast<TaskKind>(kind), nth).stage ^= 1;

        BREAKS(bench, rule.toStdString());
    }

    void whatIsSentInTheWrongWayIsFound()
    {
        Bench bench = sendBench();
        const auto broken = [&](TaskKind kind, auto change) {
            bench.build(1, 0.0);
            change(bench.find(kind, 7));
        };
        for (const TaskKind kind : {TaskKind::SendWeights, TaskKind::SendGradient}) {
            broken(kind, [](Task& task) { task.stage = kDiskSlots; });
            BREAKS(bench, "there is no such place");
            broken(kind, [](Task& task) { task.elementCount = 2 * kCutElements; });
            BREAKS(bench, "it is not one whole tile");
            broken(kind, [](Task& task) { task.stage = -1; });
            BREAKS(bench, "there is no such place");
        }
        broken(TaskKind::SendWeights, [](Task& task) { task.lane = Lane::CopyIn; });
        BREAKS(bench, "it can not run there");
        broken(TaskKind::SendWeights, [](Task& task) { task.version += 1; });
        BREAKS(bench, "its weights may not be on the device");
        broken(TaskKind::SendWeights, [](Task& task) { task.slot = 9; });
        BREAKS(bench, "the plan has no such place for weights");
        broken(TaskKind::SendWeights, [](Task& task) { task.slot ^= 1; });
        BREAKS(bench, "its weights may not be on the device");
    }

    // A late update reads weights and gradient from disk when its turn comes.
    void whatIsLateIsNotSent()
    {
        Bench bench = sendBench({{"late", "1"}});
        buildSecond(bench);
        QVERIFY(tasksOf(bench.plan(), TaskKind::SendWeights).empty());
        QCOMPARE(tasksOf(bench.plan(), TaskKind::SpillGradient).size(), std::size_t{20});
        // It goes to the slot of its own late update instead.
        bench.find(TaskKind::SendGradient, 0).stage = 0;
        BREAKS(bench, "there is no such place");
        bench.build(1, 0.0);
        Task& send = bench.find(TaskKind::SpillGradient, 0);
        send.kind = TaskKind::SendWeights;
        send.lane = Lane::CopyOut;
        BREAKS(bench, kAtHand);
    }

    // Once another block's gradient has come to its bytes it is too late.
    void aGradientIsSentBeforeItsBytesAreUsedAgain()
    {
        for (const auto& [precision, micros] : {std::pair(Precision::BF16, 2),
                 std::pair(Precision::BF16, 1), std::pair(Precision::F32, 1)}) {
            Bench bench;
            bench.policy = policyWith("streamed", {{"buffers", "1"}, {"late", "0"}});
            bench.precision = precision;
            bench.build(micros); // clipped, so that no update is between
            const bool isRounded = micros > 1;
            const TaskKind next = isRounded ? TaskKind::FinishGradient : TaskKind::Backward;
            TaskIndex send = 0;
            TaskIndex last = 0;
            for (TaskIndex i = 0; i < bench.plan().tasks.size(); ++i) {
                const Task& task = bench.plan().tasks[i];
                send = task.kind == TaskKind::SendGradient && task.group == GroupId{2} ? i : send;
                last = task.kind == next && task.group == GroupId{1} ? i : last;
            }
            QVERIFY(0 < send && send < last);
            HOLDS(bench);
            Task& other = bench.plan().tasks[last];
            for (std::uint32_t nth = 0; nth < other.waitCount; ++nth)
                if (bench.plan().waits[other.firstWait + nth] == Wait::onTask(send))
                    dropWait(bench.plan(), other, nth);
            moveTask(bench.plan(), send, last);

            BREAKS(bench, "group 1 has its place by then");
        }
    }

    void weightsAreSentToUpdatesThatFollowTheirGradientsOnly()
    {
        Bench bench = sendBench();
        bench.build(); // clipped
        QVERIFY(!bench.plan().sendsWeights);
        bench.plan().sendsWeights = true;
        BREAKS(bench, "it sends weights to updates that wait for all gradients");
        bench.build(1, 0.0);
        QVERIFY(bench.plan().sendsWeights);
        bench.plan().sendsWeights = false;
        BREAKS(bench, "its update has its weights from elsewhere");
    }

    // Slots and the weights in them are filled again after the sends from and to them.
    void everyWaitIsNeeded_data()
    {
        QTest::addColumn<QString>("order");
        QTest::addColumn<QString>("weights");
        QTest::addColumn<QString>("gradients");
        for (const char* order : {"by-microbatch", "by-layer", "by-layer-flip"})
            for (const char* weights : {"0", "0.5", "1"})
                for (const char* gradients : {"0", "0.3", "1"})
                    QTest::addRow("%s, %s of weights, %s of gradients", order, weights, gradients)
                        << QString::fromUtf8(order) << QString::fromUtf8(weights)
                        << QString::fromUtf8(gradients);
    }

    void everyWaitIsNeeded()
    {
        QFETCH(const QString, order);
        QFETCH(const QString, weights);
        QFETCH(const QString, gradients);
        const Options shapes[] = {{}, {{"buffers", "1"}}, {{"device-share", "0.2"}},
            {{"weights-on-device", "0.5"}, {"state-on-device", "0.25"}},
            {{"weights-on-device", "1"}, {"boundary", "device"}, {"device-share", "0.2"}},
            {{"disk-share", "0.5"}, {"weights-on-disk", "0.3"}, {"gradients-on-disk", "0.5"}}};
        for (Options options : shapes)
            for (const char* late : {"0", "0.25", "1"})
                for (const Precision precision : {Precision::BF16, Precision::F32}) {
                    options["late"] = late;
                    options["order"] = order.toStdString();
                    options.insert({{"weights-on-disk", weights.toStdString()},
                        {"gradients-on-disk", gradients.toStdString()}});
                    Bench bench = sendBench(options);
                    bench.shape.tiedHead = precision == Precision::BF16;
                    bench.precision = precision;
                    for (int step = 0; step < 2; ++step) {
                        bench.build(step + 1, 0.0);
                        HOLDS(bench);
                        const std::string needless =
                            needlessWaits(bench, [](const Task&) { return true; });
                        QVERIFY2(needless.empty(), needless.c_str());
                        bench.in = bench.built.out;
                    }
                    flush(bench);
                    HOLDS(bench);
                }
    }
};

MR_TEST(TestPlanSends)

} // namespace mr::test::tst_plan_sends

#include "tst_plan_sends.moc"
