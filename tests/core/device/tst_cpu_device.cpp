// Memory, copies and failures of the CPU device, in both modes.

#include "core/base/clock.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/cpu_stream.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <cstring>

Q_DECLARE_METATYPE(mr::CpuDeviceOptions::Mode)

namespace mr::test::tst_cpu_device {

namespace {

std::unique_ptr<Device> makeDevice(
    CpuDeviceOptions::Mode mode, std::size_t bytes, double bytesPerSecond = 0.0)
{
    CpuDeviceOptions options;
    options.memoryBytes = bytes;
    options.mode = mode;
    options.linkBytesPerSecond = bytesPerSecond;
    return makeCpuDevice(options).value();
}

Status finish(Device& device, Stream& stream)
{
    auto event = device.createEvent().value();
    MR_TRY(stream.record(*event));
    device.submit();
    return event->wait();
}

} // namespace

class TestCpuDevice : public QObject
{
    Q_OBJECT

    static void addModes()
    {
        QTest::addColumn<CpuDeviceOptions::Mode>("mode");
        QTest::newRow("inline") << CpuDeviceOptions::Mode::Inline;
        QTest::newRow("threaded") << CpuDeviceOptions::Mode::Threaded;
    }

private Q_SLOTS:

    void optionsThatCannotWorkAreRefused()
    {
        CpuDeviceOptions options;
        options.threads = 0;
        QCOMPARE(makeCpuDevice(options).status().kind(), ErrorKind::InvalidArgument);
        options.threads = 1;
        options.linkBytesPerSecond = -1.0;
        QCOMPARE(makeCpuDevice(options).status().kind(), ErrorKind::InvalidArgument);
    }

    void theBudgetCountsWhatWasAskedForToTheByte()
    {
        auto cpu = makeCpuDevice(1000);
        Buffer a = cpu->allocate(600, MemoryKind::Device, "weights").value();
        {
            Buffer b = cpu->allocate(400, MemoryKind::Device, "slots").value();
            Buffer pinned = cpu->allocate(5000, MemoryKind::PinnedHost, "batch").value();
            auto refused = cpu->allocate(1, MemoryKind::Device, "one more");
            QVERIFY(!refused.ok());
            QCOMPARE(refused.status().kind(), ErrorKind::OutOfMemory);
            QVERIFY(refused.status().message().find("one more") != std::string::npos);
        }
        const MemoryUsage usage = cpu->memoryUsage();

        QCOMPARE(usage.deviceBytes, std::size_t{600});
        QCOMPARE(usage.devicePeakBytes, std::size_t{1000});
        QCOMPARE(usage.pinnedBytes, std::size_t{0});
        QCOMPARE(usage.pinnedPeakBytes, std::size_t{5000});
        QCOMPARE(usage.allocations, std::size_t{3});
        QVERIFY(cpu->allocate(400, MemoryKind::Device, "again").ok());
    }

    void memoryIsZeroedAlignedAndNotAliased()
    {
        auto cpu = makeCpuDevice(std::size_t{8} << 20);
        std::vector<Buffer> buffers;
        std::vector<std::uintptr_t> pageOffsets;
        for (int i = 0; i < 4; ++i) {
            buffers.push_back(
                cpu->allocate(std::size_t{1} << 20, MemoryKind::Device, "state").value());
            const auto address = reinterpret_cast<std::uintptr_t>(buffers.back().data());
            QCOMPARE(address % 64, std::uintptr_t{0});
            pageOffsets.push_back(address % 4096);
            QVERIFY(std::all_of(buffers.back().data(), buffers.back().data() + (1 << 20),
                [](std::byte b) { return b == std::byte{0}; }));
        }
        std::sort(pageOffsets.begin(), pageOffsets.end());
        QVERIFY(std::adjacent_find(pageOffsets.begin(), pageOffsets.end()) == pageOffsets.end());
    }

    void copiesTakeOnlyMemoryOfTheDevice_data() { addModes(); }

    void copiesTakeOnlyMemoryOfTheDevice()
    {
        QFETCH(const CpuDeviceOptions::Mode, mode);
        auto cpu = makeDevice(mode, 64);
        auto stream = cpu->createStream("copy").value();
        Buffer device = cpu->allocate(64, MemoryKind::Device, "x").value();
        Buffer pinned = cpu->allocate(64, MemoryKind::PinnedHost, "x").value();
        std::array<std::byte, 64> other{};

        QVERIFY(stream->copy(device.data(), {pinned.data(), 64}).ok());
        QVERIFY(stream->copy(device.data() + 32, {pinned.data(), 32}).ok());
        QVERIFY(stream->copy(device.data(), {pinned.data(), 0}).ok());
        const Status pageable = stream->copy(device.data(), other);
        const Status pastTheEnd = stream->copy(device.data() + 33, {pinned.data(), 32});

        QCOMPARE(pageable.kind(), ErrorKind::InvalidArgument);
        QVERIFY(pageable.message().find("source") != std::string::npos);
        QCOMPARE(pastTheEnd.kind(), ErrorKind::InvalidArgument);
        QVERIFY(pastTheEnd.message().find("target") != std::string::npos);
        QVERIFY(finish(*cpu, *stream).ok());
    }

