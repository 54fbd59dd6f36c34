// The length of a window, from energies made by hand.

#include "core/plan/magnitude_rule.h"
#include "support/test_room.h"

#include <QTest>

#include <cstdint>
#include <vector>

namespace mr::test::tst_magnitude_rule {

class TestMagnitudeRule : public QObject
{
    Q_OBJECT

private:
    // Choice for `count` weights: `slow` of them need `steps` steps, all others two.
    static IntervalChoice mixed(std::size_t count, std::size_t slow, double steps)
    {
        std::vector<ColumnMeans> weights(count, ColumnMeans{1.5, 1.0});
        for (std::size_t i = 0; i < slow; ++i)
            weights[i] = {steps, 1.0};
        return chooseInterval(weights);
    }

private Q_SLOTS:
    void meansAreByElementWhateverTheOrderOfTheColumns()
    {
        const std::vector<float> energies{1.0F, 12.0F, 2.0F, 18.0F, 3.0F};
        const std::vector<std::int32_t> urgent{3, 1};

        const ColumnMeans means = meansOf(energies, urgent, 5);

        QCOMPARE(means.urgent, 30.0 / (2 * 5));
        QCOMPARE(means.complement, 6.0 / (3 * 5));
    }

    void theComplementNeedsAsManyStepsAsItIsSmaller_data()
    {
        QTest::addColumn<double>("urgent");
        QTest::addColumn<double>("complement");
        QTest::addColumn<int>("steps");
        QTest::newRow("equal") << 0.25 << 0.25 << 1;
        QTest::newRow("larger") << 0.25 << 0.5 << 1;
        QTest::newRow("a little less") << 1.01 << 1.0 << 2;
        QTest::newRow("a whole number") << 3.0 << 1.0 << 3;
        QTest::newRow("more than that") << 3.0625 << 1.0 << 4;
        QTest::newRow("the most") << 16.0 << 1.0 << 16;
        QTest::newRow("more than the most") << 16.5 << 1.0 << 16;
        QTest::newRow("nothing outside") << 1.0 << 0.0 << 16;
        QTest::newRow("no gradient at all") << 0.0 << 0.0 << 1;
    }

    void theComplementNeedsAsManyStepsAsItIsSmaller()
    {
        QFETCH(double, urgent);
        QFETCH(double, complement);
        QFETCH(int, steps);
        const std::vector<ColumnMeans> weights{{urgent, complement}};

        const IntervalChoice choice = chooseInterval(weights);

        QCOMPARE(choice.steps, steps);
        QCOMPARE(choice.weights, std::int64_t{1});
        QCOMPARE(choice.votes, std::int64_t(steps * complement >= urgent ? 1 : 0));
        QCOMPARE(choice.means.urgent, urgent);
        QCOMPARE(choice.means.complement, complement);
    }

    void ninetyNineInAHundredDecide()
    {
        QCOMPARE(mixed(100, 1, 7.0).steps, 2);
        QCOMPARE(mixed(100, 1, 7.0).votes, std::int64_t{99});
        QCOMPARE(mixed(100, 2, 7.0).steps, 7);
        QCOMPARE(mixed(100, 2, 7.0).votes, std::int64_t{100});
        QCOMPARE(mixed(99, 1, 7.0).steps, 7); // 98 of 99 are less
        QCOMPARE(mixed(14, 1, 20.0).steps, 16);
        QCOMPARE(mixed(14, 1, 20.0).votes, std::int64_t{13});
    }

    void withoutWeightsThereIsNothingToWaitFor()
    {
        const IntervalChoice choice = chooseInterval({});

        QCOMPARE(choice.steps, 1);
        QCOMPARE(choice.weights, std::int64_t{0});
    }
};

MR_TEST(TestMagnitudeRule)

} // namespace mr::test::tst_magnitude_rule

#include "tst_magnitude_rule.moc"
