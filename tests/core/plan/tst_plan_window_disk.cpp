// Windows with state on disk: its tiles, the bytes a step moves, and the rules.

#include "core/plan/columns.h"
#include "core/plan/cost_model.h"
#include "support/test_room.h"
#include "tests/core/plan/disk_bench.h"

#include <QTest>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_plan_window_disk {

namespace {

using Options = std::map<std::string, std::string>;

// Two blocks of a matrix, a vector and a narrow matrix, with gaps; windows of three steps.
Bench windowBench(const Options& more)
{
    Bench bench;
    bench.shape = columnShape(2);
    Options options = {
        {"tile", "2KiB"}, {"warmup", "0"}, {"interval", "3"}, {"urgent", "0.25"}, {"select", "6"}};
    for (const auto& [option, value] : more)
        options[option] = value;
    bench.policy = policyWith("zenflow", options);
    bench.in = {};
    return bench;
}

// Builds the steps up to this one and leaves it in the bench.
void goTo(Bench& bench, StepIndex step)
{
    while (bench.in.step + 1 < step) {
        bench.build();
        bench.in = bench.built.out;
    }
    bench.build();
}

int count(const StepPlan& plan, TaskKind kind)
{
    return static_cast<int>(std::ranges::count(plan.tasks, kind, &Task::kind));
}

// State of one element in BF16: moments and the low half.
constexpr std::int64_t kStateBytes = 10;

// Windows with more of them on disk than their state.
class WeightsToo final : public Placement
{
public:
    std::vector<GroupPlacement> place(
        const ModelShape& shape, const Budget& /*budget*/, const Feedback& /*last*/) const override
    {
        GroupPlacement home{Tier::Device, Tier::PinnedHost, Tier::Device, 0.0, 1.0, 0.5};
        return std::vector<GroupPlacement>(shape.groups.size(), home);
    }
};

} // namespace

