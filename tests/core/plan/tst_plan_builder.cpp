// Plans as text: the tasks of each policy in each order of work, and the carry of a step.

#include "core/plan/memory_plan.h"
#include "core/plan/plan_builder.h"
#include "core/plan/plan_text.h"
#include "support/heap_counter.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <array>

namespace mr::test::tst_plan_builder {

namespace {

QString textOf(const StepPlan& plan)
{
    return QString::fromStdString("\n" + toText(plan));
}

BuiltStep step7(const OffloadPolicy& policy, int blocks, int microBatches)
{
    Result<BuiltStep> built =
        buildPlan(specOf(7, microBatches), carryOf(6), smallShape(blocks), endless(), {}, policy);
    return built.ok() ? std::move(built).value() : BuiltStep{};
}

int countOf(const StepPlan& plan, TaskKind kind)
{
    int count = 0;
    for (const Task& task : plan.tasks)
        count += task.kind == kind ? 1 : 0;
    return count;
}

} // namespace

class TestPlanBuilder : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // Forward passes only, one micro-batch after the other in every order of work.
    void evaluationReadsTheVersionTheNextForwardReads()
    {
        Result<StepPlan> plan = buildEvaluation(specOf(7, 3), carryOf(6), smallShape(1), endless(),
            {}, policyOf("zero-offload", "by-layer"));

        QVERIFY(plan.ok());
        QCOMPARE(textOf(plan.value()), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v6
1 FetchBatch CopyIn m1 v6
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g1 m0 [0,4096) v6
4 Forward Compute g2 m0 [0,4096) v6
5 FetchBatch CopyIn m2 v6 <- 4
6 Forward Compute g0 m1 [0,4096) v6 <- 1
7 Forward Compute g1 m1 [0,4096) v6
8 Forward Compute g2 m1 [0,4096) v6
9 Forward Compute g0 m2 [0,4096) v6 <- 5
10 Forward Compute g1 m2 [0,4096) v6
11 Forward Compute g2 m2 [0,4096) v6
12 SendScalars CopyOut v6 <- 11
)"));
    }

    void tiedHeadKeepsTheEmbeddingsWeightsUntilItsBackward()
    {
        ModelShape shape = smallShape(1);
        shape.tiedHead = true;
        const OffloadPolicy policy = latePolicy(1.0);
        Result<BuiltStep> first = buildPlan(specOf(7, 1), carryOf(6), shape, endless(), {}, policy);
        QVERIFY(first.ok());

        Result<BuiltStep> second =
            buildPlan(specOf(8, 1), first.value().out, shape, endless(), {}, policy);

        QVERIFY(second.ok());
        const Status status = checkPlan(
            second.value().plan, first.value().out, second.value().out, shape, endless(), policy);
        QVERIFY2(status.ok(), status.message().c_str());
    }

    void largeGroupsAreUpdatedInTilesAndUploadedTileByTile()
    {
        ModelShape shape = smallShape(1);
        shape.groups[1].elements = 2 * kTileElements + 512;

        Result<BuiltStep> built =
            buildPlan(specOf(7, 1), carryOf(6), shape, endless(), {}, policyOf("zero-offload"));

        QVERIFY(built.ok());
        const StepPlan& plan = built.value().plan;
        QCOMPARE(countOf(plan, TaskKind::UpdateOnHost), 5);
        QCOMPARE(countOf(plan, TaskKind::FetchWeights), 5);
        const Task& last = plan.tasks[plan.tasks.size() - 3];
        QVERIFY(last.kind == TaskKind::FetchWeights);
        QCOMPARE(last.firstElement, 2 * kTileElements);
        QCOMPARE(last.elementCount, std::int64_t{512});
    }

    // State tiles are a quarter of host tiles, and three of them are on the device at a time.
    void stateVisitsInTilesThatTakeTurnsInThreeSlots()
    {
        ModelShape shape = smallShape(1);
        shape.groups[1].elements = 20 * kCutElements;
        const OffloadPolicy policy =
            policyWith("deep-optimizer-states", {{"device-share", "0.5"}, {"tile", "16KiB"}});

        Result<BuiltStep> built = buildPlan(specOf(7, 1), carryOf(6), shape, endless(), {}, policy);

        QVERIFY(built.ok());
        const StepPlan& plan = built.value().plan;
        QCOMPARE(plan.stateSlots, 3);
        // 2,048 elements at a time of 2,048, of 10,240 and of 2,048.
        QCOMPARE(countOf(plan, TaskKind::FetchState), 7);
        QCOMPARE(countOf(plan, TaskKind::UpdateOnDevice), 7);
        QCOMPARE(countOf(plan, TaskKind::StoreState), 7);
        QCOMPARE(countOf(plan, TaskKind::UpdateOnHost), 1 + 2 + 1);
        int next = 0;
        for (const Task& task : plan.tasks) {
            if (task.kind == TaskKind::UpdateOnDevice)
                QCOMPARE(int{task.slot}, next++ % 3);
        }
        const Status status =
            checkPlan(plan, carryOf(6), built.value().out, shape, endless(), policy);
        QVERIFY2(status.ok(), status.message().c_str());
    }

