// Windows that are summed on the device: as text, and every task of them is missed.

#include "core/plan/plan_check.h"
#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_bench.h"

#include <QTest>

#include <algorithm>
#include <string>
#include <vector>

namespace mr::test::tst_plan_check_sums {

namespace {

// Windows of three steps after one warm-up step: 2-4, 5-7, ...
Bench benchBefore(StepIndex step, const char* overlap = "on")
{
    Bench bench;
    bench.shape = columnShape(2);
    bench.policy = policyWith(
        "zenflow", {{"interval", "3"}, {"warmup", "1"}, {"select", "0"}, {"urgent", "0.25"},
                       {"overlap", overlap}, {"accumulate-on", "device"}});
    bench.in = {};
    for (bench.build(1); bench.in.step + 1 < step; bench.build(1))
        bench.in = bench.built.out;
    return bench;
}

// Lines of the plan that are about sums of windows.
std::string sumsOf(const StepPlan& plan)
{
    std::string text;
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i) {
        const Task& task = plan.tasks[i];
        const bool isSum =
            task.part == Part::Complement &&
            (task.kind == TaskKind::AccumulateOnDevice || task.kind == TaskKind::FinishGradient ||
                task.kind == TaskKind::SendGradient || task.lane == Lane::Host);
        if (isSum || task.kind == TaskKind::PackComplement || task.kind == TaskKind::JoinNorm)
            text += toText(plan, i) + "\n";
    }
    return text;
}

// Takes out the `nth` task of a kind that is about sums.
void erase(Bench& bench, TaskKind kind, int nth)
{
    int before = 0; // tasks of the kind that are about gradients
    for (const Task& task : bench.plan().tasks) {
        if (task.kind != kind)
            continue;
        if (task.part == Part::Complement && nth-- == 0)
            break;
        ++before;
    }
    bench.erase(kind, before);
}

Task& find(Bench& bench, TaskKind kind)
{
    const auto found = std::ranges::find_if(bench.plan().tasks,
        [kind](const Task& task) { return task.kind == kind && task.part == Part::Complement; });
    if (found == bench.plan().tasks.end())
        qFatal("no such task");
    return *found;
}

TaskIndex indexOf(const Bench& bench, TaskKind kind, Part part, GroupId group, Lane lane)
{
    const auto& tasks = bench.built.plan.tasks;
    const auto found = std::ranges::find_if(tasks, [&](const Task& task) {
        return task.kind == kind && task.part == part && task.group == group && task.lane == lane;
    });
    if (found == tasks.end())
        qFatal("no such task");
    return static_cast<TaskIndex>(found - tasks.begin());
}

// The task that was `from`th becomes the `to`th; waits name the same tasks as before.
void move(Bench& bench, TaskIndex from, TaskIndex to)
{
    auto& tasks = bench.plan().tasks;
    const auto at = [&](TaskIndex index) { return tasks.begin() + index; };
    if (from > to)
        std::rotate(at(to), at(from), at(from + 1));
    else
        std::rotate(at(from), at(from + 1), at(to + 1));
    for (Wait& wait : bench.plan().waits) {
        const TaskIndex index = wait.index();
        if (index == from)
            wait = Wait::onTask(to);
        else if (from > to && index >= to && index < from)
            wait = Wait::onTask(index + 1);
        else if (from < to && index > from && index <= to)
            wait = Wait::onTask(index - 1);
    }
}

bool breaks(const Bench& bench, PlanRule rule)
{
    const Status status = bench.check();
    const bool found = !status.ok() && status.message().find("'" + std::string(name(rule)) + "'") !=
                                           std::string::npos;
    if (!found)
        qWarning("%s", status.ok() ? "the broken plan passed" : status.message().c_str());
    return found;
}

} // namespace

