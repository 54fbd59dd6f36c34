// Weights that no step changes and that come from the host: how a plan brings them, and the errors
// of the checker when a part is missing or out of place.

#include "core/plan/cost_model.h"
#include "core/plan/memory_plan.h"
#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_bench.h"

#include <QTest>

#include <algorithm>
#include <vector>

namespace mr::test::tst_plan_frozen {

namespace {

constexpr std::int64_t kAdapterElements = 1024;

// Blocks are frozen and have an adapter; embedding and head are frozen.
ModelShape adapterShape(int blocks)
{
    ModelShape shape = smallShape(blocks);
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        shape.groups[g].frozenElements = kGroupElements;
        shape.groups[g].elements = g == 0 || g + 1 == shape.groups.size() ? 0 : kAdapterElements;
    }
    shape.boundaryBytes = 4096;
    shape.savedBytesPerBlock = 8192;
    return shape;
}

Bench benchOf(int blocks, const std::map<std::string, std::string>& options = {})
{
    Bench bench;
    bench.shape = adapterShape(blocks);
    bench.policy = policyWith("streamed", options);
    return bench;
}

Bench benchOnDisk(const std::string& share, std::size_t packed)
{
    Bench bench = benchOf(5);
    bench.shape.readsFrozen = true;
    for (GroupShape& group : std::span(bench.shape.groups).subspan(1, 5))
        group.packedBytes = packed;
    bench.policy = policyWith("ssd-vertical", {{"weights-on-disk", share}});
    bench.policy.tileElements = 4096; // a quarter on disk
    return bench;
}

std::vector<int> groupsOf(const StepPlan& plan, TaskKind kind)
{
    std::vector<int> groups;
    for (const Task& task : plan.tasks)
        if (task.kind == kind)
            groups.push_back(task.group.value);
    return groups;
}

} // namespace

