// The first runs of each kind of plan.

#include "core/step/plan_kinds.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_plan_kinds {

namespace {

StepPlan planOf(std::initializer_list<TaskKind> kinds, Lane lane = Lane::Compute)
{
    StepPlan plan;
    for (const TaskKind kind : kinds) {
        Task task;
        task.kind = kind;
        task.lane = lane;
        plan.tasks.push_back(task);
    }
    return plan;
}

} // namespace

class TestPlanKinds : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theFirstRunsOfEachKindAreEarly()
    {
        const StepPlan step = planOf({TaskKind::Forward, TaskKind::Backward});
        const StepPlan evaluation = planOf({TaskKind::Forward});
        PlanKinds kinds;
        QVERIFY(kinds.isEarly(step, 2));
        QVERIFY(kinds.isEarly(evaluation, 2));
        QVERIFY(kinds.isEarly(step, 2));
        QVERIFY(!kinds.isEarly(step, 2));
        QVERIFY(kinds.isEarly(evaluation, 2));
        QVERIFY(!kinds.isEarly(evaluation, 2));
        QVERIFY(kinds.isEarly(planOf({TaskKind::Backward, TaskKind::Forward}), 2));
        QVERIFY(kinds.isEarly(planOf({TaskKind::Forward}, Lane::CopyIn), 2));
    }

    void withoutAnyNoneIsEarly()
    {
        PlanKinds kinds;
        QVERIFY(!kinds.isEarly(planOf({TaskKind::Forward}), 0));
    }

    void aKindThatWasForgottenIsNewAgain()
    {
        PlanKinds kinds;
        const StepPlan first = planOf({TaskKind::Forward});
        QVERIFY(kinds.isEarly(first, 1));
        QVERIFY(!kinds.isEarly(first, 1));
        StepPlan other = first;
        for (int i = 0; i < 64; ++i) {
            other.tasks.push_back(other.tasks.front());
            QVERIFY(kinds.isEarly(other, 1));
        }
        QVERIFY(kinds.isEarly(first, 1));
    }
};

MR_TEST(TestPlanKinds)

} // namespace mr::test::tst_plan_kinds

#include "tst_plan_kinds.moc"
