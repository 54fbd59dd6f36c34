// Rates are read off tasks: times made by known rates give them back.

#include "core/choose/rate_estimator.h"
#include "core/plan/cost_model.h"
#include "core/plan/plan_builder.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QtTest>

#include <cmath>
#include <vector>

namespace mr::test::tst_rate_estimator {

namespace {

Feedback truth()
{
    Feedback rates = mr::test::rates(2e6, 5e5, 1e6, 4e6);
    rates.deviceGradientElementsPerSecond = 8e6;
    rates.embedding = {0.001, 0.002, 0.0};
    rates.block = {0.004, 0.009, 0.0};
    rates.head = {0.0, 0.006, 0.0};
    return rates;
}

BuiltStep planOf(const ModelShape& shape, const char* share)
{
    const OffloadPolicy policy =
        policyWith("deep-optimizer-states", {{"device-share", share}, {"tile", "4KiB"}});
    Result<BuiltStep> built = buildPlan(specOf(1, 2), {}, shape, endless(), {}, policy);
    if (!built.ok())
        qFatal("%s", built.status().message().c_str());
    return std::move(built).value();
}

// The seconds of a pass; a task of no layer reads none.
const LayerSeconds& secondsOf(const Task& task, const ModelShape& shape, const Feedback& rates)
{
    if (task.group.value <= 0)
        return rates.embedding;
    const auto group = static_cast<std::size_t>(task.group.value);
    return task.group.value == shape.layers() - 1 ? rates.head
                                                  : rates.knownBlock(shape.groups[group].kind);
}

// Times of the tasks at `rates`, `slower` times as long.
std::vector<Interval> timesOf(
    const StepPlan& plan, const ModelShape& shape, const Feedback& rates, double slower = 1.0)
{
    std::vector<Interval> times;
    for (const Task& task : plan.tasks) {
        double seconds = 0.0;
        const auto elements = static_cast<double>(task.elementCount);
        const auto bytes = static_cast<double>(copyBytes(plan, task, shape, Precision::BF16));
        const LayerSeconds& layer = secondsOf(task, shape, rates);
        if (task.kind == TaskKind::Forward)
            seconds = layer.forward;
        else if (task.kind == TaskKind::Backward)
            seconds = layer.backward + layer.recompute;
        else if (task.kind == TaskKind::UpdateOnHost)
            seconds = elements / rates.hostAdamwElementsPerSecond;
        else if (task.kind == TaskKind::UpdateOnDevice)
            seconds = elements / rates.deviceAdamwElementsPerSecond;
        else if (task.kind == TaskKind::FinishGradient || task.kind == TaskKind::NormPart)
            seconds = 0.5 * elements / rates.deviceGradientElementsPerSecond;
        else if (task.lane == Lane::CopyIn)
            seconds = bytes / rates.hostToDeviceBytesPerSecond;
        else if (task.lane == Lane::CopyOut)
            seconds = bytes / rates.deviceToHostBytesPerSecond;
        times.push_back({1000, 1000 + std::llround(1e9 * slower * seconds)});
    }
    return times;
}

#define COMPARE_RATE(seen, wanted) QVERIFY2(std::abs((seen) - (wanted)) <= 1e-6 * (wanted), #seen)

} // namespace

class TestRateEstimator : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyRateIsReadOffTheTasksOfItsKind()
    {
        const ModelShape shape = smallShape(3);
        const BuiltStep step = planOf(shape, "0.5");
        RateEstimator estimator;

        estimator.read(step.plan, timesOf(step.plan, shape, truth()), {shape});

        const Feedback seen = estimator.rates({});
        COMPARE_RATE(seen.hostToDeviceBytesPerSecond, 2e6);
        COMPARE_RATE(seen.deviceToHostBytesPerSecond, 5e5);
        COMPARE_RATE(seen.hostAdamwElementsPerSecond, 1e6);
        COMPARE_RATE(seen.deviceAdamwElementsPerSecond, 4e6);
        COMPARE_RATE(seen.deviceGradientElementsPerSecond, 8e6);
        COMPARE_RATE(seen.embedding.forward, 0.001);
        COMPARE_RATE(seen.embedding.backward, 0.002);
        COMPARE_RATE(seen.block.forward, 0.004);
        COMPARE_RATE(seen.block.backward, 0.009);
        COMPARE_RATE(seen.head.backward, 0.006);
        QCOMPARE(seen.head.forward, 0.0); // a step has none
        QCOMPARE(estimator.steps(), 1);
    }