    void stepLeavesNothingBehindWhenNothingIsLate()
    {
        const BuiltStep built = step7(policyOf("zero-offload"), 2, 2);

        QCOMPARE(built.out.step, StepIndex{7});
        QCOMPARE(built.out.window, std::int64_t{7});
        QVERIFY(built.out.pending.empty());
        QVERIFY(built.out.unfinished.empty());
        QCOMPARE(heldSlots(built.out), std::size_t{0});
    }

    void latePartIsLeftPendingAndMadeBeforeTheNextForward()
    {
        const OffloadPolicy policy = latePolicy(0.5);
        const BuiltStep first = step7(policy, 1, 1);
        QCOMPARE(first.out.pending.size(), std::size_t{3});
        QCOMPARE(first.out.pending[1].group.value, 1);
        QCOMPARE(first.out.pending[1].firstElement, kGroupElements / 2);
        QVERIFY(first.out.pending[1].isExact());

        Result<BuiltStep> second =
            buildPlan(specOf(8, 1), first.out, smallShape(1), endless(), {}, policy);

        QVERIFY(second.ok());
        const StepPlan& plan = second.value().plan;
        QCOMPARE(plan.tasks[1].version, StepIndex{7});
        QCOMPARE(plan.tasks[1].firstElement, kGroupElements / 2);
        QCOMPARE(countOf(plan, TaskKind::UpdateOnHost), 6);
        const Status status =
            checkPlan(plan, first.out, second.value().out, smallShape(1), endless(), policy);
        QVERIFY2(status.ok(), status.message().c_str());
    }

