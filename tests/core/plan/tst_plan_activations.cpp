// Activations of blocks that the host keeps: how a plan moves them, their cost and savings, and
// the errors of the checker when a part is missing.

#include "core/plan/cost_model.h"
#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/disk_bench.h"

#include <QTest>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace mr::test::tst_plan_activations {

namespace {

using Options = std::map<std::string, std::string>;

constexpr std::size_t kSaved = 7000; // bytes of a block's activations

// Four blocks.
Bench keepingBench(Options options = {}, const char* policy = "streamed")
{
    options.insert({{"activations-on-host", "1"}, {"tile", "2KiB"}});
    Bench bench;
    bench.shape = smallShape(4);
    bench.shape.boundaryBytes = 4096;
    bench.shape.savedBytesPerBlock = kSaved;
    bench.policy = policyWith(policy, options);
    return bench;
}

int countOf(const StepPlan& plan, TaskKind kind)
{
    return static_cast<int>(std::ranges::count(plan.tasks, kind, &Task::kind));
}

bool isAny(const Task& /*task*/)
{
    return true;
}

} // namespace

class TestPlanActivations : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPlanHoldsAndEveryWaitIsNeeded_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<QString>("order");
        QTest::addColumn<QString>("share");
        QTest::addColumn<QString>("boundary");
        const auto text = [](const char* word) { return QString::fromUtf8(word); };
        for (const char* policy : {"streamed", "ssd-vertical"})
            for (const char* order : {"by-layer-flip", "by-layer", "by-microbatch"})
                for (const char* share : {"0.5", "1"})
                    for (const char* boundary : {"host", "device"})
                        QTest::addRow(
                            "%s, %s, %s kept, boundaries on the %s", policy, order, share, boundary)
                            << text(policy) << text(order) << text(share) << text(boundary);
    }

    void everyPlanHoldsAndEveryWaitIsNeeded()
    {
        QFETCH(const QString, policy);
        QFETCH(const QString, order);
        QFETCH(const QString, share);
        QFETCH(const QString, boundary);
        Options options = {{"order", order.toStdString()}, {"boundary", boundary.toStdString()},
            {"activations-on-host", share.toStdString()}, {"late", "0.5"}};
        if (policy == QStringLiteral("ssd-vertical") && boundary == QStringLiteral("host"))
            options["boundaries-on-disk"] = "1";
        Bench bench = keepingBench(options, policy.toUtf8().constData());
        for (const Precision precision : {Precision::BF16, Precision::F32})
            for (const double clip : {0.0, 1.0})
                for (const int microBatches : {1, 3, 4}) {
                    bench.precision = precision;
                    bench.in = carryOf(6);
                    for (int step = 0; step < 2; ++step) {
                        bench.build(microBatches, clip);
                        HOLDS(bench);
                        QVERIFY(countOf(bench.plan(), TaskKind::LoadActivations) > 0);
                        const std::string needless = needlessWaits(bench, isAny);
                        QVERIFY2(needless.empty(), needless.c_str());
                        bench.in = bench.built.out;
                    }
                    flush(bench);
                    HOLDS(bench);
                }
    }

    // The first of the micro-batches in flight; of half of three that is two.
    void aShareOfEveryBlockIsKept()
    {
        Bench bench = keepingBench({{"activations-on-host", "0.5"}});
        bench.build(3);
        for (const TaskKind kind : {TaskKind::SaveActivations, TaskKind::LoadActivations}) {
            QCOMPARE(countOf(bench.plan(), kind), 4 * 2);
            for (const Task& task : bench.plan().tasks)
                if (task.kind == kind)
                    QVERIFY(task.micro.value < 2 && task.group.value >= 1 && task.group.value <= 4);
        }
        bench = keepingBench({{"activations-on-host", "0"}});
        bench.build(3);
        QCOMPARE(countOf(bench.plan(), TaskKind::SaveActivations), 0);
        QCOMPARE(bench.plan().activations.sets, 1);
    }

    void bytesToTheByte()
    {
        const MemoryPlan none = memoryOf(keepingBench({{"activations-on-host", "0"}}));
        const MemoryPlan half = memoryOf(keepingBench({{"activations-on-host", "0.5"}}));
        const MemoryPlan all = memoryOf(keepingBench());
        const auto bytes = [](const MemoryPlan& plan, Tier tier) {
            return plan.bytes(tier, MemoryUse::Activations);
        };
        QCOMPARE(bytes(none, Tier::Device), kSaved);
        QCOMPARE(bytes(none, Tier::PinnedHost), std::size_t{0});
        QCOMPARE(bytes(half, Tier::Device), 2 * kSaved);
        QCOMPARE(bytes(half, Tier::PinnedHost), 4 * 2 * kSaved);
        QCOMPARE(bytes(all, Tier::Device), 2 * kSaved);
        QCOMPARE(bytes(all, Tier::PinnedHost), 4 * 3 * kSaved);

        Bench bench = keepingBench();
        bench.build();
        const LinkTraffic with = linkTraffic(bench.plan(), bench.shape, Precision::BF16);
        bench = keepingBench({{"activations-on-host", "0"}});
        bench.build();
        const LinkTraffic without = linkTraffic(bench.plan(), bench.shape, Precision::BF16);
        const auto moved = static_cast<std::int64_t>(4 * 3 * kSaved);
        QCOMPARE(with.hostToDeviceBytes - without.hostToDeviceBytes, moved);
        QCOMPARE(with.deviceToHostBytes - without.deviceToHostBytes, moved);
    }

    // Copies run beside work, because the next work is in the other place, also at the turn of a
    // layer.
    void workGoesToTheOtherPlace()
    {
        for (const char* order : {"by-layer-flip", "by-layer", "by-microbatch"})
            for (const int microBatches : {3, 4}) {
                Bench bench = keepingBench({{"order", order}});
                bench.build(microBatches);
                int last = -1;
                int same = 0;
                for (const Task& task : bench.plan().tasks) {
                    const bool isWork =
                        task.kind == TaskKind::Forward || task.kind == TaskKind::Backward;
                    if (!isWork || task.group.value == 0 || task.group.value == 5)
                        continue;
                    const int set = bench.plan().activationSet(task);
                    QVERIFY(set == 0 || set == 1);
                    same += set == last ? 1 : 0;
                    last = set;
                }
                // Where forward turns into backward, it is the same work again.
                const int turns = std::string(order) == "by-microbatch" ? 2 * microBatches - 1 : 1;
                QVERIFY2(same <= turns, (std::string(order) + std::to_string(same)).c_str());
            }
    }

    // Where forward keeps all on the device there is nothing to keep elsewhere.
    void withoutRecomputationNoneIsKeptOnTheHost()
    {
        Bench bench = keepingBench();
        StepSpec spec = specOf(7, 3);
        spec.recompute = Recompute::None;
        auto memory = planMemory(spec, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(memory.ok());
        QCOMPARE(memory.value().bytes(Tier::PinnedHost, MemoryUse::Activations), std::size_t{0});
        Result<BuiltStep> built =
            buildPlan(spec, bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(built.ok());
        QCOMPARE(countOf(built.value().plan, TaskKind::SaveActivations), 0);
    }

    void evaluationsKeepNone()
    {
        Bench bench = keepingBench();
        Result<StepPlan> evaluation =
            buildEvaluation(specOf(7, 4), bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(evaluation.ok());
        bench.built = {std::move(evaluation).value(), bench.in};
        HOLDS(bench);
        QCOMPARE(countOf(bench.plan(), TaskKind::SaveActivations), 0);
    }

    void whatIsMissingIsFound_data()
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
        row(TaskKind::SaveActivations, 0, "erased", "they may not be on the host yet");
        row(TaskKind::SaveActivations, 7, "erased", "they may not be on the host yet");
        row(TaskKind::LoadActivations, 0, "erased", "they may not have come from the host");
        row(TaskKind::LoadActivations, 7, "erased", "they may not have come from the host");
        row(TaskKind::SaveActivations, 1, "of another layer", "they may not be made yet");
        row(TaskKind::LoadActivations, 1, "of another layer", "may still be read or copied");
        row(TaskKind::SaveActivations, 1, "of the next", "may still be copied to the device");
        row(TaskKind::LoadActivations, 1, "not kept", "the host keeps none");
        row(TaskKind::SaveActivations, 1, "not kept", "the host keeps none");
    }

    void whatIsMissingIsFound()
    {
        QFETCH(const int, kind);
        QFETCH(const int, nth);
        QFETCH(const QString, change);
        QFETCH(const QString, rule);
        Bench bench = keepingBench({{"activations-on-host", "0.5"}, {"order", "by-layer"}});
        bench.build(3);
        HOLDS(bench);
        Task& task = bench.find(static_cast<TaskKind>(kind), nth);
        if (change == QStringLiteral("of another layer"))
            task.group.value = task.group.value == 4 ? 3 : task.group.value + 1;
        else if (change == QStringLiteral("of the next"))
            task.micro.value ^= 1;
        else if (change == QStringLiteral("not kept"))
            task.micro.value = 2;
        else
            bench.erase(static_cast<TaskKind>(kind), nth);

        BREAKS(bench, rule.toStdString());
    }

    void placesAreThoseOfThePlan()
    {
        Bench bench = keepingBench();
        bench.build();
        bench.plan().activations.sets = 1;
        BREAKS(bench, "the host keeps none");
        bench.plan().activations.sets = 0;
        BREAKS(bench, "blocks have no place");
        bench.build();
        bench.find(TaskKind::SaveActivations).lane = Lane::CopyIn;
        BREAKS(bench, "a task runs on a lane of its kind");
    }

    // It pays where the link carries them faster than the device makes them again, and costs where
    // it does not.
    void theForecastSaysWhereItPays()
    {
        Feedback known = rates(1e6, 1e6, 1e9, 1e9, 1e9);
        known.embedding = {0.001, 0.001, 0.0};
        known.block = {0.1, 0.2, 0.1};
        known.head = {0.0, 0.01, 0.0};
        const auto secondsOf = [&](const char* share, std::size_t bytes) {
            Bench bench = keepingBench(
                {{"activations-on-host", share}, {"late", "0"}, {"boundary", "device"}});
            bench.shape = smallShape(8);
            bench.shape.savedBytesPerBlock = bytes;
            bench.build(4);
            StepForecaster forecaster;
            const StepForecast forecast = forecaster.forecast(
                bench.plan(), {bench.shape, known, Precision::BF16, Recompute::Block});
            return forecast.known ? forecast.stepSeconds : 0.0;
        };
        const double none = secondsOf("0", 0);
        const double quick = secondsOf("1", 50'000); // 0.05 s each way, 0.1 to make again
        const double slow = secondsOf("1", 400'000); // 0.4 s
        QVERIFY(quick > 0.0 && quick < none - 8 * 4 * 0.09);
        QVERIFY(slow > none);
        const double half = secondsOf("0.5", 50'000);
        QVERIFY(half < none - 8 * 2 * 0.09 && half > quick);
    }
};

MR_TEST(TestPlanActivations)

} // namespace mr::test::tst_plan_activations

#include "tst_plan_activations.moc"
