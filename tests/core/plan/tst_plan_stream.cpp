// Weights and activations whose home is the host: how a plan brings them, and the errors of the
// checker when a part is missing or out of place.

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

namespace mr::test::tst_plan_stream {

namespace {

using Options = std::map<std::string, std::string>;

Bench benchOf(int blocks, const Options& options = {})
{
    Bench bench;
    bench.shape = smallShape(blocks);
    bench.shape.boundaryBytes = 4096;
    bench.shape.savedBytesPerBlock = 8192;
    bench.policy = policyWith("streamed", options);
    return bench;
}

int countOf(const StepPlan& plan, TaskKind kind, Lane lane)
{
    return static_cast<int>(std::count_if(plan.tasks.begin(), plan.tasks.end(),
        [&](const Task& task) { return task.kind == kind && task.lane == lane; }));
}

// The group of each FetchWeights task, in order.
std::vector<int> fetched(const StepPlan& plan)
{
    std::vector<int> groups;
    for (const Task& task : plan.tasks)
        if (task.kind == TaskKind::FetchWeights)
            groups.push_back(task.group.value);
    return groups;
}

} // namespace

class TestPlanStream : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void deviceBytesDoNotDependOnDepth_data()
    {
        QTest::addColumn<bool>("full");
        QTest::newRow("bf16") << false;
        QTest::newRow("fp32") << true;
    }

    void deviceBytesDoNotDependOnDepth()
    {
        QFETCH(const bool, full);
        Bench shallow = benchOf(4);
        Bench deep = benchOf(40);
        shallow.precision = deep.precision = full ? Precision::F32 : Precision::BF16;

        const MemoryPlan few = memoryOf(shallow, 3);
        const MemoryPlan many = memoryOf(deep, 3);

        QVERIFY(few.bytes(Tier::Device) > 0);
        QCOMPARE(many.bytes(Tier::Device), few.bytes(Tier::Device));
        // Each block more adds master and moments, the gradient, an activation of each micro-batch.
        const std::size_t each = kGroupElements * (12 + (full ? 4U : 2U)) + std::size_t{3} * 4096;
        QCOMPARE(many.bytes(Tier::PinnedHost), few.bytes(Tier::PinnedHost) + 36 * each);
    }

    // One place instead of two, for weights and for gradients on their way to the host.
    void oneTurnNeedsTheLeast()
    {
        for (const Precision precision : {Precision::BF16, Precision::F32}) {
            Bench two = benchOf(6);
            Bench one = benchOf(6, {{"buffers", "1"}});
            two.precision = one.precision = precision;
            const std::size_t compute = precision == Precision::BF16 ? 2 : 4;

            QCOMPARE(memoryOf(one, 2).bytes(Tier::Device) + 2 * compute * kGroupElements,
                memoryOf(two, 2).bytes(Tier::Device));
            one.build();
            const Status status = one.check();
            QVERIFY2(status.ok(), status.message().c_str());
        }
    }

    void blocksThatStayCostWhatTheyHold()
    {
        const Bench none = benchOf(8);
        const Bench half = benchOf(8, {{"weights-on-device", "0.5"}});
        const Bench all = benchOf(8, {{"weights-on-device", "1"}});

        const auto weights = [](const Bench& bench) {
            return memoryOf(bench, 1).bytes(Tier::Device, MemoryUse::Weights);
        };
        QCOMPARE(weights(none), std::size_t{2 * 2 * kGroupElements}); // embedding, head
        QCOMPARE(weights(half), std::size_t{6 * 2 * kGroupElements});
        QCOMPARE(weights(all), std::size_t{10 * 2 * kGroupElements});
        QCOMPARE(memoryOf(all, 1).bytes(Tier::Device, MemoryUse::WeightSlots), std::size_t{0});
        QCOMPARE(memoryOf(none, 1).bytes(Tier::Device, MemoryUse::WeightSlots),
            std::size_t{2 * 2 * kGroupElements});
    }

