#include "core/device/cpu/cpu_device.h"
#include "support/test_room.h"
#include "support/wrapped_device.h"

#include <QTest>

#include <algorithm>

namespace mr::test::tst_wrapped_device {

namespace {

Status fillAndCopy(Device& device)
{
    auto in = device.createStream("copy-in");
    auto compute = device.createStream("compute");
    auto event = device.createEvent();
    auto gate = device.createGate("updates");
    auto floats = device.allocate(16, MemoryKind::Device, "weights");
    auto host = device.allocate(16, MemoryKind::PinnedHost, "batch");
    for (const Status& status : {in.status(), compute.status(), event.status(), gate.status(),
             floats.status(), host.status()})
        MR_TRY(status);
    const TensorView view = vectorView(floats.value().data(), DType::F32, 4);
    MR_TRY(in.value()->waitFor(*gate.value(), 0));
    MR_TRY(in.value()->copy(view.data, {host.value().data(), 16}));
    MR_TRY(in.value()->record(*event.value()));
    MR_TRY(compute.value()->waitFor(*event.value()));
    MR_TRY(device.ops().fill({view, 2.0F}, *compute.value()));
    device.submit();
    return event.value()->wait();
}

} // namespace

class TestWrappedDevice : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void recordingWritesEveryCallDown()
    {
        auto cpu = makeCpuDevice(1024);
        RecordingDevice device(*cpu);

        QVERIFY(fillAndCopy(device).ok());

        const std::vector<std::string> expected{
            "create stream copy-in",
            "create stream compute",
            "create event",
            "create gate updates",
            "allocate 16 bytes of weights",
            "allocate 16 bytes of batch",
            "copy-in: wait updates 0",
            "copy-in: copy 16 bytes",
            "copy-in: record e0",
            "compute: wait e0",
            "compute: fill",
            "submit",
        };
        for (std::size_t i = 0; i < std::min(expected.size(), device.lines().size()); ++i)
            QCOMPARE(device.lines()[i], expected[i]);
        QCOMPARE(device.lines().size(), expected.size());
    }

    void countingCountsAllocationsAndEnqueues()
    {
        auto cpu = makeCpuDevice(1024);
        CountingDevice device(*cpu);
        QVERIFY(fillAndCopy(device).ok());
        QCOMPARE(device.allocations(), std::uint64_t{2});
        QCOMPARE(device.enqueued(), std::uint64_t{5});
    }

    void failingRefusesExactlyTheCallItWasTold()
    {
        auto cpu = makeCpuDevice(1024);
        for (std::uint64_t call = 1; call <= 11; ++call) {
            FailingDevice device(*cpu, call, ErrorKind::OutOfMemory);
            const Status status = fillAndCopy(device);
            QVERIFY(!status.ok());
            QCOMPARE(status.kind(), ErrorKind::OutOfMemory);
        }
        FailingDevice none(*cpu, 12, ErrorKind::OutOfMemory);
        QVERIFY(fillAndCopy(none).ok());
        QCOMPARE(none.calls(), std::uint64_t{11});
    }
};

MR_TEST(TestWrappedDevice)

} // namespace mr::test::tst_wrapped_device

#include "tst_wrapped_device.moc"
