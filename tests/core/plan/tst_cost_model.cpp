// Forecasts of plans small enough to be worked out by hand.

#include "core/plan/cost_model.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <cmath>
#include <numeric>

namespace mr::test::tst_cost_model {

namespace {

// Rates of 1 make durations flops, bytes and elements.
const Feedback kUnitRates = rates(1.0, 1.0, 1.0, 1.0);

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

private Q_SLOTS:
    // An activation that waits in codes moves as these, everywhere.
    void boundariesMoveAsTheyAreKept()
    {
        ModelShape shape;
        shape.boundaryBytes = 8192;
        for (const std::size_t kept : {std::size_t{0}, std::size_t{4352}}) {
            shape.keptBoundaryBytes = kept;
            const std::int64_t linked = kept > 0 ? 4352 : 8192;
            Task task;
            for (const TaskKind kind : {TaskKind::SaveBoundary, TaskKind::LoadBoundary}) {
                task.kind = kind;
                QCOMPARE(copyBytes({}, task, shape, Precision::BF16), linked);
            }
            for (const TaskKind kind : {TaskKind::WriteBoundary, TaskKind::ReadBoundary}) {
                task.kind = kind;
                QCOMPARE(diskBytes({}, task, shape, Precision::BF16), std::int64_t{8192});
            }
        }
        shape.keptBoundaryBytes = 4000;
        Task write;
        write.kind = TaskKind::WriteBoundary;
        QCOMPARE(diskBytes({}, write, shape, Precision::BF16), std::int64_t{4096});
    }

    void residentStepIsBatchComputeAndUpdate()
    {
        ModelShape shape = smallShape(1);
        shape.batchBytes = 7;
        shape.sentScalarBytes = 3;
        const StepPlan plan = planOf(shape, policyOf("resident"), 1);

        const StepForecast forecast =
            StepForecaster().forecast(plan, {shape, kUnitRates, Precision::BF16, Recompute::Block});

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
            forecaster.forecast(plan, {shape, kUnitRates, Precision::BF16, Recompute::Block})
                .computeSeconds;
        const double without =
            forecaster.forecast(plan, {shape, kUnitRates, Precision::BF16, Recompute::None})
                .computeSeconds;

        QCOMPARE(with - without, 100.0);
    }

    // Nothing computes after the norm: the tail is the host's work and the last upload.
    void zeroOffloadTailIsSendingUpdatingAndUploading()
    {
        const ModelShape shape = smallShape(1);
        const StepPlan plan = planOf(shape, policyOf("zero-offload"), 1);
        Feedback known = kUnitRates;
        known.deviceToHostBytesPerSecond = 1e9;
        known.hostToDeviceBytesPerSecond = 2.0 * kGroupElements; // a group a second
        known.hostAdamwElementsPerSecond = kGroupElements / 4.0; // and one in four

        const StepForecast forecast =
            StepForecaster().forecast(plan, {shape, known, Precision::BF16, Recompute::Block});

        QCOMPARE(forecast.computeSeconds, 550.0);
        QCOMPARE(stall(forecast, StallCause::H2d), 1.0);
        QCOMPARE(stall(forecast, StallCause::HostUpdate), 12.0);
        QVERIFY(stall(forecast, StallCause::D2h) < 1e-4);
    }