    void bytesGoToTheDeviceAndBack_data() { addModes(); }

    void bytesGoToTheDeviceAndBack()
    {
        QFETCH(const CpuDeviceOptions::Mode, mode);
        auto cpu = makeDevice(mode, 64);
        auto stream = cpu->createStream("copy").value();
        Buffer device = cpu->allocate(64, MemoryKind::Device, "x").value();
        Buffer pinned = cpu->allocate(128, MemoryKind::PinnedHost, "x").value();
        for (std::size_t i = 0; i < 64; ++i)
            pinned.data()[i] = static_cast<std::byte>(i);

        QVERIFY(stream->copy(device.data(), {pinned.data(), 64}).ok());
        QVERIFY(stream->copy(pinned.data() + 64, {device.data(), 64}).ok());
        QVERIFY(finish(*cpu, *stream).ok());

        QCOMPARE(std::memcmp(pinned.data(), pinned.data() + 64, 64), 0);
    }

    void aLinkRateIsAFloorForTheTimeOfACopyAndIsLabelled_data() { addModes(); }

    void aLinkRateIsAFloorForTheTimeOfACopyAndIsLabelled()
    {
        QFETCH(const CpuDeviceOptions::Mode, mode);
        constexpr std::size_t kBytes = 1'000'000;
        constexpr double kRate = 100e6; // 10 ms for each copy
        auto cpu = makeDevice(mode, kBytes, kRate);
        auto in = cpu->createStream("in").value();
        Buffer device = cpu->allocate(kBytes, MemoryKind::Device, "x").value();
        Buffer pinned = cpu->allocate(kBytes, MemoryKind::PinnedHost, "x").value();

        const std::int64_t begin = nowNs();
        QVERIFY(in->copy(device.data(), {pinned.data(), kBytes}).ok());
        QVERIFY(in->copy(device.data(), {pinned.data(), kBytes}).ok());
        QVERIFY(finish(*cpu, *in).ok());

        QVERIFY(nowNs() - begin >= 20'000'000);
        QVERIFY(cpu->info().simulatedLink);
        QCOMPARE(cpu->info().copyBytesPerSecond, kRate);
        QVERIFY(!makeDevice(mode, 0)->info().simulatedLink);
    }

    void aFailureInEnqueuedWorkLosesTheDevice_data() { addModes(); }

    void aFailureInEnqueuedWorkLosesTheDevice()
    {
        QFETCH(const CpuDeviceOptions::Mode, mode);
        auto cpu = makeDevice(mode, 0);
        auto stream = cpu->createStream("compute").value();
        auto other = cpu->createStream("copy").value();
        auto& closures = static_cast<CpuStream&>(*stream);
        int ran = 0;

        QVERIFY(
            closures.enqueue([] { return Status::error(ErrorKind::Internal, "a kernel failed"); })
                .ok());
        QVERIFY(closures.enqueue([&ran] { ++ran; }).ok());
        const Status first = finish(*cpu, *stream);
        const Status second = finish(*cpu, *other);

        QCOMPARE(first.kind(), ErrorKind::DeviceLost);
        QVERIFY(first.message().find("a kernel failed") != std::string::npos);
        QCOMPARE(second.kind(), ErrorKind::DeviceLost);
        QCOMPARE(ran, 0);
    }

    void runningOutOfMemoryInEnqueuedWorkIsAFailureToo_data() { addModes(); }

    void runningOutOfMemoryInEnqueuedWorkIsAFailureToo()
    {
        QFETCH(const CpuDeviceOptions::Mode, mode);
        auto cpu = makeDevice(mode, 0);
        auto stream = cpu->createStream("compute").value();

        QVERIFY(static_cast<CpuStream&>(*stream).enqueue([] { throw std::bad_alloc(); }).ok());

        QCOMPARE(finish(*cpu, *stream).kind(), ErrorKind::DeviceLost);
    }

    void infoSaysWhatTheDeviceDoes()
    {
        const auto inlined = makeDevice(CpuDeviceOptions::Mode::Inline, 7);
        const auto threaded = makeDevice(CpuDeviceOptions::Mode::Threaded, 7);
        QVERIFY(!inlined->info().asynchronous);
        QVERIFY(!inlined->info().waitsForGates);
        QVERIFY(threaded->info().asynchronous);
        QVERIFY(threaded->info().waitsForGates);
        QCOMPARE(threaded->info().memoryBytes, std::size_t{7});
        QVERIFY(!threaded->info().instructionSet.empty());
    }
};

MR_TEST(TestCpuDevice)

} // namespace mr::test::tst_cpu_device

#include "tst_cpu_device.moc"
