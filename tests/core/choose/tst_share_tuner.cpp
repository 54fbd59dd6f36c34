// When a run looks at its device share, and the cost it assumes for an exchange.

#include "core/choose/share_tuner.h"
#include "core/plan/plan_builder.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QtTest>

#include <vector>

namespace mr::test::tst_share_tuner {

class TestShareTuner : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        auto built =
            buildPlan(specOf(1, 1), {}, m_shape, endless(), {}, policyOf("deep-optimizer-states"));
        QVERIFY(built.ok());
        m_plan = std::move(built).value().plan;
    }

    void theFirstLookIsAfterEightSteps()
    {
        ShareTuner watch;
        for (int step = 1; step <= 7; ++step) {
            add(watch, 100);
            QVERIFY(!watch.isDue(false));
        }

        add(watch, 100);

        QVERIFY(watch.isDue(false));
        (void)watch.look({});
        for (int step = 9; step <= 40; ++step) {
            add(watch, 100);
            QVERIFY(!watch.isDue(false));
        }
        QVERIFY(watch.isDue(true));
    }

    void theMeanTimeOfStepsLeavesOutTheFirstAndStartsAgainWithThePlan()
    {
        ShareTuner watch;
        for (const double seconds : {9.0, 1.0, 3.0}) {
            add(watch, 100);
            watch.timed(seconds);
        }

        QCOMPARE(watch.timedSteps(), 2);
        QCOMPARE(watch.meanSeconds(), 2.0);
        watch.reopened(1.0);
        QCOMPARE(watch.timedSteps(), 0);
        QCOMPARE(watch.meanSeconds(), 0.0);
    }

    void aCheckpointIsLookedAtOnceFourStepsWereMeasured()
    {
        ShareTuner watch;
        for (int step = 1; step <= 4; ++step) {
            add(watch, 100);
            QVERIFY(!watch.isDue(true)); // the first is not measured
        }

        add(watch, 100);

        QVERIFY(watch.isDue(true));
        (void)watch.look({});
        QVERIFY(!watch.isDue(true));
    }

    void theFirstStepAfterOpeningIsNotMeasured()
    {
        ShareTuner watch;
        const auto block = [&] { return watch.look({}).block.forward; };
        add(watch, 9000);
        add(watch, 100);
        QCOMPARE(block(), 1e-7);

        add(watch, 300);
        watch.reopened(1.0); // by another plan
        add(watch, 9000);
        QCOMPARE(block(), 0.0);
        add(watch, 500);

        QCOMPARE(block(), 5e-7);
    }

    void aLookStartsAfresh()
    {
        ShareTuner watch;
        for (const std::int64_t ns : {100, 100, 100, 100})
            add(watch, ns);
        QCOMPARE(watch.look({}).block.forward, 1e-7);
        add(watch, 700);

        QCOMPARE(watch.look({}).block.forward, 7e-7);
        Feedback known;
        known.block.forward = 0.5;
        QCOMPARE(watch.look(known).block.forward, 0.5);
    }

    void whatWasMeasuredIsWhatAnExchangeCosts()
    {
        ShareTuner watch;
        constexpr std::uint64_t kBytes = 400'000'000; // 2 s at the assumed rate

        QCOMPARE(watch.exchangeSeconds(true, kBytes), 2.0);
        QCOMPARE(watch.exchangeSeconds(false, kBytes), 4.0);
        watch.saved(10.0);
        QCOMPARE(watch.exchangeSeconds(true, kBytes), 2.0);
        QCOMPARE(watch.exchangeSeconds(false, kBytes), 12.0);
        watch.reopened(0.5);
        QCOMPARE(watch.exchangeSeconds(true, kBytes), 0.5);
        QCOMPARE(watch.exchangeSeconds(false, kBytes), 10.5);
    }

private:
    // Adds a step in which every task took `taskNs`.
    void add(ShareTuner& watch, std::int64_t taskNs)
    {
        const std::vector<Interval> times(m_plan.tasks.size(), Interval{50, 50 + taskNs});
        watch.addStep(m_plan, times, {m_shape});
    }

    const ModelShape m_shape = smallShape(2);
    StepPlan m_plan;
};

MR_TEST(TestShareTuner)

} // namespace mr::test::tst_share_tuner

#include "tst_share_tuner.moc"