class TestPlanWindowDisk : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void tilesOnDiskAreTheLastOfTheWindow_data()
    {
        QTest::addColumn<QString>("share");
        QTest::addColumn<QString>("codec");
        for (const char* share : {"0", "0.05", "0.3", "0.7", "1"})
            for (const char* codec : {"fp32", "compact"})
                QTest::addRow("%s, %s", share, codec)
                    << QString::fromUtf8(share) << QString::fromUtf8(codec);
    }

    // Each begins where a tile of the window does and ends where the next one begins.
    void tilesOnDiskAreTheLastOfTheWindow()
    {
        QFETCH(const QString, share);
        QFETCH(const QString, codec);
        const Bench bench =
            windowBench({{"disk-share", share.toStdString()}, {"state", codec.toStdString()}});

        const WindowLayout layout = windowLayout(bench.shape, bench.policy, 1.0);
        const DiskCuts cuts = diskCuts(layout, bench.shape);

        std::size_t next = 0;
        for (std::size_t g = 0; g < bench.shape.groups.size(); ++g) {
            const GroupId id{static_cast<std::int32_t>(g)};
            const std::int64_t elements = bench.shape.groups[g].elements;
            std::int64_t end = layout.groups[g].diskFirst;
            while (next < cuts.tiles.size() && cuts.tiles[next].group == id) {
                const DiskRange& tile = cuts.tiles[next++];
                QCOMPARE(tile.first, end);
                const ComplementTile& updated = tileAt(layout, id, tile.first);
                QVERIFY(updated.elementCount <= tile.count);
                QVERIFY(!findTile(layout, id, tile.first + updated.elementCount) ||
                        updated.elementCount == tile.count);
                if (codec == QStringLiteral("compact"))
                    QCOMPARE(tile.first % kScaledElements, 0);
                end = tile.first + tile.count;
            }
            QCOMPARE(end, elements);
            // No more than was asked for, and less by the rows that the cut would part.
            const double onDisk = static_cast<double>(elements - layout.groups[g].diskFirst);
            const double wanted = share.toDouble() * static_cast<double>(elements);
            QVERIFY(onDisk <= wanted && onDisk >= wanted - 16 * 48 - kCutElements);
        }
        QCOMPARE(next, cuts.tiles.size());
        QCOMPARE(cuts.tiles.empty(), share.toDouble() < 0.3);
        QCOMPARE(cuts.stages(), std::min(kDiskSlots, static_cast<int>(cuts.tiles.size())));
    }

    void everyTileOfTheUpdateIsAsLargeAsThoseOnDisk()
    {
        const Options large = {{"tile", "16KiB"}};
        Options some = large;
        some["disk-share"] = "0.5";

        const Bench inMemory = windowBench(large);
        const Bench onDisk = windowBench(some);

        const auto largest = [](const Bench& bench) {
            std::int64_t most = 0;
            for (const ComplementTile& tile : windowLayout(bench.shape, bench.policy, 1.0).tiles)
                most = std::max(most, tile.elementCount);
            return most;
        };
        QCOMPARE(largest(inMemory), 60 * 48);      // a whole weight
        QCOMPARE(largest(onDisk), 2048 / 48 * 48); // a quarter of 8 Ki elements
    }

    // Each plane of state is in memory up to where it is on disk, and the slots come on top.
    void whatIsOnDiskIsNotInMemory()
    {
        const Bench all = windowBench({{"disk-share", "1"}});
        const Bench none = windowBench({{"disk-share", "0"}});

        const MemoryPlan disk = memoryOf(all);
        const MemoryPlan memory = memoryOf(none);

        std::int64_t elements = 0;
        for (const GroupShape& group : all.shape.groups)
            elements += group.elements;
        for (const MemoryUse use :
            {MemoryUse::LowPlane, MemoryUse::FirstMoments, MemoryUse::SecondMoments}) {
            QVERIFY(memory.bytes(Tier::PinnedHost, use) > 0);
            QCOMPARE(disk.bytes(Tier::PinnedHost, use), std::size_t{0});
        }
        QVERIFY(disk.bytes(Tier::Disk) >= static_cast<std::size_t>(kStateBytes * elements));
        QCOMPARE(disk.bytes(Tier::PinnedHost, MemoryUse::HighPlane),
            memory.bytes(Tier::PinnedHost, MemoryUse::HighPlane));
        QCOMPARE(memory.bytes(Tier::Disk), std::size_t{0});
        QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::DiskSlots), std::size_t{0});
    }

    void stateMovesOnceAWindow_data()
    {
        QTest::addColumn<QString>("interval");
        QTest::addColumn<QString>("overlap");
        for (const char* interval : {"1", "3", "4"})
            for (const char* overlap : {"on", "off"})
                QTest::addRow("windows of %s, overlap %s", interval, overlap)
                    << QString::fromUtf8(interval) << QString::fromUtf8(overlap);
    }

    void stateMovesOnceAWindow()
    {
        QFETCH(const QString, interval);
        QFETCH(const QString, overlap);
        const int steps = interval.toInt();
        Bench bench = windowBench({{"disk-share", "1"}, {"interval", interval.toStdString()},
            {"overlap", overlap.toStdString()}, {"select", "0"}});
        const auto onDisk =
            static_cast<std::int64_t>(memoryOf(bench).bytes(Tier::Disk) - kDiskAlign);
        goTo(bench, steps + 1); // the first window left the second its work
        DiskTraffic moved;
        for (int step = 0; step < steps; ++step) {
            const DiskTraffic traffic = diskTraffic(bench.plan(), bench.shape, Precision::BF16);
            QVERIFY(overlap == QStringLiteral("off") || traffic.writtenBytes > 0);
            moved.readBytes += traffic.readBytes;
            moved.writtenBytes += traffic.writtenBytes;
            bench.in = bench.built.out;
            bench.build();
        }
        QCOMPARE(moved.readBytes, onDisk);
        QCOMPARE(moved.writtenBytes, onDisk);
    }

    // As many as there are slots wait for nothing, so they come while the step begins.
    void theFirstReadsOfASliceWaitForNothing()
    {
        Bench bench = windowBench({{"disk-share", "1"}});
        goTo(bench, 5);
        const int reads = count(bench.plan(), TaskKind::ReadFromDisk);
        QVERIFY(reads > kDiskSlots);
        for (int nth = 0; nth < reads; ++nth)
            QCOMPARE(bench.find(TaskKind::ReadFromDisk, nth).waitCount > 0, nth >= kDiskSlots);
        QCOMPARE(count(bench.plan(), TaskKind::WriteToDisk), reads);
        HOLDS(bench);
    }

    // Where columns are chosen again, the update of the window before ends in the same step.
    void aStepThatEndsTwoWindowsHasATileTwice()
    {
        Bench bench = windowBench({{"disk-share", "1"}});
        goTo(bench, 6);
        int old = 0; // reads left of the update that ends
        while (bench.find(TaskKind::ReadFromDisk, old).version < 6)
            ++old;
        const int all = count(bench.plan(), TaskKind::ReadFromDisk) - old;
        QVERIFY(old > 0 && all > old);
        const Task last = bench.find(TaskKind::ReadFromDisk, old - 1);
        HOLDS(bench);
        const BuiltStep whole = bench.built;
        Task& again = bench.find(TaskKind::ReadFromDisk, old + all - 1);
        QCOMPARE(again.group, last.group);
        QCOMPARE(again.firstElement, last.firstElement);
        again.version = last.version;
        BREAKS(bench, "has had this tile");
        bench.built = whole;
        Task& next = bench.find(TaskKind::ReadFromDisk, old); // while the last is updated
        next.group = last.group;
        next.firstElement = last.firstElement;
        next.elementCount = last.elementCount;
        BREAKS(bench, "the update of the window before may not be on disk");
    }

    void anUpdateNeedsItsStateInItsPlace()
    {
        Bench bench = windowBench({{"disk-share", "1"}});
        goTo(bench, 5);
        HOLDS(bench);
        const BuiltStep whole = bench.built;
        bench.find(TaskKind::UpdateOnHost).stage = -1;
        BREAKS(bench, "there is no such place");
        bench.built = whole;
        bench.find(TaskKind::UpdateOnHost).stage = 1;
        BREAKS(bench, "its state may not have come from disk");
        bench.built = whole;
        --bench.find(TaskKind::ReadFromDisk).elementCount;
        BREAKS(bench, "it is not one whole tile");
        bench.built = whole;
        bench.erase(TaskKind::WriteToDisk);
        QVERIFY(!bench.check().ok());
        bench.built = whole;
        bench.erase(TaskKind::ReadFromDisk);
        QVERIFY(!bench.check().ok());
    }

    void anUpdateInMemoryNamesNoPlace()
    {
        Bench bench = windowBench({{"disk-share", "0.4"}});
        goTo(bench, 5);
        HOLDS(bench);
        const auto inMemory = std::ranges::find_if(bench.plan().tasks,
            [](const Task& task) { return task.kind == TaskKind::UpdateOnHost && task.stage < 0; });
        QVERIFY(inMemory != bench.plan().tasks.end());
        inMemory->stage = 0;
        BREAKS(bench, "its state is in memory, and it names a place");
    }

    void weightsOnDiskBesideWindowsAreRefused()
    {
        Bench bench = windowBench({});
        bench.policy.placement = std::make_unique<WeightsToo>();
        const auto built = buildPlan(specOf(1, 1), {}, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(!built.ok());
        QCOMPARE(built.status().message(),
            std::string("plan: a window whose weights or gradients are on disk is not built in "
                        "this version"));
    }
};

MR_TEST(TestPlanWindowDisk)

} // namespace mr::test::tst_plan_window_disk

#include "tst_plan_window_disk.moc"
