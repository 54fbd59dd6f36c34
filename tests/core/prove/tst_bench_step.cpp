// The benchmark of whole steps: columns that add up, bytes as planned, the policy that fits.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/bench_step.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run_inputs.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <memory>
#include <numeric>

namespace mr::test::tst_bench_step {

namespace {

std::unique_ptr<Device> device(CpuDeviceOptions::Mode mode = CpuDeviceOptions::Mode::Inline)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.mode = mode;
    return std::move(makeCpuDevice(options).value());
}

StepBenchSpec specOf(const std::string& policy)
{
    StepBenchSpec spec;
    spec.name = "tiny";
    spec.config = tinyConfig(true);
    spec.seqLen = 16;
    spec.microBatch = 2;
    spec.accumulate = 2;
    spec.policy = policy;
    spec.precision = PrecisionChoice::F32;
    spec.recompute = RecomputeChoice::None;
    spec.steps = 3;
    spec.updateThreads = 1;
    return spec;
}

StepBenchReport run(Device& cpu, const StepBenchSpec& spec, ActivityTrace* trace = nullptr)
{
    auto report = runStepBench(cpu, spec, trace);
    if (!report.ok())
        qFatal("%s", report.status().message().c_str());
    return std::move(report).value();
}

// Counts nothing, but notices how it is used.
class EmptyTrace final : public ActivityTrace
{
public:
    Status begin() override
    {
        ++begun;
        return {};
    }
    Result<ActivityTotals> end() override
    {
        ++ended;
        return ActivityTotals{};
    }
    int begun = 0;
    int ended = 0;
};

} // namespace

class TestBenchStep : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theColumnsOfAStepAddUp_data();
    void theColumnsOfAStepAddUp();
    void recomputationIsNotCredited();
    void autoTakesTheFirstPolicyThatFits();
    void whatFitsNowhereSaysBothNumbers();
    void aSequenceLongerThanTheModelIsRefused();
    void cheapWeightsAreTheSameInEveryRunAndNoConstants();
    void tracedStepsAreCountedApart();
    void theBuiltInModelsHaveALimit();
};

void TestBenchStep::theColumnsOfAStepAddUp_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<bool>("threaded");
    QTest::addRow("resident") << "resident" << false;
    QTest::addRow("zero-offload, threaded") << "zero-offload" << true;
}

void TestBenchStep::theColumnsOfAStepAddUp()
{
    QFETCH(const QString, policy);
    QFETCH(const bool, threaded);
    const auto cpu =
        device(threaded ? CpuDeviceOptions::Mode::Threaded : CpuDeviceOptions::Mode::Inline);

    const StepBenchReport report = run(*cpu, specOf(policy.toStdString()));

    QCOMPARE(report.steps.size(), std::size_t{3});
    for (const StepRow& row : report.steps) {
        QVERIFY(row.wallUs > 0 && row.computeUs > 0);
        QCOMPARE(
            std::accumulate(row.stallUs.begin(), row.stallUs.end(), row.computeUs), row.wallUs);
        QVERIFY(std::isfinite(row.loss) && std::isfinite(row.gradNorm) && row.gradNorm > 0.0);
        QCOMPARE(row.tokens, std::int64_t{64});
    }
    QCOMPARE(report.policy, policy.toStdString());
    QCOMPARE(report.tokensPerStep, std::int64_t{64});
    QCOMPARE(report.peakDeviceBytes, report.plannedDeviceBytes);
    QCOMPARE(report.peakHostBytes, report.plannedHostBytes);
    QVERIFY(report.typical().h2dBytes > 0);
    QVERIFY(report.tokensPerSecond() > 0.0 && report.peakFlops > 0.0);
    QVERIFY(report.flopsPerSecond() > 0.0 && report.flopsPerSecond() < report.peakFlops);
}

