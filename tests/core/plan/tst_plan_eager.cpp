// Updates that follow their own gradient: the work beside backward, and the errors of the checker
// when the norm of a group is out of place.

#include "core/plan/cost_model.h"
#include "core/plan/plan_check.h"
#include "core/plan/task_clocks.h"
#include "support/test_room.h"
#include "tests/core/plan/disk_bench.h"

#include <QTest>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace mr::test::tst_plan_eager {

namespace {

using Options = std::map<std::string, std::string>;

Bench benchOf(const char* policy, Options options = {}, int blocks = 3)
{
    Bench bench;
    bench.shape = smallShape(blocks);
    options.insert({"order", "by-layer"});
    bench.policy = policyWith(policy, options);
    return bench;
}

TaskClocks clocksOf(const Bench& bench)
{
    TaskClocks clocks;
    clocks.reset(bench.in.unfinished);
    for (const Task& task : bench.built.plan.tasks) {
        clocks.begin(task.lane);
        for (const Wait wait : bench.built.plan.waitsOf(task))
            clocks.join(wait);
        clocks.finish();
    }
    return clocks;
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

TaskIndex lastOf(const Bench& bench, TaskKind kind, int group)
{
    TaskIndex last = indexOf(bench, kind, group);
    for (TaskIndex i = last; i < bench.built.plan.tasks.size(); ++i) {
        const Task& task = bench.built.plan.tasks[i];
        if (task.kind == kind && task.group.value == group)
            last = i;
    }
    return last;
}

int groupScalars(const StepPlan& plan)
{
    return static_cast<int>(std::ranges::count_if(plan.tasks, [](const Task& task) {
        const bool isNorm = task.kind == TaskKind::JoinNorm || task.kind == TaskKind::SendScalars;
        return isNorm && task.group.value >= 0;
    }));
}

// Updates of this step that wait for the backward of the embedding, the last of all; as text.
std::string updatesAfterBackward(const Bench& bench)
{
    const TaskClocks clocks = clocksOf(bench);
    const TaskIndex last = lastOf(bench, TaskKind::Backward, 0);
    std::string text;
    for (TaskIndex i = 0; i < bench.built.plan.tasks.size(); ++i) {
        const Task& task = bench.built.plan.tasks[i];
        const bool updates =
            task.kind == TaskKind::UpdateOnHost || task.kind == TaskKind::UpdateOnDevice;
        if (updates && task.group.value > 0 && task.version == bench.built.plan.step &&
            clocks.isBefore(Wait::onTask(last), i))
            text += toText(bench.built.plan, i) + "\n";
    }
    return text;
}

// Late updates of the step before are in this one.
Bench lateBench()
{
    Bench bench = benchOf("zero-offload", {{"late", "0.5"}});
    bench.build(1, 0.0);
    bench.in = bench.built.out;
    bench.build(1, 0.0);
    return bench;
}

} // namespace

#define BREAKS_RULE(bench, rule)                                                                   \
    do {                                                                                           \
        const Status status = (bench).check();                                                     \
        QVERIFY2(!status.ok(), "the broken plan passed");                                          \
        QVERIFY2(status.message().find("'" + std::string(name(rule)) + "'") != std::string::npos,  \
            status.message().c_str());                                                             \
    } while (false)

class TestPlanEager : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // Nobody waits for the embedding's gradient but the embedding.
    void anUpdateFollowsItsOwnGradient()
    {
        Bench bench = benchOf("zero-offload", {}, 1);

        bench.build(1, 0.0);

        HOLDS(bench);
        QCOMPARE(QString::fromStdString("\n" + toText(bench.plan())), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,4096) v6 <- 0
2 Forward Compute g1 m0 [0,4096) v6
3 Backward Compute g2 m0 [0,4096) v6
4 FinishGradient Compute g2 [0,4096) v7
5 SendGradient CopyOut g2 [0,4096) v7 <- 4
6 NormPart Compute g2 [0,4096) v7
7 JoinNorm Compute g2 v7
8 SendScalars CopyOut g2 v7 <- 7
9 UpdateOnHost Host g2 [0,4096) v7 <- 8
10 FetchWeights CopyIn g2 [0,4096) v7 <- 9
11 Backward Compute g1 m0 [0,4096) v6
12 FinishGradient Compute g1 [0,4096) v7
13 SendGradient CopyOut g1 [0,4096) v7 <- 12
14 NormPart Compute g1 [0,4096) v7
15 JoinNorm Compute g1 v7
16 SendScalars CopyOut g1 v7 <- 15
17 UpdateOnHost Host g1 [0,4096) v7 <- 16
18 FetchWeights CopyIn g1 [0,4096) v7 <- 17
19 Backward Compute g0 m0 [0,4096) v6
20 FinishGradient Compute g0 [0,4096) v7
21 SendGradient CopyOut g0 [0,4096) v7 <- 20
22 NormPart Compute g0 [0,4096) v7
23 JoinNorm Compute g0 v7
24 SendScalars CopyOut g0 v7 <- 23
25 UpdateOnHost Host g0 [0,4096) v7 <- 24
26 FetchWeights CopyIn g0 [0,4096) v7 <- 25
27 JoinNorm Compute v7
28 SendScalars CopyOut v7 <- 27
)"));
    }

    void noUpdateWaitsForTheBackwardOfLowerGroups_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::newRow("resident") << "resident";
        QTest::newRow("zero-offload") << "zero-offload";
        QTest::newRow("deep-optimizer-states") << "deep-optimizer-states";
        QTest::newRow("streamed") << "streamed";
        QTest::newRow("ssd-vertical") << "ssd-vertical";
    }

    void noUpdateWaitsForTheBackwardOfLowerGroups()
    {
        QFETCH(const QString, policy);
        const QByteArray name = policy.toUtf8();
        Options options;
        if (policy == QStringLiteral("deep-optimizer-states"))
            options = {{"device-share", "0.5"}, {"tile", "2KiB"}};
        if (policy == QStringLiteral("streamed") || policy == QStringLiteral("ssd-vertical"))
            options = {{"late", "0"}, {"tile", "2KiB"}};
        Bench bench = benchOf(name.constData(), options);

        bench.build(3, 0.0);
        const std::string free = updatesAfterBackward(bench);
        bench.build(3, 1.0);
        const std::string clipped = updatesAfterBackward(bench);
        options["clip-mode"] = "per-group";
        Bench byGroup = benchOf(name.constData(), options);
        byGroup.build(3, 1.0);

        QVERIFY2(free.empty(), free.c_str());
        QVERIFY(!clipped.empty());
        QCOMPARE(updatesAfterBackward(byGroup), std::string());
        HOLDS(byGroup);
    }

    void whatStreamsAndVisitsIsUpdatedAtTheEnd()
    {
        Bench bench = benchOf("streamed", {{"late", "0"}, {"device-share", "0.5"}});

        bench.build(3, 0.0);

        HOLDS(bench);
        const TaskClocks clocks = clocksOf(bench);
        const Wait last = Wait::onTask(lastOf(bench, TaskKind::Backward, 0));
        for (const int group : {1, 2, 3}) {
            QVERIFY(clocks.isBefore(last, indexOf(bench, TaskKind::UpdateOnDevice, group)));
            QVERIFY(!clocks.isBefore(last, indexOf(bench, TaskKind::UpdateOnHost, group)));
        }
    }

    void uploadsDoNotStandBeforeTheWeightsOfBackward()
    {
        Bench bench = benchOf("streamed", {{"late", "0"}}, 5);
        bench.build(3, 0.0);
        HOLDS(bench);
        const TaskIndex upload = indexOf(bench, TaskKind::FetchWeights, 6); // the head's
        for (const int block : {1, 2, 3, 4, 5})
            QVERIFY(lastOf(bench, TaskKind::FetchWeights, block) < upload);

        bench = benchOf("zero-offload", {}, 5);
        bench.build(3, 0.0);

        QVERIFY(indexOf(bench, TaskKind::FetchWeights, 6) < indexOf(bench, TaskKind::Backward, 5));
    }

    // The vertical schedule ends the step sooner, and moves 16 bytes a group more, for the norms.
    void theHostUpdatesBesideBackward()
    {
        Feedback measured = rates(1e6, 1e6, 1e5, 1e6, 5e3);
        measured.diskReadBytesPerSecond = measured.diskWriteBytesPerSecond = 2e6;
        for (const std::string policy :
            {"zero-offload", "deep-optimizer-states", "streamed", "ssd-vertical"}) {
            Options options = {{"late", "0"}, {"tile", "2KiB"}};
            if (policy == "deep-optimizer-states")
                options["device-share"] = "0.5";
            Bench bench = benchOf(policy.c_str(), options);
            const auto forecast = [&](double clip) {
                bench.build(3, clip);
                return StepForecaster().forecast(
                    bench.plan(), {bench.shape, measured, Precision::BF16, Recompute::Block});
            };
            const StepForecast exact = forecast(1.0);
            const std::int64_t sent =
                linkTraffic(bench.plan(), bench.shape, Precision::BF16).deviceToHostBytes;

            const StepForecast eager = forecast(0.0);

            QVERIFY(exact.known && eager.known);
            QVERIFY(eager.stepSeconds < 0.95 * exact.stepSeconds);
            QCOMPARE(linkTraffic(bench.plan(), bench.shape, Precision::BF16).deviceToHostBytes,
                sent + 16 * bench.shape.layers());
        }
    }

    void onlyStepsThatNeedNoNormOfAllGroupsAreEager()
    {
        for (const PolicyInfo& info : policyTable()) {
            Bench bench;
            bench.policy = policyOf(info.name);
            bench.shape = columnShape(2);
            bench.build(3, 1.0);
            QVERIFY(!bench.plan().normByGroup);
            QCOMPARE(groupScalars(bench.plan()), 0);

            bench.build(3, 0.0);
            QCOMPARE(bench.plan().normByGroup, info.exact); // windows never are
            QCOMPARE(groupScalars(bench.plan()), info.exact ? 2 * bench.shape.layers() : 0);
            QCOMPARE(bench.built.out.normByGroup, info.exact);

            if (!info.exact)
                continue;
            bench.policy = policyWith(info.name, {{"clip-mode", "per-group"}});
            bench.build(3, 1.0);
            QVERIFY(bench.plan().normByGroup);
            HOLDS(bench);
        }
    }

    void anotherNormThanThatOfPendingUpdatesIsRefused()
    {
        Bench bench = benchOf("zero-offload", {{"late", "0.5"}});
        bench.build(1, 0.0);
        bench.in = bench.built.out;

        const Result<BuiltStep> built = buildPlan(
            specOf(bench.in.step + 1, 1), bench.in, bench.shape, bench.budget, {}, bench.policy);

        QVERIFY(!built.ok());
        QVERIFY(built.status().message().find("clips in another way") != std::string::npos);
    }

    void aFlushReadsTheScalarsThatItsUpdatesWereLeftWith()
    {
        for (const double clip : {0.0, 1.0}) {
            Bench bench = benchOf("streamed", {{"late", "0.5"}});
            bench.build(3, clip);
            bench.in = bench.built.out;

            flush(bench);

            HOLDS(bench);
            QCOMPARE(bench.plan().normByGroup, clip == 0.0);
            bench.plan().normByGroup = !bench.plan().normByGroup;
            BREAKS_RULE(bench, PlanRule::NormFirst);
        }
    }

    void anUpdateWithoutTheNormOfItsGroupIsFound()
    {
        for (const char* policy : {"resident", "zero-offload"})
            for (const int nth : {0, 2, 4, 5}) { // by group, the head's first; 5: of the step
                Bench bench = benchOf(policy);
                bench.build(3, 0.0);
                bench.erase(TaskKind::JoinNorm, nth);
                BREAKS_RULE(bench, PlanRule::NormFirst);
            }
    }

    void anUpdateThatWaitsForItsGradientAloneIsFound()
    {
        for (const int group : {0, 2, 4}) {
            Bench bench = benchOf("zero-offload");
            bench.build(3, 0.0);
            const Task& update = bench.plan().tasks[indexOf(bench, TaskKind::UpdateOnHost, group)];
            QCOMPARE(int{update.waitCount}, 1);
            bench.plan().waits[update.firstWait] =
                Wait::onTask(indexOf(bench, TaskKind::SendGradient, group));
            BREAKS_RULE(bench, PlanRule::NormFirst);
        }
    }

    void aStepWhoseOwnNormIsNotSentIsFound()
    {
        Bench bench = benchOf("resident");
        bench.build(3, 0.0);
        bench.erase(TaskKind::SendScalars, 5);
        BREAKS_RULE(bench, PlanRule::NormFirst);
    }

    void theNormOfAnotherGroupIsNotItsOwn()
    {
        for (const TaskKind kind : {TaskKind::JoinNorm, TaskKind::SendScalars}) {
            Bench bench = benchOf("zero-offload");
            bench.build(3, 0.0);
            bench.find(kind, 1).group = GroupId{4}; // again of the head
            BREAKS_RULE(bench, PlanRule::NormFirst);
        }
    }

    void aGroupMissingInItsNormIsFound()
    {
        Bench bench = benchOf("resident");
        bench.build(3, 0.0);
        bench.find(TaskKind::NormPart, 1).elementCount = kCutElements;
        BREAKS_RULE(bench, PlanRule::NormFirst);
    }

    void aPlanThatNamesTheWrongNormIsFound()
    {
        for (const double clip : {0.0, 1.0}) {
            Bench bench = benchOf("zero-offload");
            bench.build(3, clip);
            bench.plan().normByGroup = clip > 0.0;
            BREAKS_RULE(bench, PlanRule::NormFirst);
        }
        Bench bench;
        bench.shape = columnShape(2);
        bench.policy = policyOf("zenflow");
        bench.build(3, 0.0);
        bench.plan().normByGroup = true;
        BREAKS_RULE(bench, PlanRule::NormFirst);
    }

    void aCarryOfAnotherNormIsFound()
    {
        Bench bench = lateBench();
        HOLDS(bench);
        bench.in.normByGroup = false;
        BREAKS_RULE(bench, PlanRule::NormFirst);
        bench.in.normByGroup = true;
        bench.built.out.normByGroup = false;
        BREAKS_RULE(bench, PlanRule::CarryFollows);
    }

    // The host keeps one copy of a group's scalars.
    void scalarsThatALateUpdateStillNeedsAreNotOverwritten()
    {
        Bench bench = lateBench();
        StepPlan& plan = bench.plan();
        const TaskIndex late = indexOf(bench, TaskKind::UpdateOnHost, 3);
        Task send = plan.tasks[indexOf(bench, TaskKind::SendScalars, 3)];
        send.firstWait = 0;
        send.waitCount = 0;
        for (Wait& wait : plan.waits)
            if (wait.index() >= late)
                wait = Wait::onTask(wait.index() + 1);
        plan.tasks.insert(plan.tasks.begin() + late, send);

        BREAKS_RULE(bench, PlanRule::HostBytes);
    }
};

MR_TEST(TestPlanEager)

} // namespace mr::test::tst_plan_eager

#include "tst_plan_eager.moc"
