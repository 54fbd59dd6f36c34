// Optimizer state on disk: how a plan moves it, and the errors of the checker when a part is
// missing or out of place. (tst_plan_disk_bytes: the cost.)

#include "core/plan/plan_check.h"
#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/disk_bench.h"

#include <QTest>

#include <algorithm>
#include <string>
#include <vector>

namespace mr::test::tst_plan_disk {

namespace {

constexpr const char* kAtHand = "state on disk comes before its update and goes back after";
constexpr const char* kLastReader = "a slot is refilled only after its last reader";

std::vector<TaskIndex> tasksOf(const StepPlan& plan, TaskKind kind)
{
    std::vector<TaskIndex> tasks;
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i)
        if (plan.tasks[i].kind == kind)
            tasks.push_back(i);
    return tasks;
}

// An update of a tile that is on disk, by its turn.
Task& updateOnDisk(Bench& bench, int nth)
{
    for (Task& task : bench.plan().tasks)
        if (task.kind == TaskKind::UpdateOnHost && task.stage >= 0 && nth-- == 0)
            return task;
    qFatal("no such update");
}

// A task again, right behind itself, and waiting for the same.
void repeat(StepPlan& plan, TaskIndex index)
{
    for (Wait& wait : plan.waits)
        if (!wait.isCarried() && wait.index() > index)
            wait = Wait::onTask(wait.index() + 1);
    const Task again = plan.tasks[index];
    plan.tasks.insert(plan.tasks.begin() + index, again);
}

bool isAboutDisk(const StepPlan& plan, const Task& task)
{
    const auto waits = plan.waitsOf(task);
    return isDisk(task.lane) || task.stage >= 0 || std::ranges::any_of(waits, [&](Wait wait) {
        return !wait.isCarried() && plan.tasks[wait.index()].stage >= 0;
    });
}

// Waits whose removal breaks no rule, of tasks that move or update state on disk or wait for such.
std::string needlessDiskWaits(Bench& bench)
{
    return needlessWaits(bench, [&](const Task& task) { return isAboutDisk(bench.plan(), task); });
}

} // namespace

