// Whether a run made its model better or worse, and the sentence that says so.

#include "support/test_room.h"

#include <millrace/run_outcome.h>

#include <QTest>

#include <limits>

namespace mr::test::tst_run_outcome {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Evaluations losses(double before, double last, double best)
{
    return {before, last, 200, best, 120};
}

} // namespace

class TestRunOutcome : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aRuinedModelIsWorseAndTheLearningRateIsBlamed()
    {
        const RunOutcome outcome = judge(losses(1.8344, 2403.4, 25.0));

        QCOMPARE(outcome.verdict, RunVerdict::Worse);
        QCOMPARE(describeOutcome(outcome),
            std::string("Worse than before training: 2,403 against 1.83 at step 0. The learning "
                        "rate is probably too high."));
    }

    void aModelThatWasBetterOnItsWayWasTrainedForTooLong()
    {
        const RunOutcome outcome = judge(losses(1.83, 2.01, 1.7));

        QCOMPARE(outcome.cause, WorseCause::TooManySteps);
        QCOMPARE(describeOutcome(outcome),
            std::string("Worse than before training: 2.01 against 1.83 at step 0. It was best at "
                        "step 120 (1.7): train for fewer steps."));
        QCOMPARE(judge(losses(1.83, 12.0, 1.7)).cause, WorseCause::LearningRate); // blew up later
    }

    void aLossThatIsNotANumberIsWorse()
    {
        const RunOutcome outcome = judge(losses(1.83, kNaN, kNaN));

        QCOMPARE(outcome.verdict, RunVerdict::Worse);
        QVERIFY(describeOutcome(outcome).find("not a number against 1.83") != std::string::npos);
    }

    void noiseIsNeitherBetterNorWorse()
    {
        QCOMPARE(judge(losses(1.83, 1.90, 1.83)).verdict, RunVerdict::Same); // 4 %
        QCOMPARE(judge(losses(1.83, 1.80, 1.80)).verdict, RunVerdict::Same);
        QCOMPARE(judge(losses(0.01, 0.025, 0.01)).verdict, RunVerdict::Same); // 0.015 nats
        QCOMPARE(judge(losses(1.83, 1.93, 1.83)).verdict, RunVerdict::Worse);
        QCOMPARE(judge(losses(1.83, 1.22, 1.22)).verdict, RunVerdict::Better);
        QVERIFY(describeOutcome(judge(losses(1.83, 1.22, 1.22))).empty());
    }

    void withoutBothEvaluationsThereIsNoVerdict()
    {
        QCOMPARE(judge({}).verdict, RunVerdict::Unknown);
        QCOMPARE(judge({1.83, kNaN, -1, kNaN, -1}).verdict, RunVerdict::Unknown);
        QCOMPARE(judge({kNaN, 9.0, 200, 8.0, 100}).verdict, RunVerdict::Unknown);
    }
};

MR_TEST(TestRunOutcome)

} // namespace mr::test::tst_run_outcome

#include "tst_run_outcome.moc"
