// Plans with more jobs than the executor and the pool hold at once.

#include "core/device/cpu/cpu_device.h"
#include "core/optim/host_updater.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run.h"
#include "support/test_room.h"
#include "support/wrapped_device.h"

#include <QtTest>

#include <algorithm>
#include <memory>

namespace mr::test::tst_step_executor {

namespace {

std::unique_ptr<Device> threadedDevice()
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{256} << 20;
    options.threads = 2;
    options.mode = CpuDeviceOptions::Mode::Threaded;
    return std::move(makeCpuDevice(options)).value();
}

// Wide layers: 1.2 M parameters, so more than 1,024 of the smallest tiles.
TinyRun manyTiles(const std::string& policy)
{
    TinyRun run;
    run.config.block.intermediate = 5000;
    run.policy = policy;
    run.compute = DType::BF16;
    run.seqLen = 8;
    run.microBatch = 1;
    run.accumulate = 1;
    run.steps = 2;
    return run;
}

} // namespace

class TestStepExecutor : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aPlanWithMoreHostJobsThanThePoolHoldsEnds_data();
    void aPlanWithMoreHostJobsThanThePoolHoldsEnds();
    void aBlockLeavesItsSumToTheNextNormWhereNobodyElseReadsIt_data();
    void aBlockLeavesItsSumToTheNextNormWhereNobodyElseReadsIt();
};

void TestStepExecutor::aPlanWithMoreHostJobsThanThePoolHoldsEnds_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<bool>("exact");
    QTest::newRow("zero-offload") << "zero-offload" << true;
    QTest::newRow("zenflow") << "zenflow" << false;
}

// A full pool blocks the thread that adds a job, and the device begins on command only.
void TestStepExecutor::aPlanWithMoreHostJobsThanThePoolHoldsEnds()
{
    QFETCH(QString, policy);
    QFETCH(bool, exact);
    const auto device = threadedDevice();
    TinyRun run = manyTiles(policy.toStdString());
    auto large = runTiny(*device, run);
    QVERIFY2(large.ok(), large.status().message().c_str());
    run.options["tile"] = "2KiB";
    const ParamTable table = buildParamTable(run.config);
    QVERIFY(table.parameters / kCutElements > static_cast<std::int64_t>(HostUpdater::kMaxJobs));

    auto small = runTiny(*device, run);

    QVERIFY2(small.ok(), small.status().message().c_str());
    if (exact)
        QCOMPARE(small.value().weightsHash, large.value().weightsHash);
}

void TestStepExecutor::aBlockLeavesItsSumToTheNextNormWhereNobodyElseReadsIt_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("order");
    QTest::addColumn<QString>("boundary");
    QTest::addColumn<bool>("leaves");
    QTest::newRow("the next layer comes next") << "resident"
                                               << "by-microbatch"
                                               << "" << true;
    QTest::newRow("another micro-batch comes next") << "resident"
                                                    << "by-layer"
                                                    << "" << false;
    QTest::newRow("weights are copied between") << "streamed"
                                                << "by-microbatch"
                                                << "device" << true;
    QTest::newRow("the sum is copied away") << "streamed"
                                            << "by-microbatch"
                                            << "host" << false;
}

void TestStepExecutor::aBlockLeavesItsSumToTheNextNormWhereNobodyElseReadsIt()
{
    QFETCH(const QString, policy);
    QFETCH(const QString, order);
    QFETCH(const QString, boundary);
    QFETCH(const bool, leaves);
    const auto cpu = threadedDevice();
    RecordingDevice device(*cpu);
    TinyRun run;
    run.policy = policy.toStdString();
    run.options["order"] = order.toStdString();
    if (!boundary.isEmpty())
        run.options["boundary"] = boundary.toStdString();
    run.accumulate = 3;
    run.steps = 1;

    const auto result = runTiny(device, run);

    QVERIFY2(result.ok(), result.status().message().c_str());
    const auto adds = std::count(device.lines().begin(), device.lines().end(), "compute: add");
    QCOMPARE(static_cast<std::int64_t>(adds), leaves ? 0 : 3 * run.config.layers);
}

MR_TEST(TestStepExecutor)

} // namespace mr::test::tst_step_executor

#include "tst_step_executor.moc"