    // The copy of packed weights is no measure of the link: they are expanded in the same task.
    // One that no block is of stays as it was known.
    void everyKindOfBlockHasItsOwnSeconds()
    {
        ModelShape shape = smallShape(4);
        shape.groups[2].kind = shape.groups[4].kind = 1;
        Feedback known = truth();
        known.blockOf(1) = {0.04, 0.09, 0.0};
        const BuiltStep step = planOf(shape, "0.5");
        RateEstimator estimator;

        estimator.read(step.plan, timesOf(step.plan, shape, known), {shape});

        const Feedback seen = estimator.rates({});
        COMPARE_RATE(seen.knownBlock(0).forward, 0.004);
        COMPARE_RATE(seen.knownBlock(0).backward, 0.009);
        COMPARE_RATE(seen.knownBlock(1).forward, 0.04);
        COMPARE_RATE(seen.knownBlock(1).backward, 0.09);
        Feedback before;
        before.blockOf(2) = {5.0, 6.0, 7.0};
        QCOMPARE(estimator.rates(before).knownBlock(2).backward, 6.0);
        QCOMPARE(estimator.rates(before).otherBlocks[2].forward, 0.0);
        estimator.clear();
        QCOMPARE(estimator.rates({}).knownBlock(1).forward, 0.0);
    }

    void packedWeightsHaveARateOfTheirOwn()
    {
        ModelShape shape = smallShape(3);
        for (GroupShape& group : shape.groups)
            group.frozenElements = kGroupElements;
        for (std::size_t g = 1; g < 4; ++g)
            shape.groups[g].packedBytes = kGroupElements / 2;
        shape.groups[0].elements = shape.groups[4].elements = 0;
        const OffloadPolicy policy = policyWith("streamed", {});
        Result<BuiltStep> built = buildPlan(specOf(1, 2), {}, shape, endless(), {}, policy);
        QVERIFY(built.ok());
        const StepPlan& plan = built.value().plan;
        std::vector<Interval> times = timesOf(plan, shape, truth());
        for (std::size_t i = 0; i < times.size(); ++i)
            if (plan.tasks[i].kind == TaskKind::FetchFrozen)
                times[i].endNs = times[i].beginNs + std::llround(1e9 * kGroupElements / 5e5);
        RateEstimator estimator;
        estimator.read(plan, times, {shape});

        Feedback seen = estimator.rates({});
        COMPARE_RATE(seen.packedElementsPerSecond, 5e5);
        QCOMPARE(seen.hostToDeviceBytesPerSecond, 0.0); // there are no other copies
        seen.hostToDeviceBytesPerSecond = 2e6;
        StepForecaster forecaster;
        const auto seconds = [&] {
            return forecaster.forecast(plan, {shape, seen, Precision::BF16, Recompute::None})
                .stepSeconds;
        };
        const double slow = seconds();
        seen.packedElementsPerSecond = 0.0; // as its copy
        QVERIFY(slow > 1.05 * seconds());
    }

    // Steps that keep some activations on the host show both kinds of backward. Their difference is
    // the recompute time and replaces the earlier value.
    void whatRecomputingAddsIsSeenWhereSomeIsKept()
    {
        const ModelShape shape = smallShape(3);
        const OffloadPolicy policy = policyWith("streamed", {{"activations-on-host", "0.5"}});
        Result<BuiltStep> built = buildPlan(specOf(1, 3), {}, shape, endless(), {}, policy);
        QVERIFY(built.ok());
        const StepPlan& plan = built.value().plan;
        Feedback rates = truth();
        rates.block.recompute = 0.004;
        std::vector<Interval> times = timesOf(plan, shape, rates);
        int kept = 0;
        for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
            if (plan.tasks[i].kind != TaskKind::Backward || !plan.keepsActivations(plan.tasks[i]))
                continue;
            times[i].endNs = times[i].beginNs + 9'000'000;
            ++kept;
        }
        QCOMPARE(kept, 3 * 2); // two of three micro-batches
        RateEstimator estimator;

