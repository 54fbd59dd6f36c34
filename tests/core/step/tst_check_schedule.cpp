// Which plans of a run are checked.

#include "core/step/check_schedule.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_check_schedule {

namespace {

StepPlan planOf(int windowSteps)
{
    StepPlan plan;
    plan.answers.emplace_back().windowSteps = windowSteps;
    return plan;
}

} // namespace

class TestCheckSchedule : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theFirstTwoOfAKindAreChecked();
    void stepsOfAWindowAreKindsOfTheirOwn();
    void aSelectionIsAnotherKind();
};

void TestCheckSchedule::theFirstTwoOfAKindAreChecked()
{
    CheckSchedule schedule;
    const StepPlan plan = planOf(1);

    QVERIFY(schedule.wants(plan, {}));
    QVERIFY(schedule.wants(plan, {}));
    QVERIFY(!schedule.wants(plan, {}));
    Carry landed;
    landed.landed = true;
    QVERIFY(schedule.wants(plan, landed));
    QVERIFY(!schedule.wants(plan, {}));
}

void TestCheckSchedule::stepsOfAWindowAreKindsOfTheirOwn()
{
    CheckSchedule schedule;
    const StepPlan plan = planOf(3);
    for (int step = 0; step < 3; ++step) {
        Carry carry;
        carry.stepsIntoWindow = step;
        QVERIFY(schedule.wants(plan, carry));
        QVERIFY(schedule.wants(plan, carry));
        QVERIFY(!schedule.wants(plan, carry));
    }
}

void TestCheckSchedule::aSelectionIsAnotherKind()
{
    CheckSchedule schedule;
    StepPlan plan = planOf(1);
    while (schedule.wants(plan, {}))
        ;
    plan.tasks.emplace_back().kind = TaskKind::SelectColumns;
    QVERIFY(schedule.wants(plan, {}));
}

MR_TEST(TestCheckSchedule)

} // namespace mr::test::tst_check_schedule

#include "tst_check_schedule.moc"