class TestPlanFrozen : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void blocksComeForForwardAndForBackward()
    {
        Bench bench = benchOf(5);
        bench.build();
        const Status status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());

        // Up, and down without 5 and 4, which are still there.
        QCOMPARE(groupsOf(bench.plan(), TaskKind::FetchFrozen),
            (std::vector<int>{1, 2, 3, 4, 5, 3, 2, 1}));
        QVERIFY(groupsOf(bench.plan(), TaskKind::FetchWeights).empty());
        QVERIFY(groupsOf(bench.plan(), TaskKind::UpdateOnHost).empty());
        QVERIFY(groupsOf(bench.plan(), TaskKind::SendGradient).empty());
        QCOMPARE(
            groupsOf(bench.plan(), TaskKind::UpdateOnDevice), (std::vector<int>{1, 2, 3, 4, 5}));
    }

    // Backward ended with them.
    void theNextForwardFindsTheLowestBlocks()
    {
        Bench bench = benchOf(5);
        bench.build();
        const Carry first = bench.built.out;
        bench.in = first;
        bench.build();
        QCOMPARE(bench.check().message(), std::string());
        QCOMPARE(
            groupsOf(bench.plan(), TaskKind::FetchFrozen), (std::vector<int>{3, 4, 5, 3, 2, 1}));

        bench.in.heldSlots.clear(); // an evaluation used them meanwhile
        BREAKS(bench, "weights are resident at the version");
        bench.in = first;
        bench.built.out.heldSlots.clear();
        BREAKS(bench, "a slot is said to hold other frozen weights");
    }

    // Vertical order: any number of micro-batches shares a fetch.
    void theLinkCarriesTheModelTwice()
    {
        for (const int micros : {1, 4}) {
            Bench bench = benchOf(8, {{"boundary", "device"}});
            bench.build(micros);
            std::int64_t bytes = 0;
            for (const Task& task : bench.plan().tasks)
                if (task.kind == TaskKind::FetchFrozen)
                    bytes += copyBytes(bench.plan(), task, bench.shape, bench.precision);
            QCOMPARE(bytes, std::int64_t{2 * kGroupElements * (8 + 6)});
        }
    }

    void theHostHasTheBlocksAndTheDeviceTheRest()
    {
        const MemoryPlan memory = memoryOf(benchOf(6));
        QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::FrozenWeights),
            std::size_t{6 * 2 * kGroupElements});
        QCOMPARE(memory.bytes(Tier::Device, MemoryUse::FrozenWeights),
            std::size_t{2 * 2 * kGroupElements});
        QCOMPARE(memory.bytes(Tier::Device, MemoryUse::WeightSlots),
            std::size_t{2 * 2 * kGroupElements});
        QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::FirstMoments), std::size_t{0});
        QCOMPARE(memory.bytes(Tier::Device, MemoryUse::FirstMoments),
            std::size_t{6 * 4 * kAdapterElements});
        const MemoryPlan half = memoryOf(benchOf(6, {{"weights-on-device", "0.5"}}));
        QCOMPARE(half.bytes(Tier::PinnedHost, MemoryUse::FrozenWeights),
            std::size_t{3 * 2 * kGroupElements});
    }

    // They come in one piece, from the device as well.
    void packedBlocksComeToSlotsFromEitherHome()
    {
        constexpr std::size_t kPacked = 3000;
        for (const char* policy : {"resident", "streamed"}) {
            Bench bench = benchOf(5);
            for (GroupShape& group : std::span(bench.shape.groups).subspan(1, 5))
                group.packedBytes = kPacked;
            bench.policy = policyWith(policy, {});
            bench.policy.tileElements = 1024;
            bench.build();
            QCOMPARE(bench.check().message(), std::string());
            const bool isOnHost = bench.policy.id == PolicyId::Streamed;

            // Resident goes through the model with one micro-batch after the other.
            const auto fetched = groupsOf(bench.plan(), TaskKind::FetchFrozen);
            if (isOnHost)
                QCOMPARE(fetched, (std::vector<int>{1, 2, 3, 4, 5, 3, 2, 1}));
            else
                QCOMPARE(fetched,
                    (std::vector<int>{1, 2, 3, 4, 5, 3, 2, 1, 3, 4, 5, 3, 2, 1, 3, 4, 5, 3, 2, 1}));
            const Task& task = bench.find(TaskKind::FetchFrozen, 0);
            QCOMPARE(copyBytes(bench.plan(), task, bench.shape, bench.precision),
                isOnHost ? std::int64_t{kPacked} : 0);
            const MemoryPlan memory = memoryOf(bench);
            QCOMPARE(
                memory.bytes(isOnHost ? Tier::PinnedHost : Tier::Device, MemoryUse::FrozenWeights),
                5 * kPacked + (isOnHost ? 0 : std::size_t{2 * 2 * kGroupElements}));
            QCOMPARE(memory.bytes(Tier::Device, MemoryUse::PackedLanding), isOnHost ? kPacked : 0);
            QCOMPARE(memory.bytes(Tier::Device, MemoryUse::WeightSlots),
                std::size_t{2 * 2 * kGroupElements});
            bench.erase(TaskKind::FetchFrozen, 6);
            BREAKS(bench, "weights are resident at the version");
        }
    }

    void largeBlocksComeInTiles()
    {
        Bench bench = benchOf(3);
        bench.policy.tileElements = 1024;
        bench.build();
        const Status status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());
        QCOMPARE(groupsOf(bench.plan(), TaskKind::FetchFrozen).size(), std::size_t{4 * (3 + 1)});
    }

    // Through stages, in tiles of their own, and in place of host memory.
    void aShareComesFromDisk()
    {
        for (const std::size_t packed : {std::size_t{0}, std::size_t{3000}}) {
            Bench bench = benchOnDisk("0.5", packed);
            bench.build();
            QCOMPARE(bench.check().message(), std::string());

            QCOMPARE(bench.plan().weightStages, 4);
            std::int64_t read = 0;
            int tiles = 0;
            for (const Task& task : bench.plan().tasks) {
                const bool onDisk = task.firstElement >= kGroupElements / 2;
                if (task.kind == TaskKind::FetchFrozen)
                    QCOMPARE(task.stage >= 0, onDisk);
                if (task.kind != TaskKind::ReadFrozen)
                    continue;
                QVERIFY(onDisk);
                ++tiles;
                read += diskBytes(bench.plan(), task, bench.shape, bench.precision);
            }
            QCOMPARE(tiles, 2 * 8); // of 1,024 elements; 8 fetches as ever
            const std::int64_t block = packed > 0 ? 3000 : 2 * kGroupElements;
            const std::int64_t inMemory = packed > 0 ? 1280 : kGroupElements;
            QCOMPARE(read, 8 * (block - inMemory));
            QCOMPARE(diskTraffic(bench.plan(), bench.shape, bench.precision).writtenBytes, 0);
            const MemoryPlan memory = memoryOf(bench);
            QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::FrozenWeights),
                static_cast<std::size_t>(5 * inMemory));
            QCOMPARE(memory.bytes(Tier::Disk), static_cast<std::size_t>(5 * (block - inMemory)));
            QCOMPARE(memory.scratchBytes(), std::size_t{0});
            QVERIFY(memory.usesDisk() && !memory.usesScratch());
        }
    }

    // A run that trains layers may go on without the model's files.
    void onlyWhatLiesInFilesIsReadFromThere()
    {
        Bench bench = benchOnDisk("1", 0);
        bench.shape.readsFrozen = false;
        bench.build();
        QCOMPARE(bench.check().message(), std::string());
        QVERIFY(groupsOf(bench.plan(), TaskKind::ReadFrozen).empty());
        QCOMPARE(memoryOf(bench).bytes(Tier::Disk), std::size_t{0});
    }

    void aTileOutOfItsPlaceIsFound()
    {
        const char* disk = "state on disk comes before its update";
        Bench bench = benchOnDisk("1", 0);
        const auto broken = [&](TaskKind kind, auto change) {
            bench.build();
            change(bench.find(kind, 6));
        };
        bench.build();
        bench.erase(TaskKind::ReadFrozen, 6);
        BREAKS(bench, disk);
        broken(TaskKind::ReadFrozen, [](Task& task) { task.stage ^= 1; });
        BREAKS(bench, "task");
        broken(TaskKind::ReadFrozen, [](Task& task) { task.stage = 9; });
        BREAKS(bench, "there is no such place");
        broken(TaskKind::ReadFrozen, [](Task& task) { task.waitCount = 0; });
        BREAKS(bench, "a slot is refilled only after its last reader");
        broken(TaskKind::FetchFrozen, [](Task& task) { task.stage = -1; });
        BREAKS(bench, "there is no such place");
        broken(TaskKind::FetchFrozen, [](Task& task) { task.waitCount = 0; });
        BREAKS(bench, "task");
        bench = benchOnDisk("0.5", 0);
        bench.build();
        bench.find(TaskKind::FetchFrozen, 0).stage = 0;
        BREAKS(bench, "its weights are in memory");
    }

    // Below the first block with an adapter nothing comes back.
    void backwardEndsAtTheFirstAdapter()
    {
        Bench bench = benchOf(5);
        bench.shape.groups[1].elements = bench.shape.groups[2].elements = 0;
        bench.build();
        const Status status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());

        QCOMPARE(
            groupsOf(bench.plan(), TaskKind::FetchFrozen), (std::vector<int>{1, 2, 3, 4, 5, 3}));
        // The input of block 3, and of the blocks behind it that backward does not find any more.
        QCOMPARE(
            groupsOf(bench.plan(), TaskKind::SaveBoundary), (std::vector<int>{2, 2, 2, 3, 3, 3}));
    }

    void anEvaluationBringsThemOnce()
    {
        Bench bench = benchOf(4);
        const auto plan =
            buildEvaluation(specOf(7, 2), carryOf(6), bench.shape, endless(), {}, bench.policy);
        QVERIFY2(plan.ok(), plan.status().message().c_str());
        QVERIFY(!groupsOf(Result(plan).value(), TaskKind::FetchFrozen).empty());
    }

    void whatIsMissingOrInTheWrongPlaceIsFound()
    {
        Bench bench = benchOf(5);
        const auto broken = [&](int nth, auto change) {
            bench.build();
            change(bench.find(TaskKind::FetchFrozen, nth));
        };
        const char* weights = "weights are resident at the version";
        for (const int nth : {2, 6}) {
            bench.build();
            bench.erase(TaskKind::FetchFrozen, nth);
            BREAKS(bench, weights);
        }
        broken(3, [](Task& task) { task.slot ^= 1; });
        BREAKS(bench, "a slot is refilled only after its last reader");
        broken(3, [](Task& task) { task.slot = 2; });
        BREAKS(bench, "the plan has no such place");
        broken(3, [](Task& task) { task.elementCount = kCutElements; });
        BREAKS(bench, weights);
        broken(3, [](Task& task) { task.elementCount += kCutElements; });
        BREAKS(bench, "the range leaves the group");
        broken(3, [](Task& task) { task.waitCount = 0; });
        BREAKS(bench, "a slot is refilled only after its last reader");
    }
};

MR_TEST(TestPlanFrozen)

} // namespace mr::test::tst_plan_frozen

#include "tst_plan_frozen.moc"
