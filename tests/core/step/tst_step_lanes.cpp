// Which task waits for which: the waits that lanes can express, and those they refuse.

#include "core/base/failure_latch.h"
#include "core/device/cpu/cpu_device.h"
#include "core/step/step_lanes.h"
#include "support/test_room.h"

#include <QTest>

#include <initializer_list>
#include <memory>
#include <utility>

namespace mr::test::tst_step_lanes {

namespace {

void add(StepPlan& plan, Lane lane, std::initializer_list<Wait> waits = {})
{
    Task task;
    task.lane = lane;
    task.firstWait = static_cast<std::uint32_t>(plan.waits.size());
    task.waitCount = static_cast<std::uint16_t>(waits.size());
    plan.waits.insert(plan.waits.end(), waits);
    plan.tasks.push_back(task);
}

struct Rig {
    Rig()
        : lanes(std::move(StepLanes::create(*device, updater.get(), nullptr)).value())
    {
    }
    ~Rig() { updater.reset(); } // its jobs point to gates of the lanes

    // A task on a stream that does nothing.
    Status pass(TaskIndex index)
    {
        MR_TRY(lanes->begin(plan, index));
        return lanes->end(plan, index);
    }

    FailureLatch latch;
    std::unique_ptr<Device> device = std::move(makeCpuDevice(CpuDeviceOptions{})).value();
    std::unique_ptr<HostUpdater> updater = std::make_unique<HostUpdater>(1, latch);
    std::unique_ptr<StepLanes> lanes;
    StepPlan plan;
};

} // namespace

class TestStepLanes : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aHostTaskRunsBetweenTwoStreams();
    void aHostTaskThatWaitsForTwoStreamsIsRefused();
    void aCarriedTaskIsUnfinished();
    void aDiskTaskNeedsADisk();
};

void TestStepLanes::aHostTaskRunsBetweenTwoStreams()
{
    Rig rig;
    add(rig.plan, Lane::CopyOut);
    add(rig.plan, Lane::Host, {Wait::onTask(0)});
    add(rig.plan, Lane::CopyIn, {Wait::onTask(1)});
    QVERIFY(rig.lanes->prepare(rig.plan).ok());

    HostUpdateJob nothing;
    const StepScalars scalars;
    nothing.scalars = &scalars;

    QVERIFY(rig.pass(0).ok());
    QVERIFY(rig.lanes->submitToHost(rig.plan, 1, nothing).ok());
    QVERIFY(rig.pass(2).ok());
    QVERIFY(rig.lanes->awaitAll(rig.plan).ok());

    const Interval sent = rig.lanes->intervalOf(rig.plan, 0);
    const Interval host = rig.lanes->intervalOf(rig.plan, 1);
    const Interval fetched = rig.lanes->intervalOf(rig.plan, 2);
    QVERIFY(sent.endNs <= host.endNs);
    QVERIFY(host.endNs <= fetched.endNs);
}

void TestStepLanes::aHostTaskThatWaitsForTwoStreamsIsRefused()
{
    Rig rig;
    add(rig.plan, Lane::Compute);
    add(rig.plan, Lane::CopyOut);
    add(rig.plan, Lane::Host, {Wait::onTask(0), Wait::onTask(1)});
    QVERIFY(rig.lanes->prepare(rig.plan).ok());
    QVERIFY(rig.pass(0).ok());
    QVERIFY(rig.pass(1).ok());

    QCOMPARE(rig.lanes->submitToHost(rig.plan, 2, {}).kind(), ErrorKind::Internal);
    rig.lanes->drain();
}

void TestStepLanes::aCarriedTaskIsUnfinished()
{
    Rig rig;
    add(rig.plan, Lane::Compute, {Wait::onCarried(0)});
    add(rig.plan, Lane::Host, {Wait::onCarried(0)});
    QVERIFY(rig.lanes->prepare(rig.plan).ok());

    QCOMPARE(rig.lanes->begin(rig.plan, 0).kind(), ErrorKind::Internal);
    QCOMPARE(rig.lanes->submitToHost(rig.plan, 1, {}).kind(), ErrorKind::Internal);
}

void TestStepLanes::aDiskTaskNeedsADisk()
{
    Rig rig;
    add(rig.plan, Lane::DiskIn);
    QVERIFY(rig.lanes->prepare(rig.plan).ok());

    QCOMPARE(rig.lanes->submitToDisk(rig.plan, 0).kind(), ErrorKind::Internal);
}

MR_TEST(TestStepLanes)

} // namespace mr::test::tst_step_lanes

#include "tst_step_lanes.moc"
