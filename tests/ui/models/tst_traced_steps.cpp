// Which kept step a row of the ledger opens.

#include "models/traced_steps.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_traced_steps {

using namespace mr::ui;

namespace {

StepSeries seriesOf(std::int64_t count)
{
    std::vector<StepRow> rows;
    for (std::int64_t step = 1; step <= count; ++step) {
        StepRow row;
        row.step = step;
        row.computeUs = 1000 - step;
        row.stallUs[0] = step == 100 ? 500 : 10;
        row.stallUs[2] = step;
        row.wallUs = row.computeUs + row.stallUs[0] + row.stallUs[2];
        rows.push_back(row);
    }
    StepSeries series;
    series.append(rows);
    return series;
}

} // namespace

class TestTracedSteps : public QObject
{
    Q_OBJECT

private slots:

    void theKeptStepWithTheLargestPartIsTheWorst()
    {
        const std::vector<TraceInfo> traces = {{50, ""}, {100, ""}, {150, ""}};
        const StepSeries steps = seriesOf(160);

        QCOMPARE(worstTracedStep(traces, steps, 0).value_or(-1), std::int64_t{50});  // compute
        QCOMPARE(worstTracedStep(traces, steps, 1).value_or(-1), std::int64_t{100}); // upload
        QCOMPARE(worstTracedStep(traces, steps, 3).value_or(-1), std::int64_t{150}); // host
        QVERIFY(!worstTracedStep(traces, steps, 4)); // nothing waited for the disk
        QCOMPARE(worstTracedStep(traces, steps, 7).value_or(-1), std::int64_t{100}); // the total
    }

    void aTraceWhoseStepIsGoneIsNotOffered()
    {
        QVERIFY(!worstTracedStep({{500, ""}}, seriesOf(160), 0));
        QVERIFY(!worstTracedStep({}, seriesOf(160), 0));
    }

    void neighboursEndAtTheFirstAndTheLast()
    {
        const std::vector<TraceInfo> traces = {{50, ""}, {100, ""}};

        QCOMPARE(tracedNeighbour(traces, 50, 1).value_or(-1), std::int64_t{100});
        QVERIFY(!tracedNeighbour(traces, 50, -1));
        QVERIFY(!tracedNeighbour(traces, 100, 1));
        QVERIFY(!tracedNeighbour(traces, 75, 1));
    }
};

MR_TEST(TestTracedSteps)

} // namespace mr::test::tst_traced_steps

#include "tst_traced_steps.moc"
