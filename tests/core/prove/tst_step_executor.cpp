// Plans with more jobs than the executor and the pool hold at once.

#include "core/device/cpu/cpu_device.h"
#include "core/optim/host_updater.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run.h"
#include "support/test_room.h"

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
    run.config.intermediate = 5000;
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

MR_TEST(TestStepExecutor)

} // namespace mr::test::tst_step_executor

#include "tst_step_executor.moc"
