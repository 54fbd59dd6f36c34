// Forecast against truth: medians of measured steps, and no number where none is known.

#include "models/forecast_model.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QAbstractItemModelTester>
#include <QTest>

namespace mr::test::tst_forecast_model {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

StepSeries seriesOf(const std::vector<std::int64_t>& wallUs)
{
    StepSeries series;
    std::vector<StepRow> rows;
    for (const std::int64_t wall : wallUs) {
        StepRow row;
        row.step = static_cast<std::int64_t>(rows.size()) + 1;
        row.wallUs = wall;
        row.computeUs = wall - 1000;
        row.stallUs[2] = 1000;
        rows.push_back(row);
    }
    series.append(rows);
    return series;
}

QString shown(const ForecastModel& model, int row, int column)
{
    return model.index(row, column).data().toString();
}

} // namespace

class TestForecastModel : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void oneSlowStepDoesNotMoveTheMedian()
    {
        std::int64_t count = 0;

        const StepTimesMs times =
            medianTimes(seriesOf({5000, 6000, 900'000, 5000, 6000}), 0.5, 5.5, count);

        QCOMPARE(count, std::int64_t{5});
        QCOMPARE(times.step, 6.0);
        QCOMPARE(times.parts[0], 5.0);
        QCOMPARE(times.parts[3], 1.0);
    }

    void onlyTheStepsInRangeCount()
    {
        std::int64_t count = 0;
        const StepSeries steps = seriesOf({1000, 2000, 3000, 4000});

        QCOMPARE(medianTimes(steps, 2.0, 3.0, count).step, 2.5); // an even number of steps
        QCOMPARE(count, std::int64_t{2});
        QVERIFY(!medianTimes(steps, 9.0, 12.0, count).known);
        QCOMPARE(count, std::int64_t{0});
    }

    void anUnknownForecastIsNeverANumber()
    {
        PlanReport plan = demoPlan();
        plan.predictedStepMs = 0.0;
        std::int64_t count = 0;
        ForecastModel model;
        const QAbstractItemModelTester tester(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);

        model.setTimes(forecastTimes(&plan), medianTimes(seriesOf({5000, 5000}), 0.0, 9.0, count));

        QCOMPARE(shown(model, ForecastModel::Forecast, ForecastModel::Step),
            QStringLiteral("no forecast yet"));
        for (int column = ForecastModel::Step; column < ForecastModel::ColumnCount; ++column) {
            QVERIFY(!model.index(ForecastModel::Forecast, column)
                         .data(ForecastModel::ValueRole)
                         .isValid());
            QVERIFY(!model.index(ForecastModel::Difference, column)
                         .data(ForecastModel::ValueRole)
                         .isValid());
        }
        QVERIFY(!forecastTimes(nullptr).known);
    }

    void theDifferenceIsMeasuredLessForecast()
    {
        PlanReport plan;
        plan.predictedStepMs = 4.0;
        plan.predictedComputeMs = 3.5;
        plan.predictedStallMs[2] = 0.5;
        std::int64_t count = 0;
        ForecastModel model;

        model.setTimes(forecastTimes(&plan), medianTimes(seriesOf({5000}), 0.0, 9.0, count));

        QCOMPARE(shown(model, ForecastModel::Difference, ForecastModel::Step),
            QStringLiteral("+25.0\u00a0%"));
        QCOMPARE(model.index(ForecastModel::Difference, ForecastModel::FirstPart + 3)
                     .data(ForecastModel::ValueRole)
                     .toDouble(),
            0.5);
        QVERIFY(model.isEmpty(ForecastModel::FirstPart + 4)); // no disk on either side
        QVERIFY(model.csv().contains("host_update,0.500,1.000"));
    }
};

MR_TEST_WITH_WINDOWS(TestForecastModel)

} // namespace mr::test::tst_forecast_model

#include "tst_forecast_model.moc"