void TestBenchStep::recomputationIsNotCredited()
{
    const auto cpu = device();
    StepBenchSpec spec = specOf("resident");
    const StepBenchReport without = run(*cpu, spec);
    spec.recompute = RecomputeChoice::Cheap;
    const StepBenchReport cheap = run(*device(), spec); // its peak is not that of another run
    spec.recompute = RecomputeChoice::Block;

    const StepBenchReport with = run(*cpu, spec);

    QCOMPARE(without.recompute, Recompute::None);
    QCOMPARE(cheap.recompute, Recompute::Cheap);
    QCOMPARE(with.recompute, Recompute::Block);
    QCOMPARE(cheap.steps.back().loss, without.steps.back().loss);
    QVERIFY(cheap.plannedDeviceBytes < without.plannedDeviceBytes);
    QVERIFY(with.plannedDeviceBytes < cheap.plannedDeviceBytes);
    QCOMPARE(cheap.peakDeviceBytes, cheap.plannedDeviceBytes);
    QCOMPARE(cheap.flopsPerStep, without.flopsPerStep);
    QCOMPARE(with.flopsPerStep, without.flopsPerStep);
    // 6 per token and weight of a product at least: every matrix but the looked-up embedding,
    // which is the head's too.
    const ModelConfig& c = spec.config;
    const std::int64_t block = c.hidden * (c.block.qkvColumns() + c.block.queryColumns()) +
                               3 * c.hidden * c.block.intermediate;
    const auto weights = static_cast<double>(c.layers * block + c.vocab * c.hidden);
    const double attention =
        6.0 * 64.0 * 16.0 * static_cast<double>(c.layers * c.block.queryColumns());
    QCOMPARE(with.flopsPerStep, 6.0 * 64.0 * weights + attention);
}

void TestBenchStep::autoTakesTheFirstPolicyThatFits()
{
    const auto cpu = device();
    StepBenchSpec spec = specOf("resident");
    const std::size_t needed = run(*cpu, spec).plannedDeviceBytes;
    spec.policy = "auto";
    spec.deviceMemoryBytes = needed;
    const StepBenchReport fits = run(*cpu, spec);
    spec.deviceMemoryBytes = needed - 1;

    const StepBenchReport tight = run(*cpu, spec);

    QCOMPARE(fits.policy, std::string("resident"));
    QCOMPARE(tight.policy, std::string("zero-offload"));
    QVERIFY(tight.plannedDeviceBytes < needed);
}

void TestBenchStep::whatFitsNowhereSaysBothNumbers()
{
    const auto cpu = device();
    StepBenchSpec spec = specOf("auto");
    spec.deviceMemoryBytes = 4096;

    const auto report = runStepBench(*cpu, spec);

    QVERIFY(!report.ok());
    QCOMPARE(report.status().kind(), ErrorKind::OutOfMemory);
    QVERIFY(report.status().message().find("4.0 KiB") != std::string::npos);
}

void TestBenchStep::aSequenceLongerThanTheModelIsRefused()
{
    const auto cpu = device();
    StepBenchSpec spec = specOf("resident");
    spec.seqLen = spec.config.maxPositions + 1;

    const auto report = runStepBench(*cpu, spec);

    QVERIFY(!report.ok());
    QCOMPARE(report.status().kind(), ErrorKind::InvalidArgument);
}

void TestBenchStep::cheapWeightsAreTheSameInEveryRunAndNoConstants()
{
    const auto cpu = device();
    const StepBenchSpec spec = specOf("resident");

    const StepBenchReport first = run(*cpu, spec);
    const StepBenchReport second = run(*cpu, spec);

    QCOMPARE(first.steps.front().loss, second.steps.front().loss);
    // A model that knows nothing is as unsure as its vocabulary is large.
    QVERIFY(std::abs(first.steps.front().loss - std::log(61.0)) < 0.5);
    QVERIFY(first.steps.front().loss != first.steps.back().loss); // it trains
}

void TestBenchStep::tracedStepsAreCountedApart()
{
    const auto cpu = device();
    EmptyTrace trace;

    const StepBenchReport report = run(*cpu, specOf("zero-offload"), &trace);

    QCOMPARE(trace.begun, 1);
    QCOMPARE(trace.ended, 1);
    QCOMPARE(report.steps.size(), std::size_t{3});
    QVERIFY(report.trace.has_value());
    QCOMPARE(report.trace->steps, 3);
    QCOMPARE(report.trace->h2dBytes, 3 * report.typical().h2dBytes);
    QVERIFY(report.trace->computeNs > 0);
}

void TestBenchStep::theBuiltInModelsHaveALimit()
{
    const auto specs = builtInStepBenches();

    QCOMPARE(specs.size(), std::size_t{4});
    for (const StepBenchSpec& spec : specs)
        QCOMPARE(spec.policy, std::string("resident"));
}

MR_TEST(TestBenchStep)

} // namespace mr::test::tst_bench_step

#include "tst_bench_step.moc"