    void flushMakesWhatIsLateAndLeavesWhatIsStale()
    {
        const OffloadPolicy policy = latePolicy(0.5);
        Carry carry = step7(policy, 1, 1).out;
        PendingUpdate stale = carry.pending[0];
        stale.version = 6;
        stale.dueStep = 8;
        carry.pending = {carry.pending[1], stale};

        Result<BuiltStep> flush = buildFlush(carry, smallShape(1), endless(), {}, policy);

        QVERIFY(flush.ok());
        QCOMPARE(textOf(flush.value().plan), QStringLiteral(R"(
0 UpdateOnHost Host g1 [2048,4096) v7
1 FetchWeights CopyIn g1 [2048,4096) v7 <- 0
)"));
        QCOMPARE(flush.value().out.pending.size(), std::size_t{1});
        QCOMPARE(flush.value().out.pending[0].version, StepIndex{6});
        QCOMPARE(flush.value().out.window, carry.window);
    }

    void evaluationBeforeAFlushIsRefused()
    {
        const OffloadPolicy policy = latePolicy(0.5);
        const Carry carry = step7(policy, 1, 1).out;

        Result<StepPlan> plan =
            buildEvaluation(specOf(7, 1), carry, smallShape(1), endless(), {}, policy);

        QVERIFY(!plan.ok());
        QVERIFY(plan.status().kind() == ErrorKind::Internal);
    }

    void whatAnEarlierStepLeftRunningIsWaitedFor()
    {
        Carry carry = carryOf(6);
        carry.unfinished = {leftRunning(TaskKind::UpdateOnHost, Lane::Host, GroupId{1})};

        Result<BuiltStep> built =
            buildPlan(specOf(7, 1), carry, smallShape(1), endless(), {}, policyOf("resident"));

        QVERIFY(built.ok());
        QCOMPARE(QString::fromStdString(toText(built.value().plan, 1)),
            QStringLiteral("1 Forward Compute g0 m0 [0,4096) v6 <- c0 0"));
        QVERIFY(built.value().out.unfinished.empty());
    }

    void peakBytesAreThoseOfTheMemoryPlan()
    {
        ModelShape shape = smallShape(2);
        shape.boundaryBytes = 1000;
        const OffloadPolicy policy = policyOf("zero-offload", "by-layer");
        Result<MemoryPlan> memory = planMemory(specOf(7, 3), shape, endless(), {}, policy);
        Result<BuiltStep> built = buildPlan(specOf(7, 3), carryOf(6), shape, endless(), {}, policy);

        QVERIFY(memory.ok() && built.ok());
        QCOMPARE(built.value().plan.peakBytes[0], memory.value().bytes(Tier::Device));
        QCOMPARE(built.value().plan.peakBytes[1], memory.value().bytes(Tier::PinnedHost));
        QCOMPARE(built.value().plan.batchBuffers, 3);
        QCOMPARE(built.value().plan.inFlight, 3);
    }

    void whatIsNotBuiltIsRefusedInASentence()
    {
        const auto refusal = [](const OffloadPolicy& policy, const StepSpec& spec) {
            Result<BuiltStep> built =
                buildPlan(spec, carryOf(6), smallShape(1), endless(), {}, policy);
            return built.ok() ? std::string() : built.status().message();
        };
        StepSpec spec = specOf(7, 1);
        OffloadPolicy policy = policyOf("resident");

        policy.clock = makeUniformClock({0.0, 4, 7});
        QCOMPARE(refusal(policy, spec),
            std::string("plan: a window whose state is not the host's is not built in this "
                        "version"));
        policy = policyOf("zenflow");
        policy.clock = makeUniformClock({0.5, 4, 7, true});
        QCOMPARE(refusal(policy, spec),
            std::string("plan: a late share beside a window is not built in this version"));
        policy = policyOf("resident");
        policy.placement =
            makeUniformPlacement({Tier::PinnedHost, Tier::PinnedHost, Tier::Device, 0.0});
        QVERIFY(
            refusal(policy, spec).find("embedding and head come by tiles") != std::string::npos);
        policy = policyOf("resident");
        policy.clipMode = ClipMode::PreviousNorm;
        QVERIFY(refusal(policy, spec).find("need a light optimizer") != std::string::npos);
        policy = policyOf("zenflow");
        policy.clipMode = ClipMode::PerGroup;
        QVERIFY(refusal(policy, spec).find("needs a policy without windows") != std::string::npos);
        spec = specOf(7, 0);
        QVERIFY(refusal(policy, spec).find("micro-batch") != std::string::npos);
        spec = specOf(9, 1);
        QVERIFY(refusal(policy, spec).find("does not follow") != std::string::npos);
    }

    void builderTakesNothingFromTheHeapAfterItsFirstSteps()
    {
        const ModelShape shape = columnShape(80);
        const Feedback unit = rates(1.0, 1.0, 1.0, 1.0);
        std::array<OffloadPolicy, 8> policies = {policyOf("resident", "by-layer"),
            policyWith("zenflow", {{"interval", "2"}, {"warmup", "0"}, {"tile", "2KiB"}}),
            policyWith("zero-offload-dpu", {{"warmup", "1"}}), policyOf("zero-offload"),
            latePolicy(0.5),
            policyWith("deep-optimizer-states",
                {{"device-share", "0.5"}, {"late", "0.5"}, {"tile", "2KiB"}}),
            policyWith("streamed", {{"device-share", "0.5"}, {"late", "0.5"}, {"tile", "2KiB"}}),
            policyWith(
                "ssd-vertical", {{"late", "0.5"}, {"tile", "2KiB"}, {"weights-on-disk", "0.5"},
                                    {"gradients-on-disk", "0.5"}, {"boundaries-on-disk", "0.5"},
                                    {"activations-on-host", "0.5"}})};
        for (const OffloadPolicy& policy : policies) {
            for (const double clip : {1.0, 0.0}) {
                const auto specOf = [&](StepIndex step) {
                    StepSpec spec = test::specOf(step, 16);
                    spec.clipNorm = clip;
                    return spec;
                };
                PlanBuilder builder(shape, endless(), unit, policy);
                BuiltStep built;
                built.out = carryOf(0);
                constexpr StepIndex kFirst = 4; // until a window was closed and uploaded
                for (StepIndex step = 1; step <= kFirst; ++step)
                    QVERIFY(builder.buildPlanInto(specOf(step), built.out, unit, built).ok());

                const std::uint64_t before = heapCountsOfThisThread().ours;
                bool ok = true;
                for (StepIndex step = kFirst + 1; step <= kFirst + 2; ++step)
                    ok = builder.buildPlanInto(specOf(step), built.out, unit, built).ok() && ok;
                const std::uint64_t after = heapCountsOfThisThread().ours;

                QVERIFY(ok);
                QCOMPARE(after, before);
            }
        }
    }

    void builderGivesTheSamePlanAndTheSameMemoryEveryTime()
    {
        const ModelShape shape = smallShape(6);
        for (const char* name : {"resident", "zero-offload", "deep-optimizer-states"}) {
            const OffloadPolicy policy = policyOf(name);
            PlanBuilder builder(shape, endless(), {}, policy);
            BuiltStep built;
            built.out = carryOf(6);
            QVERIFY(builder.buildPlanInto(specOf(7, 4), built.out, {}, built).ok());
            const Task* tasks = built.plan.tasks.data();
            const Wait* waits = built.plan.waits.data();
            const GroupAnswers* answers = built.plan.answers.data();
            const std::size_t room = built.plan.tasks.capacity();

            QVERIFY(builder.buildPlanInto(specOf(8, 4), built.out, {}, built).ok());

            QVERIFY(built.plan.tasks.data() == tasks);
            QVERIFY(built.plan.waits.data() == waits);
            QVERIFY(built.plan.answers.data() == answers);
            QCOMPARE(built.plan.tasks.capacity(), room);
            Result<BuiltStep> fresh =
                buildPlan(specOf(8, 4), carryOf(7), shape, endless(), {}, policy);
            QVERIFY(fresh.ok());
            QCOMPARE(textOf(built.plan), textOf(fresh.value().plan));
        }
    }
};

MR_TEST(TestPlanBuilder)

} // namespace mr::test::tst_plan_builder

#include "tst_plan_builder.moc"
