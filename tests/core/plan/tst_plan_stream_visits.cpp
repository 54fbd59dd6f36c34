// Streamed weights with a share that the device updates: master, moments and gradient visit from
// the host. Also the errors of the checker when a part is out of place.

#include "core/plan/cost_model.h"
#include "core/plan/memory_plan.h"
#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_bench.h"

#include <QTest>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace mr::test::tst_plan_stream_visits {

namespace {

using Options = std::map<std::string, std::string>;

// Two tiles of state fit a group's share of a half.
Bench benchOf(int blocks, Options options)
{
    Bench bench;
    bench.shape = smallShape(blocks);
    options.insert({{"tile", "4KiB"}, {"boundary", "device"}});
    bench.policy = policyWith("streamed", options);
    return bench;
}

TaskIndex indexOf(const Bench& bench, TaskKind kind, int group, int nth = 0)
{
    for (TaskIndex i = 0; i < bench.built.plan.tasks.size(); ++i) {
        const Task& task = bench.built.plan.tasks[i];
        if (task.kind == kind && task.group.value == group && nth-- == 0)
            return i;
    }
    qFatal("no such task");
}

// Puts a task that waits for `wait` before the task at `index`.
void insertAt(Bench& bench, TaskIndex index, Task task, TaskIndex wait)
{
    StepPlan& plan = bench.plan();
    for (Wait& other : plan.waits)
        if (!other.isCarried() && other.index() >= index)
            other = Wait::onTask(other.index() + 1);
    task.firstWait = static_cast<std::uint32_t>(plan.waits.size());
    task.waitCount = 1;
    plan.waits.push_back(Wait::onTask(wait));
    plan.tasks.insert(plan.tasks.begin() + index, task);
}

} // namespace

class TestPlanStreamVisits : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // Half of every group on each side, none late. The gradient of the block leaves whole, those of
    // embedding and head from their cut on; state of the block waits for its gradient.
    void halfOfAStreamedStep()
    {
        Bench bench = benchOf(1, {{"device-share", "0.5"}, {"late", "0"}});
        bench.build(1);
        const Status status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());

        QCOMPARE(QString::fromStdString("\n" + toText(bench.plan())), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,4096) v6 <- 0
