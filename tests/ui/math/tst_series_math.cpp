// Smoothing never rewrites the past; decimation keeps every spike and every gap.

#include "math/series_math.h"
#include "support/test_room.h"

#include <QTest>

#include <cmath>
#include <limits>
#include <numeric>

namespace mr::test::tst_series_math {

using mr::ui::Column;
using mr::ui::debiasedEma;
using mr::ui::decimate;
using mr::ui::DrawnPoints;
using mr::ui::Scale;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Column ramp(std::size_t count)
{
    Column column;
    for (std::size_t i = 0; i < count; ++i) {
        column.x.push_back(static_cast<double>(i));
        column.y.push_back(std::sin(static_cast<double>(i) / 700.0));
    }
    return column;
}

} // namespace

class TestSeriesMath : public QObject
{
    Q_OBJECT

private slots:

    void emaOfAConstantIsExactlyThatConstant()
    {
        const std::vector<double> values(1000, 0.1);

        const std::vector<double> smoothed = debiasedEma(values, 37.0);

        for (const double value : smoothed)
            QVERIFY(value == 0.1); // the correction is a multiple of zero
    }

    void emaStartsAtTheFirstValueAndIsTheWeightedMean()
    {
        const std::vector<double> values = {4.0, 1.0, 7.0};
        const double a = 2.0 / (3.0 + 1.0);
        const double keep = 1.0 - a;

        const std::vector<double> smoothed = debiasedEma(values, 3.0);

        QCOMPARE(smoothed[0], 4.0);
        const double expected = (7.0 + keep * 1.0 + keep * keep * 4.0) / (1.0 + keep + keep * keep);
        QVERIFY(std::abs(smoothed[2] - expected) < 1e-14);
    }

    void emaPastNeverChangesWhenPointsArrive()
    {
        const std::vector<double> all = ramp(500).y;
        const std::vector<double> early(all.begin(), all.begin() + 200);

        const std::vector<double> before = debiasedEma(early, 25.0);
        const std::vector<double> after = debiasedEma(all, 25.0);

        QVERIFY(std::equal(before.begin(), before.end(), after.begin()));
    }

    void emaSkipsWhatIsNotANumber()
    {
        const std::vector<double> values = {2.0, kNaN, 2.0};

        const std::vector<double> smoothed = debiasedEma(values, 10.0);

        QVERIFY(std::isnan(smoothed[1]));
        QCOMPARE(smoothed[2], 2.0);
    }

    void decimationDrawsAtMostTwoPointsForEachPixelColumn()
    {
        const Column column = ramp(100'000);

        const DrawnPoints drawn = decimate(column, 0.0, 99'999.0, 400, Scale::Linear);

        // One more column where the upper edge falls on its own, and a neighbour on each side.
        QVERIFY(drawn.x.size() <= 2 * 401 + 2);
        QVERIFY(drawn.x.size() > 400);
    }

    void decimationKeepsASpikeOfOneStep()
    {
        Column column = ramp(100'000);
        column.y[54'321] = 90.0;
        column.y[54'322] = -70.0;

        const DrawnPoints drawn = decimate(column, 0.0, 99'999.0, 300, Scale::Linear);

        QCOMPARE(drawn.high, 90.0);
        QCOMPARE(drawn.low, -70.0);
        QVERIFY(std::find(drawn.y.begin(), drawn.y.end(), 90.0) != drawn.y.end());
        QVERIFY(std::find(drawn.y.begin(), drawn.y.end(), -70.0) != drawn.y.end());
        QVERIFY(std::is_sorted(drawn.x.begin(), drawn.x.end()));
    }

    void gapsSplitTheLineAndAreReported()
    {
        Column column = ramp(20);
        column.y[7] = kNaN;
        column.y[8] = std::numeric_limits<double>::infinity();

        const DrawnPoints drawn = decimate(column, 0.0, 19.0, 100, Scale::Linear);

        QCOMPARE(drawn.gaps, (std::vector<double>{7.0, 8.0}));
        QCOMPARE(
            std::count_if(drawn.y.begin(), drawn.y.end(), [](double y) { return std::isnan(y); }),
            1); // one is enough to lift the pen
    }

    void aLogScaleHidesAndCountsWhatIsNotAboveZero()
    {
        Column column;
        column.x = {1.0, 2.0, 3.0, 4.0};
        column.y = {2.0, 0.0, -1.0, 8.0};

        const DrawnPoints drawn = decimate(column, 0.0, 5.0, 100, Scale::Log);

        QCOMPARE(drawn.hidden, std::size_t{2});
        QCOMPARE(drawn.low, 2.0);
        QCOMPARE(drawn.high, 8.0);
    }

    void theLineReachesTheEdgesOfTheRange()
    {
        const Column column = ramp(100);

        const DrawnPoints drawn = decimate(column, 40.5, 49.5, 300, Scale::Linear);

        QCOMPARE(drawn.x.front(), 40.0);
        QCOMPARE(drawn.x.back(), 50.0);
    }

    void nothingInRangeIsEmpty()
    {
        const DrawnPoints drawn = decimate({}, 0.0, 10.0, 100, Scale::Linear);

        QVERIFY(drawn.x.empty());
        QVERIFY(drawn.low > drawn.high);
    }

    void axisNumbersAreRound()
    {
        QCOMPARE(mr::ui::niceStep(0.7), 1.0);
        QCOMPARE(mr::ui::niceStep(12.0), 20.0);
        QCOMPARE(mr::ui::niceStep(51.0), 100.0);
        QCOMPARE(mr::ui::niceCeiling(1.29), 1.5);
        QCOMPARE(mr::ui::niceCeiling(0.0), 1.0);
        QCOMPARE(mr::ui::niceCeiling(8.5e6), 1e7);
    }
};

MR_TEST(TestSeriesMath)

} // namespace mr::test::tst_series_math

#include "tst_series_math.moc"
