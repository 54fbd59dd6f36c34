// A jump of the training loss is reported once.

#include "core/run/loss_watch.h"
#include "support/test_room.h"

#include <QTest>

#include <limits>
#include <vector>

namespace mr::test::tst_loss_watch {

namespace {

// The indices at which a spike begins.
std::vector<int> spikes(LossWatch& watch, const std::vector<double>& losses)
{
    std::vector<int> out;
    for (std::size_t i = 0; i < losses.size(); ++i)
        if (watch.add(losses[i]))
            out.push_back(static_cast<int>(i));
    return out;
}

const std::vector<double> kFalling{1.8, 1.7, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1, 1.0, 0.9};

} // namespace

class TestLossWatch : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aSpikeIsReportedOnceHoweverLongItLasts()
    {
        LossWatch watch;
        watch.setBase(1.83);
        QVERIFY(spikes(watch, kFalling).empty());

        QCOMPARE(spikes(watch, std::vector<double>(200, 302.0)), (std::vector<int>{0}));
        QCOMPARE(spikes(watch, {1.2, 1.1, 77.0, 80.0, 1.0}), (std::vector<int>{2}));
    }

    void aJumpBelowTheBaseIsNone()
    {
        LossWatch watch;
        watch.setBase(1.83);
        QVERIFY(spikes(watch, std::vector<double>(20, 0.1)).empty());

        QVERIFY(spikes(watch, {0.9, 1.8}).empty());
        QCOMPARE(spikes(watch, {1.9}), (std::vector<int>{0}));
    }

    void theFirstStepsAreComparedWithTheBase()
    {
        LossWatch watch;
        watch.setBase(1.83);

        QCOMPARE(spikes(watch, {1.8, 5.0, 5.6, 900.0}), (std::vector<int>{2}));
    }

    void withoutABaseTheFirstLossStandsForIt()
    {
        LossWatch watch;

        QCOMPARE(spikes(watch, {10.0, 8.0, 29.0, 31.0}), (std::vector<int>{3}));
    }

    void aLossThatIsNotANumberIsASpike()
    {
        LossWatch watch;
        watch.setBase(1.83);

        const double nan = std::numeric_limits<double>::quiet_NaN();
        QCOMPARE(spikes(watch, {1.8, nan, nan, 1.8}), (std::vector<int>{1}));
        QCOMPARE(watch.usual(), 1.83);
    }

    void theMedianIsThatOfTheLastSteps()
    {
        LossWatch watch;
        watch.setBase(9.0);
        for (int i = 0; i < 100; ++i)
            (void)watch.add(8.0);
        for (int i = 0; i < 64; ++i)
            (void)watch.add(2.0);

        QCOMPARE(watch.usual(), 2.0);
    }
};

MR_TEST(TestLossWatch)

} // namespace mr::test::tst_loss_watch

#include "tst_loss_watch.moc"