2 FetchWeights CopyIn g1 [0,2048) v6
3 FetchWeights CopyIn g1 [2048,4096) v6
4 Forward Compute g1 m0 [0,4096) v6 <- 3
5 Backward Compute g2 m0 [0,4096) v6
6 FinishGradient Compute g2 [0,4096) v7
7 SendGradient CopyOut g2 [2048,4096) v7 <- 6
8 NormPart Compute g2 [0,4096) v7
9 Backward Compute g1 m0 [0,4096) v6
10 FinishGradient Compute g1 [0,4096) v7
11 SendGradient CopyOut g1 [0,4096) v7 <- 10
12 NormPart Compute g1 [0,4096) v7
13 Backward Compute g0 m0 [0,4096) v6
14 FinishGradient Compute g0 [0,4096) v7
15 SendGradient CopyOut g0 [2048,4096) v7 <- 14
16 NormPart Compute g0 [0,4096) v7
17 FetchState CopyIn g0 [0,1024) v7
18 FetchState CopyIn g0 [1024,2048) v7
19 FetchState CopyIn g1 [0,1024) v7 <- 11
20 JoinNorm Compute v7
21 SendScalars CopyOut v7 <- 20
22 UpdateOnDevice Compute g0 [0,1024) v7 <- 17
23 StoreState CopyOut g0 [0,1024) v7 <- 22
24 FetchState CopyIn g1 [1024,2048) v7 <- 23
25 UpdateOnHost Host g0 [2048,4096) v7 <- 21
26 FetchWeights CopyIn g0 [2048,4096) v7 <- 25
27 UpdateOnDevice Compute g0 [1024,2048) v7 <- 18
28 StoreState CopyOut g0 [1024,2048) v7 <- 27
29 FetchState CopyIn g2 [0,1024) v7 <- 28
30 UpdateOnDevice Compute g1 [0,1024) v7 <- 19
31 StoreState CopyOut g1 [0,1024) v7 <- 30
32 FetchState CopyIn g2 [1024,2048) v7 <- 31
33 UpdateOnHost Host g1 [2048,4096) v7
34 UpdateOnDevice Compute g1 [1024,2048) v7 <- 24
35 StoreState CopyOut g1 [1024,2048) v7 <- 34
36 UpdateOnDevice Compute g2 [0,1024) v7 <- 29
37 StoreState CopyOut g2 [0,1024) v7 <- 36
38 UpdateOnHost Host g2 [2048,4096) v7
39 FetchWeights CopyIn g2 [2048,4096) v7 <- 38
40 UpdateOnDevice Compute g2 [1024,2048) v7 <- 32
41 StoreState CopyOut g2 [1024,2048) v7 <- 40
)"));
    }

    // Where a visitor streams, a slot holds for each element moments, both halves and the gradient.
    void slotsHoldGradientAndWeightsWhereAVisitorStreams()
    {
        const auto slotBytes = [](Options options, Precision precision) {
            options["device-share"] = "0.5";
            Bench bench = benchOf(4, options);
            bench.precision = precision;
            return memoryOf(bench, 1).bytes(Tier::Device, MemoryUse::StateSlots);
        };
        constexpr std::size_t kTiles = std::size_t{3} * 1024; // elements
        const Options stays = {{"weights-on-device", "1"}};

        QCOMPARE(slotBytes({}, Precision::BF16), 14 * kTiles);
        QCOMPARE(slotBytes({}, Precision::F32), 16 * kTiles);
        QCOMPARE(slotBytes({{"state", "compact"}}, Precision::BF16), 7 * kTiles + kTiles / 4);
        QCOMPARE(slotBytes(stays, Precision::BF16), 10 * kTiles);
        QCOMPARE(slotBytes(stays, Precision::F32), 12 * kTiles);
        // Only visiting state needs slots: blocks that keep their state have none to bring.
        QCOMPARE(
            memoryOf(benchOf(4, {}), 1).bytes(Tier::Device, MemoryUse::StateSlots), std::size_t{0});
    }

    // Both planes of a tile land, whichever side updated them.
    void weightsLandAsWholeTilesInFp32()
    {
        for (const char* share : {"0", "0.5", "1"}) {
            Bench bench = benchOf(4, {{"device-share", share}});
            bench.precision = Precision::F32;

            QCOMPARE(memoryOf(bench, 1).bytes(Tier::Device, MemoryUse::UploadLanding),
                std::size_t{4 * 2048});
        }
    }

    void deviceBytesDoNotDependOnDepth_data()
    {
        QTest::addColumn<bool>("full");
        QTest::addColumn<QString>("share");
        for (const bool full : {false, true})
            for (const char* share : {"0.5", "1"})
                QTest::addRow("%s, %s", full ? "fp32" : "bf16", share)
                    << full << QString::fromUtf8(share);
    }

    void deviceBytesDoNotDependOnDepth()
    {
        QFETCH(const bool, full);
        QFETCH(const QString, share);
        const Options options = {{"device-share", share.toStdString()}, {"boundary", "host"}};
        Bench shallow = benchOf(4, options);
        Bench deep = benchOf(40, options);
        shallow.precision = deep.precision = full ? Precision::F32 : Precision::BF16;

        const MemoryPlan few = memoryOf(shallow, 1);
        const MemoryPlan many = memoryOf(deep, 1);

        QVERIFY(few.bytes(Tier::Device, MemoryUse::StateSlots) > 0);
        QCOMPARE(many.bytes(Tier::Device), few.bytes(Tier::Device));
        // Each block more adds master and moments, and the whole gradient.
        const std::size_t each = kGroupElements * (12 + (full ? 4U : 2U));
        QCOMPARE(many.bytes(Tier::PinnedHost), few.bytes(Tier::PinnedHost) + 36 * each);
    }

    // 14 bytes come for each visiting element of a block and 10 where weights stay; 12 go.
    // Gradients of blocks leave whole.
    void whatCrossesTheLinkIsCounted()
    {
        for (const Precision precision : {Precision::BF16, Precision::F32}) {
            Bench bench = benchOf(3, {{"device-share", "0.5"}, {"late", "0"}});
            bench.precision = precision;
            bench.build(1);
            const std::int64_t c = precision == Precision::BF16 ? 2 : 4;
            const std::int64_t halfBlocks = 3 * kGroupElements / 2;
            const std::int64_t halfEnds = 2 * kGroupElements / 2;
            const std::int64_t withoutHigh = precision == Precision::BF16 ? 10 : 12;

            const LinkTraffic traffic = linkTraffic(bench.plan(), bench.shape, precision);

            // Up: three blocks, and the first again; embedding and head as the host updates them.
            QCOMPARE(traffic.hostToDeviceBytes, 4 * c * kGroupElements + c * halfEnds +
                                                    (12 + c) * halfBlocks + withoutHigh * halfEnds);
            QCOMPARE(traffic.deviceToHostBytes,
                2 * c * halfBlocks + c * halfEnds + 12 * (halfBlocks + halfEnds));
        }
    }

    // The device's part is made in its own step, however late the host's may be.
    void onlyTheHostsPartIsLate()
    {
        Bench bench = benchOf(2, {{"device-share", "0.5"}, {"late", "1"}});
        bench.build(1);

        QCOMPARE(bench.built.out.pending.size(), std::size_t{4});
        for (const PendingUpdate& update : bench.built.out.pending) {
            QCOMPARE(update.firstElement, kGroupElements / 2);
            QCOMPARE(update.elementCount, kGroupElements / 2);
        }
        for (const int group : {0, 1, 2, 3})
            QCOMPARE(bench.plan().tasks[indexOf(bench, TaskKind::StoreState, group, 1)].version,
                bench.plan().step);
    }

    void whatIsMissingIsFound()
    {
        const Options options = {{"device-share", "0.5"}, {"late", "1"}};
        const auto without = [&](TaskKind kind, int group, int nth) {
            Bench bench = benchOf(2, options);
            bench.build(1);
            int count = 0;
            const TaskIndex index = indexOf(bench, kind, group, nth);
            for (TaskIndex i = 0; i < index; ++i)
                count += bench.plan().tasks[i].kind == kind ? 1 : 0;
            bench.erase(kind, count);
            return bench;
        };
        const char* state = "state is on the device when an update needs it";
        BREAKS(without(TaskKind::FetchState, 1, 0), state);
        BREAKS(without(TaskKind::UpdateOnDevice, 1, 0), state);
        BREAKS(without(TaskKind::StoreState, 1, 0), "what was in the slot may not be home yet");
        BREAKS(without(TaskKind::StoreState, 3, 1), "it is not brought home");
        // Nobody on the host needs it before the next step; the device does.
        BREAKS(without(TaskKind::SendGradient, 2, 0), "the gradient may not have come to the host");
    }

    // The gradient of one part does for no other.
    void theWholeGradientMustArrive()
    {
        Bench bench = benchOf(2, {{"device-share", "0.5"}, {"late", "1"}});
        bench.build(1);
        Task& send = bench.find(TaskKind::SendGradient, 1);
        QCOMPARE(send.group.value, 2);
        QCOMPARE(send.elementCount, kGroupElements);
        send.firstElement += kCutElements;
        send.elementCount -= kCutElements;

        BREAKS(bench, "the gradient may not have come to the host");
    }

    // A gradient sent again while a fetch may still copy the first.
    void theHostsGradientStaysUntilItWasFetched()
    {
        Bench bench = benchOf(2, {{"device-share", "1"}, {"late", "0"}, {"tile", "16KiB"}});
        bench.build(1);
        const TaskIndex sent = indexOf(bench, TaskKind::SendGradient, 1);
        const TaskIndex fetched = indexOf(bench, TaskKind::FetchState, 1);
        const Task again = bench.plan().tasks[sent];
        QVERIFY(fetched > sent);
        insertAt(bench, fetched + 1, again, sent);

        BREAKS(bench, "may still copy the gradient that was there");
    }

    // Weights that nobody needs, fetched while an update brings new ones home.
    void theHostsWeightsStayUntilTheyWereFetched()
    {
        Bench bench = benchOf(2, {{"device-share", "1"}, {"late", "0"}, {"tile", "16KiB"}});
        bench.build(1);
        const TaskIndex visit = indexOf(bench, TaskKind::FetchState, 2);
        const TaskIndex read = indexOf(bench, TaskKind::Backward, 1);
        Task fetch = bench.plan().tasks[indexOf(bench, TaskKind::FetchWeights, 1)];
        insertAt(bench, visit + 1, fetch, read);

        BREAKS(bench, "may still copy the old weights");

        bench.build(1);
        const TaskIndex home = indexOf(bench, TaskKind::StoreState, 1);
        insertAt(bench, home + 1, fetch, read);

        BREAKS(bench, "writes a later version over it");
    }
};

MR_TEST(TestPlanStreamVisits)

} // namespace mr::test::tst_plan_stream_visits

#include "tst_plan_stream_visits.moc"