class TestPlanDisk : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPlanHoldsAndEveryWaitIsNeeded_data()
    {
        QTest::addColumn<QString>("late");
        QTest::addColumn<QString>("disk");
        QTest::addColumn<QString>("device");
        QTest::addColumn<QString>("weights");
        QTest::addColumn<QString>("gradients");
        const auto text = [](const char* share) { return QString::fromUtf8(share); };
        for (const char* late : {"0", "0.1", "0.25", "0.5", "1"})
            for (const char* disk : {"0", "0.3", "1"})
                for (const char* device : {"0", "0.2"}) {
                    QTest::addRow("%s late, %s on disk, %s visits", late, disk, device)
                        << text(late) << text(disk) << text(device) << text("0") << text("0");
                    if (*disk != '0' || disk[1] != '\0')
                        QTest::addRow("%s late, %s on disk with all, %s visits", late, disk, device)
                            << text(late) << text(disk) << text(device) << text(disk) << text(disk);
                    if (*disk == '1')
                        QTest::addRow(
                            "%s late, weights half, gradients less, %s visits", late, device)
                            << text(late) << text(disk) << text(device) << text("0.5")
                            << text("0.3");
                }
    }

    void everyPlanHoldsAndEveryWaitIsNeeded()
    {
        QFETCH(const QString, late);
        QFETCH(const QString, disk);
        QFETCH(const QString, device);
        QFETCH(const QString, weights);
        QFETCH(const QString, gradients);
        Bench bench = diskBench({{"late", late.toStdString()}, {"disk-share", disk.toStdString()},
            {"device-share", device.toStdString()}, {"weights-on-disk", weights.toStdString()},
            {"gradients-on-disk", gradients.toStdString()}});
        for (const Precision precision : {Precision::BF16, Precision::F32})
            for (const double clip : {0.0, 1.0})
                for (const int microBatches : {1, 3}) {
                    bench.precision = precision;
                    bench.in = carryOf(6);
                    for (int step = 0; step < 3; ++step) { // later ones make late parts
                        bench.build(microBatches, clip);
                        HOLDS(bench);
                        const std::string needless = needlessDiskWaits(bench);
                        QVERIFY2(needless.empty(), needless.c_str());
                        if (step > 0)
                            QCOMPARE(tasksOf(bench.plan(), TaskKind::ReadFromDisk).empty(),
                                disk == QStringLiteral("0"));
                        bench.in = bench.built.out;
                    }
                    flush(bench);
                    HOLDS(bench);
                    const std::string needless = needlessDiskWaits(bench);
                    QVERIFY2(needless.empty(), needless.c_str());
                    QVERIFY(bench.built.out.pending.empty());
                }
    }

    void everyWaitOnWhatAnEarlierStepLeftIsNeeded()
    {
        for (const char* late : {"0", "1"}) {
            Bench bench = diskBench({{"late", late}});
            bench.in.unfinished = {leftRunning(TaskKind::UpdateOnHost, Lane::Host, GroupId{1}),
                leftRunning(TaskKind::WriteToDisk, Lane::DiskOut, GroupId{2})};
            bench.build();
            HOLDS(bench);
            const std::string needless = needlessDiskWaits(bench);
            QVERIFY2(needless.empty(), needless.c_str());
        }
    }

    // Read, updated, written, in turns of the slots; late ones in the next step.
    void everyTileComesAndGoesOnceAStep()
    {
        Bench bench = diskBench({{"late", "0.25"}});
        bench.build();
        bench.in = bench.built.out;
        bench.build();
        const StepPlan& plan = bench.plan();
        const MemoryPlan memory = memoryOf(bench);

        const auto reads = tasksOf(plan, TaskKind::ReadFromDisk);
        const auto writes = tasksOf(plan, TaskKind::WriteToDisk);
        QCOMPARE(reads.size(), memory.disk.tiles.size());
        QCOMPARE(writes.size(), reads.size());
        std::vector<int> seen(reads.size());
        for (std::size_t i = 0; i < reads.size(); ++i) {
            const Task& read = plan.tasks[reads[i]];
            const Task& write = plan.tasks[writes[i]];
            QCOMPARE(static_cast<int>(read.stage), static_cast<int>(i % kDiskSlots));
            QCOMPARE(write.stage, read.stage);
            QVERIFY(pieceOf(read).key() == pieceOf(write).key());
            const std::int32_t tile = memory.disk.tileOf(read.group, read.firstElement);
            ++seen[static_cast<std::size_t>(tile)];
        }
        QCOMPARE(seen, std::vector<int>(reads.size(), 1));
    }

    // Blocks keep their state in memory, and host memory grows as disk bytes shrink.
    void theVocabularyAloneMayBeOnDisk()
    {
        Bench all = diskBench({});
        Bench some = diskBench({{"disk-groups", "vocabulary"}});
        some.build();
        const int head = some.shape.layers() - 1;
        std::vector<int> groups;
        for (const TaskIndex read : tasksOf(some.plan(), TaskKind::ReadFromDisk))
            groups.push_back(some.plan().tasks[read].group.value);
        QVERIFY(!groups.empty());
        for (int group = 0; group <= head; ++group)
            QCOMPARE(std::ranges::count(groups, group) > 0, group == 0 || group == head);
        const MemoryPlan few = memoryOf(some);
        const MemoryPlan many = memoryOf(all);
        QVERIFY(few.bytes(Tier::Disk) > 0 && few.bytes(Tier::Disk) < many.bytes(Tier::Disk));
        QVERIFY(few.bytes(Tier::PinnedHost) > many.bytes(Tier::PinnedHost));
    }

    // The next tile is on its way before the one before it is updated.
    void readsDoNotWaitForTheGradient()
    {
        Bench bench = diskBench({{"late", "0"}});
        bench.build();
        const auto reads = tasksOf(bench.plan(), TaskKind::ReadFromDisk);
        QVERIFY(reads.size() > kDiskSlots);
        for (std::size_t i = 0; i < reads.size(); ++i) {
            const auto waits = bench.plan().waitsOf(bench.plan().tasks[reads[i]]);
            QCOMPARE(waits.size(), std::size_t{i < kDiskSlots ? 0U : 1U});
            for (const Wait wait : waits)
                QCOMPARE(bench.plan().tasks[wait.index()].kind, TaskKind::WriteToDisk);
        }
    }

    void whatIsMissingIsFound_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("nth");
        QTest::addColumn<QString>("rule");
        const auto row = [](const char* name, TaskKind kind, int nth, const char* rule) {
            QTest::newRow(name) << static_cast<int>(kind) << nth << QString::fromUtf8(rule);
        };
        row("a read", TaskKind::ReadFromDisk, 1, kAtHand);
        row("a later read", TaskKind::ReadFromDisk, 7, kAtHand);
        row("an update", TaskKind::UpdateOnHost, 7, kAtHand); // its weights stream
        row("a write", TaskKind::WriteToDisk, 2, kLastReader);
        row("the last write", TaskKind::WriteToDisk, 19, kAtHand);
    }

    void whatIsMissingIsFound()
    {
        QFETCH(const int, kind);
        QFETCH(const int, nth);
        QFETCH(const QString, rule);
        Bench bench = diskBench({{"late", "0"}});
        bench.build();
        QCOMPARE(tasksOf(bench.plan(), TaskKind::WriteToDisk).size(), std::size_t{20});
        bench.erase(static_cast<TaskKind>(kind), nth);

        BREAKS(bench, rule.toStdString());
    }

    void whatIsInTheWrongPlaceIsFound()
    {
        Bench bench = diskBench({{"late", "0"}});
        const auto broken = [&](TaskKind kind, int nth, auto change) {
            bench.build();
            change(bench.find(kind, nth));
        };
        const auto otherSlot = [](Task& task) { task.stage ^= 1; };
        const auto noSlot = [](Task& task) { task.stage = kDiskSlots; };
        const auto otherTile = [](Task& task) { task.firstElement += kCutElements; };
        for (const TaskKind kind : {TaskKind::UpdateOnHost, TaskKind::WriteToDisk}) {
            broken(kind, 2, otherSlot);
            BREAKS(bench, kAtHand);
        }
        broken(TaskKind::ReadFromDisk, 2, otherSlot);
        BREAKS(bench, kAtHand);
        broken(TaskKind::ReadFromDisk, 6, otherSlot);
        BREAKS(bench, kLastReader);
        for (const TaskKind kind :
            {TaskKind::ReadFromDisk, TaskKind::UpdateOnHost, TaskKind::WriteToDisk}) {
            broken(kind, 2, noSlot);
            BREAKS(bench, "there is no such place");
            broken(kind, 2, [](Task& task) { task.stage = -1; });
            BREAKS(bench, "there is no such place");
        }
        broken(TaskKind::WriteToDisk, 2, otherTile);
        BREAKS(bench, kAtHand);
        broken(TaskKind::ReadFromDisk, 2, otherTile);
        BREAKS(bench, kAtHand);
        broken(TaskKind::ReadFromDisk, 2, [](Task& task) { task.version -= 1; });
        BREAKS(bench, kAtHand);
    }

    void aTileIsReadAndWrittenWhole()
    {
        Bench bench = diskBench({{"late", "0"}, {"tile", "16KiB"}}); // tiles of 2048 elements
        for (const TaskKind kind : {TaskKind::ReadFromDisk, TaskKind::WriteToDisk}) {
            bench.build();
            Task& task = bench.find(kind, 1);
            QCOMPARE(task.elementCount, std::int64_t{2048});
            task.elementCount = 1024;
            BREAKS(bench, "it is not one whole tile");
            bench.build();
            Task& both = bench.find(kind, 0);
            both.elementCount = 4096;
            BREAKS(bench, "it is not one whole tile");
        }
    }

    void aTileIsReadOnce()
    {
        Bench bench = diskBench({{"late", "0"}});
        bench.build();
        // The fifth tile's round is about the first again, after that one's write.
        const Task first = bench.find(TaskKind::ReadFromDisk, 0);
        bench.find(TaskKind::ReadFromDisk, kDiskSlots).firstElement = first.firstElement;
        bench.find(TaskKind::ReadFromDisk, kDiskSlots).elementCount = first.elementCount;
        BREAKS(bench, "has had this tile");
    }

    // Nobody waits for anything, but the turns are wrong.
    void whatComesInTheWrongOrderIsFound()
    {
        Bench bench = diskBench({{"late", "0"}});
        const auto nth = [&](TaskKind kind, std::size_t index) {
            return tasksOf(bench.plan(), kind).at(index);
        };
        bench.build();
        const TaskIndex update = nth(TaskKind::UpdateOnHost, 1);
        Task& late = bench.plan().tasks[nth(TaskKind::ReadFromDisk, 1)];
        late.waitCount = 0;
        bench.plan().tasks[update].waitCount -= 1; // without its read, which moves behind it
        QCOMPARE(bench.plan().waits[bench.plan().tasks[update].firstWait].index(), update - 1);
        bench.plan().tasks[update].firstWait += 1;
        moveTask(bench.plan(), update - 1, update);
        BREAKS(bench, "its state may not have come from disk");

        bench.build();
        const TaskIndex write = nth(TaskKind::WriteToDisk, 1);
        bench.plan().tasks[write].waitCount = 0;
        moveTask(bench.plan(), write, write - 1);
        BREAKS(bench, "what it writes may not be updated");
    }

    // A tile makes the same way, to the device and back.
    void stateOnDiskIsNotUpdatedElsewhere()
    {
        Bench bench = diskBench({{"late", "0"}});
        const auto visits = [&](TaskKind from, TaskKind kind, Lane lane) {
            Task& task = bench.find(from, 7);
            QCOMPARE(task.group, GroupId{1}); // its weights stream, so that no upload follows
            task.kind = kind;
            task.lane = lane;
            task.stage = -1;
        };
        bench.build();
        visits(TaskKind::UpdateOnHost, TaskKind::UpdateOnDevice, Lane::Compute);
        BREAKS(bench, "UpdateOnDevice Compute g1 [2048,3072) v7");
        BREAKS(bench, "the state of what it is about is on disk");
        visits(TaskKind::ReadFromDisk, TaskKind::FetchState, Lane::CopyIn);
        BREAKS(bench, "FetchState CopyIn g1 [2048,3072) v7");
        BREAKS(bench, "the state of what it is about is on disk");
        bench.build();
        visits(TaskKind::WriteToDisk, TaskKind::StoreState, Lane::CopyOut);
        BREAKS(bench, "StoreState CopyOut g1 [2048,3072) v7");
        BREAKS(bench, "the state of what it is about is on disk");
    }

    void whatIsDoneTwiceIsFound()
    {
        Bench bench = diskBench({{"late", "0"}});
        bench.build();
        repeat(bench.plan(), tasksOf(bench.plan(), TaskKind::UpdateOnHost).at(7));
        BREAKS(bench, "its state may not have come from disk");
        bench.build();
        repeat(bench.plan(), tasksOf(bench.plan(), TaskKind::WriteToDisk).at(7));
        BREAKS(bench, "what it writes may not be updated");
        bench.build();
        repeat(bench.plan(), tasksOf(bench.plan(), TaskKind::ReadFromDisk).at(7));
        BREAKS(bench, kLastReader);
    }

    void stateInMemoryHasNoSlot()
    {
        Bench bench = diskBench({{"late", "0"}, {"disk-share", "0.5"}});
        bench.build();
        Task& update = bench.find(TaskKind::UpdateOnHost, 0);
        QCOMPARE(static_cast<int>(update.stage), -1);
        update.stage = 0;
        BREAKS(bench, "its state is in memory, and it names a place");
    }

    void anUpdateOnDiskLacksASlot()
    {
        Bench bench = diskBench({{"late", "0"}, {"disk-share", "0.5"}});
        bench.build();
        updateOnDisk(bench, 1).stage = -1;
        BREAKS(bench, "there is no such place");
    }

    // Weights and gradients on disk: a task is missing, or names another stage.
    void whatIsMissingOfWeightsAndGradientsIsFound_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("nth");
        QTest::addColumn<bool>("erase"); // else it names the stage next to its own
        QTest::addColumn<QString>("rule");
        const auto row = [](const char* name, TaskKind kind, int nth, bool erase,
                             const char* rule) {
            QTest::newRow(name) << static_cast<int>(kind) << nth << erase
                                << QString::fromUtf8(rule);
        };
        constexpr const char* kNotThere = "its weights may not have come from disk";
        row("a read of weights", TaskKind::ReadWeights, 2, true, kNotThere);
        row("a later read of weights", TaskKind::ReadWeights, 9, true, kNotThere);
        row("a read of weights, elsewhere", TaskKind::ReadWeights, 2, false, kNotThere);
        row("a fetch, elsewhere", TaskKind::FetchWeights, 2, false, kNotThere);
        row("a spill", TaskKind::SpillGradient, 1, true, kLastReader);
        row("the last spill", TaskKind::SpillGradient, 19, true, "its gradient may not be on disk");
        row("a spill, elsewhere", TaskKind::SpillGradient, 1, false,
            "the gradient may not have come from the device");
        row("a gradient, elsewhere", TaskKind::SendGradient, 1, false, kLastReader);
    }

    void whatIsMissingOfWeightsAndGradientsIsFound()
    {
        QFETCH(const int, kind);
        QFETCH(const int, nth);
        QFETCH(const bool, erase);
        QFETCH(const QString, rule);
        Bench bench = diskBench({{"late", "0"}, {"weights-on-disk", "1"},
            {"gradients-on-disk", "1"}, {"buffers", "1"}});
        bench.build();
        QCOMPARE(tasksOf(bench.plan(), TaskKind::SpillGradient).size(), std::size_t{20});
        if (erase)
            bench.erase(static_cast<TaskKind>(kind), nth);
        else
            bench.find(static_cast<TaskKind>(kind), nth).stage ^= 1;

        BREAKS(bench, rule.toStdString());
    }

    void everyWaitOfWeightsAndGradientsIsNeeded()
    {
        Bench bench = diskBench({{"late", "0.5"}, {"weights-on-disk", "1"},
            {"gradients-on-disk", "1"}, {"buffers", "1"}});
        bench.build();
        bench.in = bench.built.out;
        bench.build();
        for (const TaskKind kind : {TaskKind::ReadWeights, TaskKind::SpillGradient})
            QVERIFY(!tasksOf(bench.plan(), kind).empty());
        HOLDS(bench);
        const std::string needless = needlessDiskWaits(bench);
        QVERIFY2(needless.empty(), needless.c_str());
    }

    void weightsInMemoryHaveNoPlace()
    {
        Bench bench = diskBench({{"late", "0"}, {"buffers", "1"}});
        bench.build();
        bench.find(TaskKind::FetchWeights, 0).stage = 0;
        BREAKS(bench, "its weights are in memory, and it names a place");
        bench.build();
        bench.find(TaskKind::SendGradient, 0).stage = 0;
        BREAKS(bench, "its home is in memory, and it names a place");
    }

    // Weights that were updated late are fetched from the slot of their update, and not read again.
    void lateWeightsAreFetchedFromTheirUpdate()
    {
        Bench bench = diskBench({{"late", "1"}, {"weights-on-disk", "1"}, {"buffers", "1"}});
        bench.build();
        const std::size_t before = tasksOf(bench.plan(), TaskKind::ReadWeights).size();
        bench.in = bench.built.out;
        bench.build();
        const std::size_t after = tasksOf(bench.plan(), TaskKind::ReadWeights).size();
        int fromUpdates = 0;
        for (const TaskIndex fetch : tasksOf(bench.plan(), TaskKind::FetchWeights)) {
            const Task& task = bench.plan().tasks[fetch];
            fromUpdates += task.stage >= 0 && task.stage < bench.plan().diskSlots ? 1 : 0;
        }
        QCOMPARE(before - after, std::size_t{10}); // tiles of the two blocks
        QCOMPARE(fromUpdates, 20);                 // and of embedding and head, which stay
    }

    void slotsAreThoseOfTheAnswers()
    {
        Bench bench = diskBench();
        bench.build();
        bench.plan().diskSlots = kDiskSlots + 1;
        BREAKS(bench, "it has other places than its answers need");
        bench.build();
        bench.plan().diskTileElements *= 2;
        BREAKS(bench, "it has other places than its answers need");
        bench.build();
        bench.plan().answers[1].diskShare = 0.5;
        BREAKS(bench, kAtHand);
    }
};

MR_TEST(TestPlanDisk)

} // namespace mr::test::tst_plan_disk

#include "tst_plan_disk.moc"
