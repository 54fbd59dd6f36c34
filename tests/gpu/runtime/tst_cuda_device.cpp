// How the CUDA device opens, over the fake runtime: what is on the card before a stream can wait at
// a gate, what the device says of itself, and one sentence where there is no card to open.

#include "gpu/cuda_device.h"
#include "gpu/cuda_ops.h"
#include "gpu/kernel_image.h"
#include "gpu/kernel_list.h"
#include "gpu/runtime/fake_cublaslt.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"

#include <QTest>

#include <memory>
#include <string>

namespace mr::gpu {

// In place of what nvcc compiles. No test here runs an op.
std::unique_ptr<Ops> makeCudaOps(Gemm&, const AttentionChoice&, FailureHook)
{
    return nullptr;
}

Status checkKernelImage(std::string_view)
{
    return {};
}

} // namespace mr::gpu

namespace mr::test::tst_cuda_device {

using namespace mr::gpu;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Kernels of the program, as a launcher lists them.
const int g_kernels[3] = {};
const bool g_areListed = addToKernelList({&g_kernels[0], "[with Kernel = first]"}) &&
                         addToKernelList({&g_kernels[1], "[with Kernel = second]"}) &&
                         addToKernelList({&g_kernels[2], "[with Kernel = third]"});

Result<std::unique_ptr<Device>> opened(std::size_t memoryBytes = 64 * kMiB)
{
    CudaDeviceOptions options;
    options.memoryBytes = memoryBytes;
    return makeCudaDevice(options);
}

bool refusesWith(const Result<std::unique_ptr<Device>>& device, ErrorKind kind, const char* words)
{
    if (device.ok())
        return false;
    const Status& said = device.status();
    if (said.kind() == kind && said.message().find(words) != std::string::npos)
        return true;
    qWarning("\"%s\" is not in: %s", words, said.message().c_str());
    return false;
}

} // namespace

class TestCudaDevice : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        test::resetFakeCard();
        test::fakeCublasLt() = {};
    }

    void everyKernelIsLoadedBeforeThereIsAStream()
    {
        QVERIFY(g_areListed);
        QVERIFY(listedKernels().size() >= 3);
        auto device = opened();
        QVERIFY2(device.ok(), device.status().message().c_str());
        QCOMPARE(test::fakeCard().kernelsLoaded, listedKernels().size());
        QCOMPARE(test::fakeCard().kernelsLoadedLate, std::size_t{0});
    }

    void itSaysWhatItIs()
    {
        auto device = opened();
        QVERIFY(device.ok());
        const DeviceInfo& info = device.value()->info();
        QCOMPARE(info.name, std::string("Fake Card"));
        QCOMPARE(info.memoryBytes, std::size_t{1} << 30);
        QCOMPARE(info.instructionSet, std::string("sm_90 cublasLt 13.0.2"));
        QVERIFY(info.asynchronous);
        QVERIFY(info.loadsLazily);
        QVERIFY(info.picksAlgorithms);
        QVERIFY(info.waitsForGates);
        QVERIFY(!info.simulatedLink);
    }

    void theHostWaitsForGatesWhereTheDriverCannot()
    {
        test::fakeCard().waitsForValues = false;
        QVERIFY(!opened().value()->info().waitsForGates);
    }

    void theHostWaitsForGatesWhereLaunchesAreSerialised_data()
    {
        QTest::addColumn<QByteArray>("value");
        QTest::newRow("CUDA_LAUNCH_BLOCKING") << QByteArray("1");
        QTest::newRow("CUDA_DEVICE_MAX_CONNECTIONS") << QByteArray("1");
    }

    void theHostWaitsForGatesWhereLaunchesAreSerialised()
    {
        QFETCH(const QByteArray, value);
        const char* variable = QTest::currentDataTag();
        qputenv(variable, value);
        auto device = opened();
        qunsetenv(variable);
        QVERIFY(device.ok());
        QVERIFY(!device.value()->info().waitsForGates);
    }

    void itLeavesNothingBehind()
    {
        auto device = opened();
        QVERIFY(device.ok());
        QVERIFY(test::fakeCard().streams > 0);
        {
            auto stream = device.value()->createStream("work");
            auto event = device.value()->createEvent();
            auto gate = device.value()->createGate("gate");
            auto buffer = device.value()->allocate(kMiB, MemoryKind::Device, "test");
            QVERIFY(stream.ok() && event.ok() && gate.ok() && buffer.ok());
        }
        device.value().reset();
        QCOMPARE(test::fakeCard().streams, std::size_t{0});
        QCOMPARE(test::fakeCard().events, std::size_t{0});
        QCOMPARE(test::fakeCard().allocations, std::size_t{0});
        QCOMPARE(test::fakeCard().registrations, std::size_t{0});
    }

    void aBudgetBeyondTheCardIsRefused()
    {
        QVERIFY(refusesWith(opened(std::size_t{2} << 30), ErrorKind::OutOfMemory,
            "is more than Fake Card has, 1.0 GiB; give a smaller --device-memory"));
    }

    void aMachineWithoutADriverIsToldOneSentence()
    {
        test::fakeCard().countAnswer = cudaErrorInsufficientDriver;
        test::fakeCard().driverVersion = 0;
        QVERIFY(refusesWith(opened(), ErrorKind::InvalidArgument,
            "device cuda: there is no NVIDIA driver on this machine; install NVIDIA driver"));
        test::fakeCard().driverVersion = 11040;
        QVERIFY(refusesWith(opened(), ErrorKind::InvalidArgument,
            "the NVIDIA driver is too old: it knows CUDA 11.4"));
        test::fakeCard().countAnswer = cudaErrorNoDevice;
        QVERIFY(refusesWith(
            opened(), ErrorKind::InvalidArgument, "the NVIDIA driver sees no GPU; check that"));
        QCOMPARE(test::fakeCard().kernelsLoaded, std::size_t{0});
    }

    void aBrokenCardIsAnErrorOfItsFirstCall()
    {
        test::fakeCard().failEverything = cudaErrorECCUncorrectable;
        QVERIFY(refusesWith(opened(), ErrorKind::DeviceLost, "cudaFuncGetAttributes of first"));
    }
};

MR_TEST_WITH_APP(TestCudaDevice)

} // namespace mr::test::tst_cuda_device

#include "tst_cuda_device.moc"
