// A range picked in steps is found in time, and the other way round.

#include "models/run_range.h"
#include "support/test_room.h"

#include <QTest>

#include <cmath>

namespace mr::test::tst_run_range {

using mr::ui::RunRange;
using mr::ui::StepSeries;

namespace {

// Steps of 2 s each; step n ends at 2 n seconds.
StepSeries steps(std::int64_t count)
{
    StepSeries series;
    std::vector<StepRow> rows;
    for (std::int64_t step = 1; step <= count; ++step) {
        StepRow row;
        row.step = step;
        row.timeMs = step * 2000;
        row.wallUs = 2'000'000;
        rows.push_back(row);
    }
    series.append(rows);
    return series;
}

} // namespace

class TestRunRange : public QObject
{
    Q_OBJECT

private slots:

    void allOfARunIsItsWholeTime()
    {
        RunRange range;
        range.follow(steps(100), {});

        QVERIFY(range.isAll());
        QVERIFY(range.steps().lower < 1.0 && range.steps().upper > 100.0);
        QCOMPARE(range.seconds(steps(100), 203'000).upper, 203.0); // it writes its checkpoint
        QCOMPARE(range.seconds(steps(100), 0).upper, 200.0);
        QCOMPARE(range.seconds({}, 0).upper, 10.0);
    }

    void pickedStepsAreShownFromTheBeginOfTheFirst()
    {
        RunRange range;
        range.pickSteps(steps(100), {9.5, 20.5});

        const RunRange::Ends seconds = range.seconds(steps(100), 500'000);

        QVERIFY(!range.isAll());
        QCOMPARE(seconds.lower, 18.0);
        QCOMPARE(seconds.upper, 40.0);
    }

    void pickedTimeIsShownInWholeSteps()
    {
        RunRange range;
        range.pickSeconds(steps(100), {19.0, 31.0});

        QCOMPARE(range.steps().lower, 9.5);
        QCOMPARE(range.steps().upper, 16.5);
    }

    void aTimeInsideOfOneStepShowsThatStep()
    {
        RunRange range;
        range.pickSeconds(steps(100), {20.5, 21.5});

        QVERIFY(!range.isAll());
        QCOMPARE(range.steps().upper - range.steps().lower, 1.0);
    }

    void aRangeOutsideOfTheStepsIsAll()
    {
        RunRange range;
        range.pickSteps(steps(100), {200.0, 300.0});
        QVERIFY(range.isAll());
        range.pickSteps(steps(100), {-5.0, 300.0});
        QVERIFY(range.isAll());
    }

    void aPickedRangeStaysWhenStepsArrive()
    {
        RunRange range;
        range.pickSteps(steps(100), {9.5, 20.5});

        range.follow(steps(200), {});

        QCOMPARE(range.steps().lower, 9.5);
        range.showAll();
        range.follow(steps(200), {});
        QVERIFY(range.steps().upper > 200.0);
    }

    void stepsAndTimesAreFoundFromEachOther()
    {
        const StepSeries run = steps(100);
        QCOMPARE(RunRange::secondsOfStep(run, 7.0), 14.0);
        QCOMPARE(RunRange::stepAtSeconds(run, 13.9), 7.0);
        QCOMPARE(RunRange::stepAtSeconds(run, 999.0), 100.0);
        QVERIFY(std::isnan(RunRange::secondsOfStep(run, 999.0)));
        QVERIFY(std::isnan(RunRange::secondsOfStep(run, std::nan(""))));
        QVERIFY(std::isnan(RunRange::stepAtSeconds({}, 5.0)));
    }
};

MR_TEST(TestRunRange)

} // namespace mr::test::tst_run_range

#include "tst_run_range.moc"
