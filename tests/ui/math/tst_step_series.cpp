// StepSeries copies cheaply: the next version does not touch the rows of an earlier one.

#include "math/step_series.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QTest>

namespace mr::test::tst_step_series {

using mr::ui::StepSeries;

class TestStepSeries : public QObject
{
    Q_OBJECT

private slots:

    void appendLeavesOlderCopiesAsTheyWere()
    {
        const std::vector<mr::StepRow> rows = mr::ui::test::demoSteps(5000);
        StepSeries now;
        now.append(std::span(rows).first(4000));
        const StepSeries before = now;

        now.append(std::span(rows).subspan(4000));

        QCOMPARE(before.size(), std::size_t{4000});
        QCOMPARE(before.back().step, std::int64_t{4000});
        QCOMPARE(now.size(), std::size_t{5000});
        for (std::size_t i = 0; i < rows.size(); ++i)
            QCOMPARE(now[i].step, rows[i].step);
    }

    void fullBlocksAreSharedBetweenCopies()
    {
        const std::vector<mr::StepRow> rows = mr::ui::test::demoSteps(9000);
        StepSeries now;
        now.append(std::span(rows).first(8500));
        const StepSeries before = now;

        now.append(std::span(rows).subspan(8500));

        QCOMPARE(&now[0], &before[0]);
        QVERIFY(&now[8499] != &before[8499]); // the last block was copied
    }

    void lowerBoundFindsTheFirstStepNotBelow()
    {
        StepSeries steps;
        steps.append(mr::ui::test::demoSteps(10));

        QCOMPARE(steps.lowerBound(0.0), std::size_t{0});
        QCOMPARE(steps.lowerBound(4.5), std::size_t{4});
        QCOMPARE(steps.lowerBound(11.0), std::size_t{10});
    }

    void aStepIsFoundByTheTimeAtWhichItEnded()
    {
        StepSeries series;
        std::vector<mr::StepRow> rows(5000);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            rows[i].step = static_cast<std::int64_t>(i) + 1;
            rows[i].timeMs = rows[i].step * 700;
        }
        series.append(rows);

        QCOMPARE(series.lowerBoundMs(0.0), std::size_t{0});
        QCOMPARE(series.lowerBoundMs(700.0), std::size_t{0});
        QCOMPARE(series.lowerBoundMs(700.5), std::size_t{1});
        QCOMPARE(series.lowerBoundMs(1e9), std::size_t{5000});
    }
};

MR_TEST(TestStepSeries)

} // namespace mr::test::tst_step_series

#include "tst_step_series.moc"
