// The fake runtime hands launches to a machine that runs kernels, and reports its failures.

#include "gpu/cuda_failure.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"

#include <QTest>

#include <cstddef>
#include <string>
#include <vector>

namespace mr::test::tst_kernel_machine {

namespace {

// Writes down what it is told; fails as a test says.
class Listener final : public KernelMachine
{
public:
    void onAllocated(const void*, std::size_t bytes, bool isWritten) override
    {
        lines.push_back("allocated " + std::to_string(bytes) + (isWritten ? " written" : ""));
    }
    void onFreed(const void*, std::size_t bytes) override
    {
        lines.push_back("freed " + std::to_string(bytes));
    }
    void onWritten(const void*, std::size_t bytes) override
    {
        lines.push_back("written " + std::to_string(bytes));
    }
    Work launch(const cudaLaunchConfig_t&, const void*, void** arguments) override
    {
        return [this, number = *static_cast<int*>(arguments[0])] {
            lines.push_back("ran " + std::to_string(number));
            return failure;
        };
    }

    std::vector<std::string> lines;
    std::string failure;
};

const int g_kernel = 0;

cudaError_t launch(cudaStream_t stream, int number, std::size_t sharedBytes = 0)
{
    cudaLaunchConfig_t config{};
    config.stream = stream;
    config.dynamicSmemBytes = sharedBytes;
    void* arguments[] = {&number};
    return cudaLaunchKernelExC(&config, &g_kernel, arguments);
}

} // namespace

class TestKernelMachine : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        resetFakeCard();
        m_machine = Listener();
        fakeCard().machine = &m_machine;
        QVERIFY(cudaStreamCreateWithFlags(&m_stream, cudaStreamNonBlocking) == cudaSuccess);
    }

    void cleanup()
    {
        (void)cudaStreamDestroy(m_stream);
        resetFakeCard();
    }

    void itHearsOfMemoryAndOfWritesInTheirTurn()
    {
        using Lines = std::vector<std::string>;
        alignas(16) std::byte host[64] = {};
        void* data = nullptr;
        QVERIFY(cudaHostRegister(host, sizeof host, 0) == cudaSuccess);
        QVERIFY(cudaMalloc(&data, 100) == cudaSuccess);
        QVERIFY(cudaMemsetAsync(data, 0, 50, m_stream) == cudaSuccess);
        QVERIFY(cudaMemcpyAsync(data, host, 60, cudaMemcpyHostToDevice, m_stream) == cudaSuccess);
        QCOMPARE(m_machine.lines, (Lines{"allocated 64 written", "allocated 100"}));

        QVERIFY(cudaStreamSynchronize(m_stream) == cudaSuccess);
        QVERIFY(cudaFree(data) == cudaSuccess);
        QVERIFY(cudaHostUnregister(host) == cudaSuccess);

        QCOMPARE(m_machine.lines, (Lines{"allocated 64 written", "allocated 100", "written 50",
                                      "written 60", "freed 100", "freed 64"}));
    }

    void aKernelRunsInTheTurnOfItsStreamWithTheArgumentsOfItsLaunch()
    {
        QVERIFY(launch(m_stream, 7) == cudaSuccess);
        QVERIFY(m_machine.lines.empty());
        QVERIFY(launch(nullptr, 8) == cudaSuccess);
        QCOMPARE(m_machine.lines.back(), std::string("ran 8"));

        QVERIFY(cudaStreamSynchronize(m_stream) == cudaSuccess);

        QCOMPARE(m_machine.lines.back(), std::string("ran 7"));
    }

    void aKernelThatFailsLosesTheDeviceWithItsWords()
    {
        m_machine.failure = "byte 5 of weights";
        QVERIFY(launch(m_stream, 1) == cudaSuccess);
        gpu::CudaFailure failure;

        const Status waited = failure.check(cudaStreamSynchronize(m_stream), "work on the card");

        QVERIFY(waited.kind() == ErrorKind::DeviceLost);
        QVERIFY(waited.message().find("byte 5 of weights") != std::string::npos);
        QVERIFY(launch(m_stream, 2) == cudaErrorLaunchFailure);
    }

    void sharedMemoryBeyondTheDefaultIsAskedFor()
    {
        const auto ask = [](int bytes) {
            return cudaFuncSetAttribute(
                &g_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        };
        QVERIFY(launch(m_stream, 1, 48 * 1024) == cudaSuccess);
        QVERIFY(launch(m_stream, 1, 48 * 1024 + 1) == cudaErrorInvalidValue);
        QVERIFY(ask(64 * 1024) == cudaSuccess);
        QVERIFY(launch(m_stream, 1, 64 * 1024) == cudaSuccess);
        QVERIFY(ask(100 * 1024) == cudaErrorInvalidValue);
    }

private:
    Listener m_machine;
    cudaStream_t m_stream = nullptr;
};

MR_TEST(TestKernelMachine)

} // namespace mr::test::tst_kernel_machine

#include "tst_kernel_machine.moc"