        estimator.read(plan, times, {shape, Precision::BF16, Recompute::Block});

        Feedback known;
        known.block = {0.0, 0.0, 0.1};
        const Feedback seen = estimator.rates(known);
        COMPARE_RATE(seen.block.backward, 0.009);
        COMPARE_RATE(seen.block.recompute, 0.004);
        estimator.clear();
        QCOMPARE(estimator.rates(known).block.recompute, 0.1);
    }

    // A forward of a block has 100 flops, its backward 200, so their flops per second differ; the
    // median is one of the two.
    void flopsAreThoseOfBlocks()
    {
        const ModelShape shape = smallShape(3);
        const BuiltStep step = planOf(shape, "0.5");
        RateEstimator estimator;

        estimator.read(step.plan, timesOf(step.plan, shape, truth()), {shape});

        const double flops = estimator.rates({}).deviceFlopsPerSecond;
        QVERIFY(std::abs(flops - 100 / 0.004) < 1.0 || std::abs(flops - 200 / 0.009) < 1.0);
    }

    void whatWasNotSeenStaysAsItWasKnown()
    {
        const ModelShape shape = smallShape(3);
        const BuiltStep step = planOf(shape, "0"); // nothing visits
        Feedback known;
        known.deviceAdamwElementsPerSecond = 123.0;
        known.hostAdamwElementsPerSecond = 456.0;
        known.head.forward = 7.0;
        known.diskReadBytesPerSecond = 8.0; // a measurement of its own says
        known.diskWriteBytesPerSecond = 9.0;
        known.diskReadAloneBytesPerSecond = 10.0;
        known.diskWriteAloneBytesPerSecond = 11.0;
        RateEstimator estimator;

        estimator.read(step.plan, timesOf(step.plan, shape, truth()), {shape});

        const Feedback seen = estimator.rates(known);
        QCOMPARE(seen.deviceAdamwElementsPerSecond, 123.0);
        QCOMPARE(seen.head.forward, 7.0);
        QCOMPARE(seen.diskReadBytesPerSecond, 8.0);
        QCOMPARE(seen.diskWriteBytesPerSecond, 9.0);
        QCOMPARE(seen.diskReadAloneBytesPerSecond, 10.0);
        QCOMPARE(seen.diskWriteAloneBytesPerSecond, 11.0);
        COMPARE_RATE(seen.hostAdamwElementsPerSecond, 1e6);
    }

    void aDisturbedStepDoesNotCount()
    {
        const ModelShape shape = smallShape(3);
        const BuiltStep step = planOf(shape, "0.5");
        RateEstimator estimator;

        for (const double slower : {1.0, 50.0, 1.0})
            estimator.read(step.plan, timesOf(step.plan, shape, truth(), slower), {shape});

        const Feedback seen = estimator.rates({});
        COMPARE_RATE(seen.hostToDeviceBytesPerSecond, 2e6);
        COMPARE_RATE(seen.hostAdamwElementsPerSecond, 1e6);
        COMPARE_RATE(seen.block.backward, 0.009);
    }

    void cheapRecomputationIsNotCountedTwice()
    {
        const ModelShape shape = smallShape(3);
        const BuiltStep step = planOf(shape, "0.5");
        RateEstimator estimator;
        estimator.read(step.plan, timesOf(step.plan, shape, truth()),
            {shape, Precision::BF16, Recompute::Cheap});
        Feedback known;
        known.block.recompute = 0.003; // of no part here
        const LayerSeconds all = estimator.rates(known).block;
        known.block.cheap = 0.001;
        const LayerSeconds part = estimator.rates(known).block;
        known.block.cheap = 0.5;
        const LayerSeconds impossible = estimator.rates(known).block;

        COMPARE_RATE(all.backward, 0.009);
        QCOMPARE(all.recompute, 0.003);
        COMPARE_RATE(part.backward, 0.008);
        QCOMPARE(part.cheap, 0.001);
        COMPARE_RATE(impossible.backward, 0.009);
        QCOMPARE(impossible.cheap, 0.0);
        QCOMPARE(estimator.rates({}).deviceFlopsPerSecond, 0.0);
    }

    // An update of 26 bytes takes 1/4e6 s; three bytes move for each of 52,000.
    void cheapSecondsThatNobodyMeasuredFollowFromUpdates()
    {
        ModelShape shape = smallShape(3);
        shape.remadeBytesPerBlock = 52'000;
        COMPARE_RATE(estimatedCheapSeconds(shape, truth()), 3.0 * 52'000.0 / (26.0 * 4e6));
        QCOMPARE(estimatedCheapSeconds(shape, {}), 0.0);
    }

    void recomputationIsNotCountedTwice()
    {
        const ModelShape shape = smallShape(3);
        const BuiltStep step = planOf(shape, "0.5");
        Feedback is = truth();
        is.block.recompute = 0.003;
        const std::vector<Interval> times = timesOf(step.plan, shape, is);
        RateEstimator estimator;
        estimator.read(step.plan, times, {shape, Precision::BF16, Recompute::Block});

        const LayerSeconds all = estimator.rates({}).block; // recompute time is not known
        Feedback known;
        known.block.recompute = 0.003;
        const LayerSeconds part = estimator.rates(known).block;
        known.block.recompute = 0.5;
        const LayerSeconds impossible = estimator.rates(known).block;

        COMPARE_RATE(all.backward, 0.012);
        QCOMPARE(all.recompute, 0.0);
        COMPARE_RATE(part.backward, 0.009);
        QCOMPARE(part.recompute, 0.003);
        COMPARE_RATE(impossible.backward, 0.012);
        QCOMPARE(impossible.recompute, 0.0);
        QCOMPARE(
            estimator.rates({}).deviceFlopsPerSecond, 0.0); // flops of recomputing are not known
    }

    void smallCopiesCountWhereThereAreNoOthers()
    {
        ModelShape shape = smallShape(3);
        shape.batchBytes = 1 << 20; // fetched in a tenth of the time that the others' rate says
        const BuiltStep step = planOf(shape, "0.5");
        std::vector<Interval> times = timesOf(step.plan, shape, truth());
        for (std::size_t i = 0; i < times.size(); ++i)
            if (step.plan.tasks[i].kind == TaskKind::FetchBatch)
                times[i].endNs = 1000 + (times[i].endNs - 1000) / 10;
        RateEstimator estimator;

        estimator.read(step.plan, times, {shape});

        COMPARE_RATE(estimator.rates({}).hostToDeviceBytesPerSecond, 2e7);
    }

    void theNewestTasksTakeThePlaceOfTheOldest()
    {
        RateSamples samples;
        for (int i = 0; i < 4096; ++i)
            samples.add(1.0, 1.0);
        QCOMPARE(samples.median(), 1.0);

        for (int i = 0; i < 2100; ++i)
            samples.add(3.0, 1.0);

        QCOMPARE(samples.median(), 3.0);
        samples.clear();
        QCOMPARE(samples.median(), 0.0);
        QCOMPARE(samples.rate(), 0.0);
        samples.add(0.0, 1.0); // a task that did not run
        QCOMPARE(samples.rate(), 0.0);
    }

    void aClearedSheetKnowsNothing()
    {
        const ModelShape shape = smallShape(3);
        const BuiltStep step = planOf(shape, "0.5");
        RateEstimator estimator;
        estimator.read(step.plan, timesOf(step.plan, shape, truth()), {shape});

        estimator.clear();

        QCOMPARE(estimator.steps(), 0);
        const Feedback seen = estimator.rates({});
        for (const double rate : {seen.hostToDeviceBytesPerSecond, seen.deviceToHostBytesPerSecond,
                 seen.hostAdamwElementsPerSecond, seen.deviceAdamwElementsPerSecond,
                 seen.deviceGradientElementsPerSecond, seen.deviceFlopsPerSecond,
                 seen.embedding.forward, seen.block.backward, seen.head.backward})
            QCOMPARE(rate, 0.0);
    }
};

MR_TEST(TestRateEstimator)

} // namespace mr::test::tst_rate_estimator

#include "tst_rate_estimator.moc"
