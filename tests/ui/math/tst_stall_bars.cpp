// The strip shows the worst step of a pixel; the ledger adds up to exactly everything.

#include "math/stall_bars.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QTest>

#include <numeric>

namespace mr::test::tst_stall_bars {

using mr::ui::dominantCause;
using mr::ui::LedgerTotals;
using mr::ui::ledgerTotals;
using mr::ui::shareOut;
using mr::ui::StallBar;
using mr::ui::stallBars;
using mr::ui::stallScaleUs;
using mr::ui::StepSeries;

namespace {

StepRow row(std::int64_t step, std::int64_t computeUs, std::int64_t uploadUs, std::int64_t diskUs)
{
    StepRow row;
    row.step = step;
    row.computeUs = computeUs;
    row.stallUs[0] = uploadUs;
    row.stallUs[3] = diskUs;
    row.wallUs = computeUs + uploadUs + diskUs;
    return row;
}

StepSeries series(const std::vector<StepRow>& rows)
{
    StepSeries steps;
    steps.append(rows);
    return steps;
}

} // namespace

class TestStallBars : public QObject
{
    Q_OBJECT

private slots:

    void theDominantCauseIsTheLongestWait()
    {
        QCOMPARE(dominantCause(row(1, 100, 30, 40)), 3);
        QCOMPARE(dominantCause(row(1, 100, 40, 40)), 0); // the first of equals
        QCOMPARE(dominantCause(row(1, 100, 0, 0)), -1);
    }

    void aBarStandsUnderItsStep()
    {
        const StepSeries steps = series({row(1, 10, 0, 0), row(2, 10, 5, 0), row(3, 10, 0, 9)});

        const std::vector<StallBar> bars = stallBars(steps, 0.5, 3.5, 300);

        QCOMPARE(bars.size(), std::size_t{3});
        QCOMPARE(bars[1].left, 100.0);
        QCOMPARE(bars[1].width, 100.0);
        QCOMPARE(bars[1].cause, 0);
        QCOMPARE(bars[2].cause, 3);
        QCOMPARE(bars[2].wallUs, std::int64_t{19});
    }

    void zoomedOutOnePixelShowsTheWorstStep()
    {
        std::vector<StepRow> rows;
        for (std::int64_t step = 1; step <= 10'000; ++step)
            rows.push_back(row(step, 100, 10, step == 4'567 ? 5'000 : 0));
        const StepSeries steps = series(rows);

        const std::vector<StallBar> bars = stallBars(steps, 0.5, 10'000.5, 200);

        QVERIFY(bars.size() <= 200);
        const auto worst = std::max_element(bars.begin(), bars.end(),
            [](const StallBar& a, const StallBar& b) { return a.wallUs < b.wallUs; });
        QCOMPARE(steps[worst->index].step, std::int64_t{4'567});
        QCOMPARE(worst->cause, 3);
        const std::size_t all = std::accumulate(bars.begin(), bars.end(), std::size_t{0},
            [](std::size_t sum, const StallBar& bar) { return sum + bar.count; });
        QCOMPARE(all, std::size_t{10'000});
    }

    void aFewOutliersDoNotFlattenTheRest()
    {
        std::vector<StepRow> rows;
        for (std::int64_t step = 1; step <= 100; ++step)
            rows.push_back(row(step, 100, 0, step == 50 ? 100'000 : 0));

        const double scale = stallScaleUs(stallBars(series(rows), 0.5, 100.5, 500));

        QCOMPARE(scale, 300.0); // three times the usual step
    }

    void theLedgerPartsAddUpToTheWallTime()
    {
        StepSeries steps;
        steps.append(mr::ui::test::demoSteps(600));

        const LedgerTotals totals = ledgerTotals(steps, 100.0, 199.0);

        QCOMPARE(totals.steps, std::int64_t{100});
        QCOMPARE(
            std::accumulate(totals.us.begin(), totals.us.end(), std::int64_t{0}), totals.wallUs);
    }

    void sharesAddUpToExactlyOneHundredPercent_data()
    {
        QTest::addColumn<std::vector<std::int64_t>>("parts");
        QTest::newRow("thirds") << std::vector<std::int64_t>{1, 1, 1};
        QTest::newRow("sevenths") << std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1};
        QTest::newRow("a week in us") << std::vector<std::int64_t>{604'800'000'001, 3, 17, 999'999};
        QTest::newRow("one part") << std::vector<std::int64_t>{0, 0, 5};
    }

    void sharesAddUpToExactlyOneHundredPercent()
    {
        QFETCH(const std::vector<std::int64_t>, parts);

        const std::vector<std::int64_t> tenths = shareOut(parts, 1000);

        QCOMPARE(
            std::accumulate(tenths.begin(), tenths.end(), std::int64_t{0}), std::int64_t{1000});
        const std::int64_t sum = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const double exact = 1000.0 * static_cast<double>(parts[i]) / static_cast<double>(sum);
            QVERIFY(std::abs(static_cast<double>(tenths[i]) - exact) < 1.0);
        }
    }

    void sharesOfNothingAreZero()
    {
        const std::vector<std::int64_t> nothing(7, 0);

        QCOMPARE(shareOut(nothing, 1000), nothing);
    }
};

MR_TEST(TestStallBars)

} // namespace mr::test::tst_stall_bars

#include "tst_stall_bars.moc"