    void backwardFindsTheLastTwoBlocksOfForward()
    {
        Bench bench = benchOf(5, {{"late", "0"}});
        bench.build();

        // Up, down without 5 and 4; then the new weights of embedding and head.
        QCOMPARE(fetched(bench.plan()), (std::vector<int>{1, 2, 3, 4, 5, 3, 2, 1, 0, 6}));
        // All but the outputs of blocks 4 and 5, of three micro-batches, and back.
        QCOMPARE(countOf(bench.plan(), TaskKind::SaveBoundary, Lane::CopyOut), 4 * 3);
        QCOMPARE(countOf(bench.plan(), TaskKind::LoadBoundary, Lane::CopyIn), 4 * 3);
    }

    void everyMicroBatchFetchesWhereOneFollowsTheOther()
    {
        Bench bench = benchOf(3, {{"late", "0"}, {"order", "by-microbatch"}});
        bench.build(2);

        // Blocks that one micro-batch leaves in the slots serve the next.
        QCOMPARE(fetched(bench.plan()), (std::vector<int>{1, 2, 3, 1, 3, 1, 0, 4}));
    }

    void aLateUpdateDelaysItsOwnTileAndNoOther()
    {
        Bench bench = benchOf(3, {{"late", "1"}, {"tile", "4KiB"}}); // two tiles a group
        bench.build(1);
        bench.in = bench.built.out;
        bench.build(1);
        const StepPlan& plan = bench.plan();

        QCOMPARE(int(bench.in.pending.size()), 5);
        int host = 0;
        int fetches = 0;
        for (const Task& task : plan.tasks) {
            if (task.kind == TaskKind::UpdateOnHost)
                ++host;
            if (task.kind != TaskKind::FetchWeights || task.group.value != 2 || fetches == 2)
                continue;
            const Task& other = plan.tasks[plan.waitsOf(task).front().index()];
            QVERIFY(other.kind == TaskKind::UpdateOnHost);
            QCOMPARE(other.group.value, 2);
            QCOMPARE(other.firstElement, task.firstElement);
            ++fetches;
        }
        QCOMPARE(host, 10);
        QCOMPARE(fetches, 2);
        // New weights of the head come after those of the blocks, which are updated before.
        const std::vector<int> groups = fetched(plan);
        QCOMPARE(groups, (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 1, 1}));
    }

    void whatCrossesTheLinkIsCounted()
    {
        Bench bench = benchOf(5, {{"late", "0"}});
        bench.build(3);

        const LinkTraffic traffic = linkTraffic(bench.plan(), bench.shape, Precision::BF16);

        QCOMPARE(traffic.hostToDeviceBytes, (8 + 2) * 2 * kGroupElements + 4 * 3 * 4096);
        QCOMPARE(traffic.deviceToHostBytes, 7 * 2 * kGroupElements + 4 * 3 * 4096);
    }

    void anEvaluationStreamsAndSavesNothing()
    {
        Bench bench = benchOf(4, {{"late", "0"}});
        bench.build(2);
        bench.in = bench.built.out;
        Result<StepPlan> evaluation =
            buildEvaluation(specOf(7, 2), bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(evaluation.ok());
        bench.built = {std::move(evaluation).value(), bench.in};

        const Status status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());
        QCOMPARE(fetched(bench.plan()), (std::vector<int>{1, 2, 3, 4, 1, 2, 3, 4}));
        QCOMPARE(countOf(bench.plan(), TaskKind::SaveBoundary, Lane::CopyOut), 0);
        QCOMPARE(bench.plan().peakBytes[0], memoryOf(bench, 2).bytes(Tier::Device));
    }

    void whatIsMissingIsFound_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("nth");
        QTest::addColumn<QString>("rule");
        const auto row = [](const char* name, TaskKind kind, int nth, const char* rule) {
            QTest::newRow(name) << static_cast<int>(kind) << nth << QString::fromUtf8(rule);
        };
        const char* weights = "weights are resident at the version";
        const char* boundary = "an activation between layers is at hand";
        row("a fetch in forward", TaskKind::FetchWeights, 2, weights);
        row("a fetch in backward", TaskKind::FetchWeights, 6, weights);
        row("a save", TaskKind::SaveBoundary, 4, boundary);
        row("a load", TaskKind::LoadBoundary, 4, boundary);
    }

    void whatIsMissingIsFound()
    {
        QFETCH(const int, kind);
        QFETCH(const int, nth);
        QFETCH(const QString, rule);
        Bench bench = benchOf(5, {{"late", "0"}});
        bench.build();
        bench.erase(static_cast<TaskKind>(kind), nth);

        BREAKS(bench, rule.toStdString());
    }

    void whatIsInTheWrongPlaceIsFound()
    {
        Bench bench = benchOf(5, {{"late", "0"}});
        const auto broken = [&](TaskKind kind, int nth, auto change) {
            bench.build();
            change(bench.find(kind, nth));
        };
        const char* weights = "weights are resident at the version";
        broken(TaskKind::Backward, 7, [](Task& task) { task.slot ^= 1; });
        BREAKS(bench, weights);
        broken(TaskKind::FetchWeights, 3, [](Task& task) { task.slot ^= 1; });
        BREAKS(bench, "a slot is refilled only after its last reader");
        broken(TaskKind::FetchWeights, 3, [](Task& task) { task.slot = 2; });
        BREAKS(bench, "the plan has no such place");
        broken(TaskKind::FetchWeights, 3, [](Task& task) { task.version -= 1; });
        BREAKS(bench, weights);
        broken(TaskKind::FetchWeights, 3, [](Task& task) { task.elementCount = kCutElements; });
        BREAKS(bench, weights);
        broken(TaskKind::SaveBoundary, 3, [](Task& task) { task.group.value += 1; });
        BREAKS(bench, "an activation between layers is at hand");
        broken(TaskKind::LoadBoundary, 3, [](Task& task) { task.micro.value ^= 1; });
        BREAKS(bench, "an activation between layers is at hand");
    }

    // A late update that is forgotten, and one of this step that is made too early.
    void hostBytesAreOfTheVersionThatIsRead()
    {
        Bench bench = benchOf(3, {{"late", "1"}});
        bench.build(1);
        bench.in = bench.built.out;
        bench.build(1);
        Task& late = bench.find(TaskKind::UpdateOnHost, 2);
        QCOMPARE(late.group.value, 2);
        late.version += 1;

        BREAKS(bench, "weights are resident at the version");
    }

    void homesThatAreNotBuiltAreRefused()
    {
        const auto refusal = [](std::vector<GroupPlacement> homes) {
            class Fixed final : public Placement
            {
            public:
                explicit Fixed(std::vector<GroupPlacement> homes)
                    : m_homes(std::move(homes))
                {
                }
                std::vector<GroupPlacement> place(
                    const ModelShape&, const Budget&, const Feedback&) const override
                {
                    return m_homes;
                }

            private:
                std::vector<GroupPlacement> m_homes;
            };
            OffloadPolicy policy = policyOf("streamed", "by-layer");
            policy.placement = std::make_unique<Fixed>(std::move(homes));
            Result<BuiltStep> built =
                buildPlan(specOf(7, 1), carryOf(6), smallShape(1), endless(), {}, policy);
            return built.ok() ? std::string() : built.status().message();
        };
        const GroupPlacement stays{Tier::Device, Tier::PinnedHost, Tier::Device, 0.0};
        GroupPlacement streams = stays;
        streams.weights = Tier::PinnedHost;
        QCOMPARE(refusal({stays, streams, stays}), std::string());
        QVERIFY(refusal({streams, stays, stays}).find("embedding and head come by tiles") !=
                std::string::npos);
        GroupPlacement shared = streams;
        shared.deviceShare = 0.5;
        QCOMPARE(refusal({stays, shared, stays}), std::string());
        shared.state = Tier::Device;
        shared.deviceShare = 1.0;
        QVERIFY(
            refusal({stays, shared, stays}).find("on the device of weights") != std::string::npos);
        GroupPlacement saved = stays;
        saved.boundary = Tier::PinnedHost;
        QVERIFY(refusal({stays, saved, stays}).find("same for all layers") != std::string::npos);
        GroupPlacement onDisk = stays;
        onDisk.weights = Tier::Disk;
        QVERIFY(refusal({stays, onDisk, stays}).find("on disk") != std::string::npos);
        GroupPlacement waits = stays;
        waits.boundariesOnDisk = 0.5;
        QVERIFY(refusal({stays, waits, stays}).find("stay on the device") != std::string::npos);
    }
};

MR_TEST(TestPlanStream)

} // namespace mr::test::tst_plan_stream

#include "tst_plan_stream.moc"