    void computeAndStallsAddUpToTheStep()
    {
        const ModelShape shape = smallShape(3);
        const Feedback known = rates(3.0, 5.0, 7.0, 11.0, 2.0);
        for (const char* order : {"by-microbatch", "by-layer", "by-layer-flip"}) {
            const StepPlan plan = planOf(shape, policyOf("zero-offload", order), 3);

            const StepForecast forecast =
                StepForecaster().forecast(plan, {shape, known, Precision::F32, Recompute::Block});

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
            StepForecaster().forecast(plan, {shape, Feedback{}, Precision::BF16, Recompute::Block});

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

    // The high half is the weights in bf16, so it only goes home; in fp32 it comes too.
    void visitingStateIsCountedByItsParts()
    {
        Task fetch;
        fetch.kind = TaskKind::FetchState;
        fetch.lane = Lane::CopyIn;
        fetch.elementCount = 1000;
        Task store = fetch;
        store.kind = TaskKind::StoreState;
        store.lane = Lane::CopyOut;

        QCOMPARE(copyBytes({}, fetch, {}, Precision::BF16), std::int64_t{(2 + 4 + 4) * 1000});
        QCOMPARE(copyBytes({}, fetch, {}, Precision::F32), std::int64_t{(2 + 2 + 4 + 4) * 1000});
        QCOMPARE(copyBytes({}, store, {}, Precision::BF16), std::int64_t{(2 + 2 + 4 + 4) * 1000});
        QCOMPARE(copyBytes({}, store, {}, Precision::F32), std::int64_t{(2 + 2 + 4 + 4) * 1000});
    }

    void visitingCompactStateIsCountedByItsParts()
    {
        StepPlan plan;
        plan.stateCodec = StateCodec::Compact;
        Task task;
        task.kind = TaskKind::FetchState;
        task.elementCount = 1024;

        QCOMPARE(copyBytes(plan, task, {}, Precision::BF16), std::int64_t{3 * 1024 + 8 * 32});
        task.kind = TaskKind::StoreState;
        QCOMPARE(copyBytes(plan, task, {}, Precision::BF16), std::int64_t{5 * 1024 + 8 * 32});
    }

    // The high half and the gradient come as well; the same goes home.
    void visitsOfWeightsThatStreamAreCountedByTheirParts()
    {
        StepPlan plan;
        plan.answers.resize(2);
        plan.answers[0].weights = Tier::Device;
        plan.answers[1].weights = Tier::PinnedHost;
        Task task;
        task.group = GroupId{1};
        task.elementCount = 1024;
        const auto bytes = [&](TaskKind kind, StateCodec codec, Precision precision) {
            task.kind = kind;
            plan.stateCodec = codec;
            return copyBytes(plan, task, {}, precision);
        };
        const auto fetch = TaskKind::FetchState;
        const auto store = TaskKind::StoreState;

        QCOMPARE(bytes(fetch, StateCodec::Plain, Precision::BF16), std::int64_t{14 * 1024});
        QCOMPARE(bytes(fetch, StateCodec::Plain, Precision::F32), std::int64_t{16 * 1024});
        QCOMPARE(
            bytes(fetch, StateCodec::Compact, Precision::BF16), std::int64_t{7 * 1024 + 8 * 32});
        QCOMPARE(bytes(store, StateCodec::Plain, Precision::BF16), std::int64_t{12 * 1024});
        QCOMPARE(bytes(store, StateCodec::Plain, Precision::F32), std::int64_t{12 * 1024});
        QCOMPARE(
            bytes(store, StateCodec::Compact, Precision::BF16), std::int64_t{5 * 1024 + 8 * 32});
        task.group = GroupId{0};
        QCOMPARE(bytes(fetch, StateCodec::Plain, Precision::BF16), std::int64_t{10 * 1024});
    }

    void trafficOfVisitingStateIsCountedToTheByte()
    {
        ModelShape shape = smallShape(2);
        shape.batchBytes = 40;
        shape.sentScalarBytes = 24;
        const StepPlan plan =
            planOf(shape, policyWith("deep-optimizer-states", {{"device-share", "0.25"}}), 1);

        const LinkTraffic half = linkTraffic(plan, shape, Precision::BF16);
        const LinkTraffic full = linkTraffic(plan, shape, Precision::F32);

        // A quarter of each of four groups visits; of the rest gradients leave and weights come.
        constexpr std::int64_t kVisits = kGroupElements; // 4 * 1/4
        constexpr std::int64_t kStays = 3 * kGroupElements;
        QCOMPARE(half.hostToDeviceBytes, 40 + 10 * kVisits + 2 * kStays);
        QCOMPARE(half.deviceToHostBytes, 24 + 12 * kVisits + 2 * kStays);
        QCOMPARE(full.hostToDeviceBytes, 40 + 12 * kVisits + 4 * kStays);
        QCOMPARE(full.deviceToHostBytes, 24 + 12 * kVisits + 4 * kStays);
    }

    // Device, link and host each have a part of the tail; the balanced share makes it shortest.
    void balancedShareGivesTheShortestForecast()
    {
        ModelShape shape = smallShape(2);
        for (GroupShape& group : shape.groups)
            group.elements = 256 * kCutElements;
        const Feedback known = rates(48e6, 48e6, 2e6, 1e9, 1e12);
        const auto seconds = [&](double share) {
            const StepPlan plan = planOf(shape,
                policyWith("deep-optimizer-states",
                    {{"device-share", std::to_string(share)}, {"tile", "8KiB"}}),
                1);
            return StepForecaster()
                .forecast(plan, {shape, known, Precision::BF16, Recompute::Block})
                .stepSeconds;
        };

        const double best = balancedDeviceShare(known);

        QVERIFY(best > 0.3 && best < 0.9);
        QVERIFY(seconds(best) < seconds(best - 0.2));
        QVERIFY(seconds(best) < seconds(best + 0.1));
        QVERIFY(seconds(best) < seconds(0.0));
        // Bounds: the updates of both sides by themselves, and with the copies of gradients before
        // them.
        const double elements = 4.0 * 256.0 * kCutElements;
        const double sides = elements * (1.0 - best) / known.hostAdamwElementsPerSecond;
        const double gradients = elements * (1.0 - best) * 2.0 / known.deviceToHostBytesPerSecond;
        QVERIFY(seconds(best) > sides);
        QVERIFY(seconds(best) < 1.1 * (sides + gradients));
    }

    // Weights stream and nothing is late. Embedding and head keep their weights and are small.
    void balancedShareOfWhatStreamsGivesTheShortestForecast()
    {
        ModelShape shape = smallShape(6);
        for (std::size_t g = 1; g + 1 < shape.groups.size(); ++g)
            shape.groups[g].elements = 128 * kCutElements;
        const Feedback known = rates(56e6, 56e6, 2e6, 1e9, 1e12);
        const auto seconds = [&](double share) {
            const StepPlan plan = planOf(shape,
                policyWith("streamed",
                    {{"device-share", std::to_string(share)}, {"tile", "8KiB"}, {"late", "0"}}),
                1);
            return StepForecaster()
                .forecast(plan, {shape, known, Precision::BF16, Recompute::Block})
                .stepSeconds;
        };

        const double best = balancedDeviceShare(known, kStreamedVisits);

        QVERIFY(best > 0.3 && best < 0.9);
        QVERIFY(seconds(best) < seconds(best - 0.2));
        QVERIFY(seconds(best) < seconds(best + 0.1));
        QVERIFY(seconds(best) < seconds(0.0));
    }

    // Backward of a block includes recomputation, if the step recomputes.
    void measuredSecondsOfLayersReplaceFlops()
    {
        const ModelShape shape = smallShape(1);
        const StepPlan plan = planOf(shape, policyOf("resident"), 2);
        Feedback known = rates(1e9, 1e9, 1e9, 1e30, 1e-3);
        known.embedding = {1.0, 2.0, 0.0};
        known.block = {10.0, 20.0, 5.0};
        known.head = {50.0, 100.0, 0.0};
        StepForecaster forecaster;

        const double with =
            forecaster.forecast(plan, {shape, known, Precision::BF16, Recompute::Block})
                .computeSeconds;
        const double without =
            forecaster.forecast(plan, {shape, known, Precision::BF16, Recompute::None})
                .computeSeconds;

        QCOMPARE(with, 2.0 * (1.0 + 2.0 + 10.0 + 20.0 + 5.0 + 100.0));
        QCOMPARE(without, 2.0 * (1.0 + 2.0 + 10.0 + 20.0 + 100.0));
    }

    // Blocks of a kind that was not measured take as long as those of the first.
    void everyKindOfBlockTakesItsOwnSeconds()
    {
        ModelShape shape = smallShape(3);
        shape.groups[2].kind = 1;
        shape.groups[3].kind = 2;
        const StepPlan plan = planOf(shape, policyOf("resident"), 1);
        Feedback known = rates(1e9, 1e9, 1e9, 1e30, 1e-3);
        known.embedding = {1.0, 2.0, 0.0};
        known.block = {10.0, 20.0, 5.0};
        known.blockOf(1) = {100.0, 300.0, 7.0};
        known.head = {50.0, 100.0, 0.0};
        StepForecaster forecaster;

        const double seconds =
            forecaster.forecast(plan, {shape, known, Precision::BF16, Recompute::Block})
                .computeSeconds;

        QCOMPARE(seconds, 1.0 + 2.0 + 2.0 * (10.0 + 20.0 + 5.0) + 100.0 + 300.0 + 7.0 + 100.0);
    }

    // The seconds of cheap recomputation join those of a block's backward, measured or counted.
    void cheapRecomputationLengthensTheBackwardOfBlocksAlone()
    {
        const ModelShape shape = smallShape(3);
        const StepPlan plan = planOf(shape, policyOf("resident"), 2);
        Feedback known = rates(1e9, 1e9, 1e9, 1e30, 1e-3);
        StepForecaster forecaster;
        const auto seconds = [&](Recompute how) {
            return forecaster.forecast(plan, {shape, known, Precision::BF16, how}).computeSeconds;
        };
        for (const bool measured : {false, true}) {
            known.embedding = {1.0, 2.0, 0.0};
            known.block = measured ? LayerSeconds{10.0, 20.0, 5.0} : LayerSeconds{};
            known.head = {50.0, 100.0, 0.0};
            known.block.cheap = 0.5;

            const double more = seconds(Recompute::Cheap) - seconds(Recompute::None);

            QVERIFY(std::abs(more - 2.0 * 3.0 * 0.5) < 1e-6 * seconds(Recompute::None));
        }
        QCOMPARE(seconds(Recompute::Block) - seconds(Recompute::None), 2.0 * 3.0 * 5.0);
    }

    void roundingTakesTheTimeOfItsRate()
    {
        const ModelShape shape = smallShape(1);
        const StepPlan plan = planOf(shape, policyOf("resident"), 1);
        Feedback known = kUnitRates;
        StepForecaster forecaster;
        const double free =
            forecaster.forecast(plan, {shape, known, Precision::BF16, Recompute::Block})
                .computeSeconds;

        known.deviceGradientElementsPerSecond = 2.0;
        const double counted =
            forecaster.forecast(plan, {shape, known, Precision::BF16, Recompute::Block})
                .computeSeconds;

        QCOMPARE(counted - free, 3.0 * kGroupElements / 2.0);
    }
};

MR_TEST(TestCostModel)

} // namespace mr::test::tst_cost_model

#include "tst_cost_model.moc"