class TestPlanCheckSums : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // In the middle of a window nothing is sent.
    void aStepWithinAWindowAddsOnly()
    {
        const Bench bench = benchBefore(3);

        QVERIFY(bench.check().ok());
        QCOMPARE(QString::fromStdString("\n" + sumsOf(bench.built.plan)), QStringLiteral(R"(
6 PackComplement Compute g3 [0,4096) complement v3
10 PackComplement Compute g2 [0,4096) complement v3
14 PackComplement Compute g1 [0,4096) complement v3
18 PackComplement Compute g0 [0,4096) complement v3
20 JoinNorm Compute v3
26 AccumulateOnDevice Compute g0 m1 [0,4096) complement v3
27 AccumulateOnDevice Compute g1 m1 [0,4096) complement v3
28 AccumulateOnDevice Compute g2 m1 [0,4096) complement v3
29 AccumulateOnDevice Compute g3 m1 [0,4096) complement v3
)"));
    }

    // The sum of steps 2 to 4 leaves beside the forward of step 5, before its bytes are needed.
    void theSumCrossesAtTheBeginningOfTheNextWindow()
    {
        const Bench bench = benchBefore(5);

        QVERIFY(bench.check().ok());
        QCOMPARE(QString::fromStdString("\n" + sumsOf(bench.built.plan)), QStringLiteral(R"(
1 FinishGradient Compute g3 [0,4096) complement v4
2 SendGradient CopyOut g3 [0,4096) complement v4 <- 1
3 NormPart Host g3 [0,4096) complement v4 <- 2
4 FinishGradient Compute g2 [0,4096) complement v4
5 SendGradient CopyOut g2 [0,4096) complement v4 <- 4
6 NormPart Host g2 [0,4096) complement v4 <- 5
7 FinishGradient Compute g1 [0,4096) complement v4
8 SendGradient CopyOut g1 [0,4096) complement v4 <- 7
9 NormPart Host g1 [0,4096) complement v4 <- 8
10 FinishGradient Compute g0 [0,4096) complement v4
11 SendGradient CopyOut g0 [0,4096) complement v4 <- 10
12 NormPart Host g0 [0,4096) complement v4 <- 11
13 JoinNorm Host complement v4
14 UpdateOnHost Host g3 [0,2880) complement v4
15 UpdateOnHost Host g2 [0,2880) complement v4
21 PackComplement Compute g3 [0,4096) complement v5 <- 2
25 PackComplement Compute g2 [0,4096) complement v5 <- 5
29 PackComplement Compute g1 [0,4096) complement v5 <- 8
33 PackComplement Compute g0 [0,4096) complement v5 <- 11
35 JoinNorm Compute v5
41 AccumulateOnDevice Compute g0 m0 [0,4096) complement v5
42 AccumulateOnDevice Compute g1 m0 [0,4096) complement v5
43 AccumulateOnDevice Compute g2 m0 [0,4096) complement v5
44 AccumulateOnDevice Compute g3 m0 [0,4096) complement v5
)"));
    }

    void aWarmUpStepIsThatOfSumsOnTheHostButForTheHostsAdding()
    {
        const Bench bench = benchBefore(1);

        QVERIFY(bench.check().ok());
        const auto has = [&](TaskKind kind) {
            return std::ranges::any_of(
                bench.built.plan.tasks, [kind](const Task& task) { return task.kind == kind; });
        };
        QVERIFY(has(TaskKind::SendGradient));
        QVERIFY(!has(TaskKind::AccumulateOnDevice));
        QVERIFY(!has(TaskKind::AccumulateOnHost));
    }

    void everyTaskOfASumIsMissed_data()
    {
        QTest::addColumn<int>("step");
        QTest::addColumn<QString>("overlap");
        QTest::newRow("within a window") << 3 << QStringLiteral("on");
        QTest::newRow("first of the next") << 5 << QStringLiteral("on");
        QTest::newRow("closed in the step") << 4 << QStringLiteral("off");
    }

    void everyTaskOfASumIsMissed()
    {
        QFETCH(int, step);
        QFETCH(QString, overlap);
        const Bench whole = benchBefore(step, overlap.toUtf8().constData());
        int erased = 0;
        for (const TaskKind kind : {TaskKind::AccumulateOnDevice, TaskKind::FinishGradient,
                 TaskKind::SendGradient, TaskKind::NormPart}) {
            const auto count = std::ranges::count_if(whole.built.plan.tasks,
                [kind](const Task& t) { return t.kind == kind && t.part == Part::Complement; });
            for (int nth = 0; nth < count; ++nth, ++erased) {
                Bench bench = benchBefore(step, overlap.toUtf8().constData());
                erase(bench, kind, nth);
                QVERIFY2(!bench.check().ok(), std::string(name(kind)).c_str());
            }
        }
        QCOMPARE(erased, step == 3 ? 4 : 16);
    }

    void aGradientIsAddedOnlyWhenTheStepIsKnownToBeFinite()
    {
        Bench bench = benchBefore(3);
        const TaskIndex join =
            indexOf(bench, TaskKind::JoinNorm, Part::All, GroupId{}, Lane::Compute);
        move(bench,
            indexOf(
                bench, TaskKind::AccumulateOnDevice, Part::Complement, GroupId{2}, Lane::Compute),
            join);

        QVERIFY(breaks(bench, PlanRule::NormFirst));
    }

    void aGradientIsPackedBeforeItIsAdded()
    {
        Bench bench = benchBefore(3);
        const TaskIndex join =
            indexOf(bench, TaskKind::JoinNorm, Part::All, GroupId{}, Lane::Compute);
        move(bench,
            indexOf(bench, TaskKind::PackComplement, Part::Complement, GroupId{2}, Lane::Compute),
            join);
        move(bench,
            indexOf(
                bench, TaskKind::AccumulateOnDevice, Part::Complement, GroupId{2}, Lane::Compute),
            join);

        QVERIFY(breaks(bench, PlanRule::GradientFinished));
    }

    void aSumIsRoundedWhenItIsComplete()
    {
        Bench bench = benchBefore(4, "off");
        const auto add = indexOf(
            bench, TaskKind::AccumulateOnDevice, Part::Complement, GroupId{3}, Lane::Compute);
        move(bench,
            indexOf(bench, TaskKind::FinishGradient, Part::Complement, GroupId{3}, Lane::Compute),
            add);

        QVERIFY(breaks(bench, PlanRule::GradientFinished));
    }

    void aWindowIsJoinedWhenAllOfItHasCome()
    {
        for (const char* overlap : {"on", "off"}) {
            Bench bench = benchBefore(overlap[1] == 'n' ? 5 : 4, overlap);
            const auto part =
                indexOf(bench, TaskKind::NormPart, Part::Complement, GroupId{0}, Lane::Host);
            move(bench, indexOf(bench, TaskKind::JoinNorm, Part::Complement, GroupId{}, Lane::Host),
                part);

            QVERIFY(breaks(bench, PlanRule::NormFirst));
        }
    }

    void sumsThatBelongElsewhereAreFound()
    {
        Bench bench = benchBefore(5);
        find(bench, TaskKind::SendGradient).slot ^= 1;
        QVERIFY(breaks(bench, PlanRule::HostBytes));
        bench = benchBefore(5);
        find(bench, TaskKind::NormPart).slot ^= 1;
        QVERIFY(breaks(bench, PlanRule::GradientFinished));
        bench = benchBefore(5);
        find(bench, TaskKind::AccumulateOnDevice).micro = MicroBatch{1};
        QVERIFY(breaks(bench, PlanRule::UpdatedOnce));
        bench = benchBefore(5);
        find(bench, TaskKind::FinishGradient).version = 3;
        QVERIFY(breaks(bench, PlanRule::UpdatedOnce));
    }

    // Steps without a trained token are skipped between a window and the next.
    void theSumWaitsForTheNextStepThatIsMade()
    {
        Bench bench = benchBefore(4);
        bench.in = bench.built.out;
        bench.in.step += 2;
        bench.build(1);

        const Status status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());
        QCOMPARE(find(bench, TaskKind::FinishGradient).version, 4);
    }

    void anEvaluationLeavesTheSumWhereItIs()
    {
        Bench bench = benchBefore(4);
        bench.in = bench.built.out;
        Result<StepPlan> evaluation =
            buildEvaluation(specOf(4, 1), bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(evaluation.ok());
        bench.built = {std::move(evaluation).value(), bench.in};
        QVERIFY(bench.check().ok());

        bench.built.out.hostJob->sent = true;

        QVERIFY(breaks(bench, PlanRule::CarryFollows));
    }

    void aCarryThatLosesTheSumIsFound()
    {
        Bench bench = benchBefore(4); // leaves the sum
        QVERIFY(!bench.built.out.hostJob->sent);
        bench.built.out.hostJob->sent = true;
        QVERIFY(breaks(bench, PlanRule::CarryFollows));
        bench = benchBefore(5);
        bench.built.out.hostJob->sent = false;
        QVERIFY(breaks(bench, PlanRule::CarryFollows));
        bench = benchBefore(5);
        bench.in.hostJob->sent = true;
        QVERIFY(!bench.check().ok());
    }
};

MR_TEST(TestPlanCheckSums)

} // namespace mr::test::tst_plan_check_sums

#include "tst_plan_check_sums.moc"
