// Forecasts of plans small enough to be worked out by hand.

#include "core/plan/cost_model.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <cmath>
#include <numeric>

using namespace mr;
using namespace mr::test;

namespace {

// Rates of 1 make durations flops, bytes and elements.
constexpr Feedback kUnitRates = {1.0, 1.0, 1.0, 1.0, 1.0};

double stall(const StepForecast& forecast, StallCause cause)
{
    return forecast.stallSeconds[static_cast<std::size_t>(cause)];
}

StepPlan planOf(const ModelShape& shape, const OffloadPolicy& policy, int microBatches)
{
    Result<BuiltStep> built =
        buildPlan(specOf(1, microBatches), {}, shape, endless(), kUnitRates, policy);
    return built.ok() ? std::move(built).value().plan : StepPlan{};
}

} // namespace

class TestCostModel : public QObject
{
    Q_OBJECT

private slots:
    void residentStepIsBatchComputeAndUpdate()
    {
        ModelShape shape = smallShape(1);
        shape.batchBytes = 7;
        shape.sentScalarBytes = 3;
        const StepPlan plan = planOf(shape, policyOf("resident"), 1);

        const StepForecast forecast =
            StepForecaster().forecast(plan, {shape, kUnitRates, Precision::BF16, true});

        // Block: forward 100, again 100, backward 200. Head: 50 + 100. Updates: 3 groups.
        const double compute = 100.0 + 300.0 + 150.0 + 3.0 * kGroupElements;
        QVERIFY(forecast.known);
        QCOMPARE(forecast.computeSeconds, compute);
        QCOMPARE(stall(forecast, StallCause::H2d), 7.0);
        QCOMPARE(forecast.stepSeconds, compute + 7.0);
    }

    void notRecomputingSavesABlocksForward()
    {
        const ModelShape shape = smallShape(1);
        const StepPlan plan = planOf(shape, policyOf("resident"), 1);
        StepForecaster forecaster;

        const double with =
            forecaster.forecast(plan, {shape, kUnitRates, Precision::BF16, true}).computeSeconds;
        const double without =
            forecaster.forecast(plan, {shape, kUnitRates, Precision::BF16, false}).computeSeconds;

        QCOMPARE(with - without, 100.0);
    }

    // Nothing computes after the norm: the tail is what the host does, and the last upload.
    void zeroOffloadTailIsSendingUpdatingAndUploading()
    {
        const ModelShape shape = smallShape(1);
        const StepPlan plan = planOf(shape, policyOf("zero-offload"), 1);
        Feedback rates = kUnitRates;
        rates.deviceToHostBytesPerSecond = 1e9;
        rates.hostToDeviceBytesPerSecond = 2.0 * kGroupElements; // a group a second
        rates.hostAdamwElementsPerSecond = kGroupElements / 4.0; // and one in four

        const StepForecast forecast =
            StepForecaster().forecast(plan, {shape, rates, Precision::BF16, true});

        QCOMPARE(forecast.computeSeconds, 550.0);
        QCOMPARE(stall(forecast, StallCause::H2d), 1.0);
        QCOMPARE(stall(forecast, StallCause::HostUpdate), 12.0);
        QVERIFY(stall(forecast, StallCause::D2h) < 1e-4);
    }

    void computeAndStallsAddUpToTheStep()
    {
        const ModelShape shape = smallShape(3);
        const Feedback rates = {3.0, 5.0, 7.0, 11.0, 2.0};
        for (const char* order : {"by-microbatch", "by-layer", "by-layer-flip"}) {
            const StepPlan plan = planOf(shape, policyOf("zero-offload", order), 3);

            const StepForecast forecast =
                StepForecaster().forecast(plan, {shape, rates, Precision::F32, true});

            const double sum = std::accumulate(forecast.stallSeconds.begin(),
                forecast.stallSeconds.end(), forecast.computeSeconds);
            // A few hundred additions of doubles.
            QVERIFY(std::abs(sum - forecast.stepSeconds) <= 1e-12 * forecast.stepSeconds);
        }
    }

    void missingRatesMakeTheForecastUnknown()
    {
        const ModelShape shape = smallShape(1);
        const StepPlan plan = planOf(shape, policyOf("zero-offload"), 1);

        const StepForecast forecast =
            StepForecaster().forecast(plan, {shape, Feedback{}, Precision::BF16, true});

        QVERIFY(!forecast.known);
        QCOMPARE(forecast.stepSeconds, 0.0);
    }

    void trafficIsCountedToTheByte()
    {
        ModelShape shape = smallShape(2);
        shape.batchBytes = 40;
        shape.sentScalarBytes = 24;
        const StepPlan plan = planOf(shape, policyOf("zero-offload"), 3);

        const LinkTraffic half = linkTraffic(plan, shape, Precision::BF16);
        const LinkTraffic full = linkTraffic(plan, shape, Precision::F32);

        QCOMPARE(half.hostToDeviceBytes, 3 * 40 + 2 * 4 * kGroupElements);
        QCOMPARE(half.deviceToHostBytes, 24 + 2 * 4 * kGroupElements);
        QCOMPARE(full.deviceToHostBytes, 24 + 4 * 4 * kGroupElements);
    }
};

QTEST_APPLESS_MAIN(TestCostModel)
#include "tst_cost_model.moc"
