// The facts a card gives about itself, over a fake runtime: its free memory is what runs can have
// of it.

#include "gpu/cublaslt_gemm.h"
#include "gpu/cuda_facts.h"
#include "gpu/kernel_list.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"

#include <QTest>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace mr::test::tst_cuda_facts {

using namespace mr::gpu;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

CudaFacts factsNow()
{
    auto facts = inspectCuda();
    if (!facts.ok())
        qFatal("%s", facts.status().message().c_str());
    return std::move(facts).value();
}

std::size_t freeBytesNow()
{
    std::size_t left = 0;
    std::size_t all = 0;
    (void)cudaMemGetInfo(&left, &all);
    return left;
}

} // namespace

class TestCudaFacts : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // tst_cuda_device.cpp lists kernels of its own.
    void initTestCase() { QVERIFY(!listedKernels().empty()); }

    void init() { test::resetFakeCard(); }

    void freeMemoryIsWithoutKernelsAndWorkspace_data()
    {
        QTest::addColumn<int>("computeMajor");
        QTest::addColumn<int>("workspace"); // MiB
        QTest::newRow("sm_80") << 8 << 32;
        QTest::newRow("sm_90") << 9 << 64;
    }

    void freeMemoryIsWithoutKernelsAndWorkspace()
    {
        QFETCH(const int, computeMajor);
        QFETCH(const int, workspace);
        fakeCard().computeMajor = computeMajor;
        fakeCard().kernelBytes = 3 * kMiB;

        const CudaFacts facts = factsNow();

        QCOMPARE(facts.totalBytes, std::uint64_t{1024 * kMiB});
        const std::uint64_t kernels = 3 * listedKernels().size();
        QCOMPARE(facts.freeBytes, (1024 - kernels - static_cast<std::uint64_t>(workspace)) * kMiB);
        QCOMPARE(factsNow().freeBytes, facts.freeBytes); // kernels are loaded once
    }

    void aDeviceThatIsOpenLeavesThoseBytes()
    {
        fakeCard().kernelBytes = 3 * kMiB;
        const CudaFacts facts = factsNow();
        CudaFailure failure;

        const auto gemm = makeCublasLtGemm(facts, failure);

        QVERIFY(gemm.ok());
        QCOMPARE(freeBytesNow(), static_cast<std::size_t>(facts.freeBytes));
    }

    void aCardWithoutRoomForTheWorkspaceHasNothingFree()
    {
        fakeCard().memoryBytes = 40 * kMiB;

        QCOMPARE(factsNow().freeBytes, std::uint64_t{0});
    }
};

MR_TEST(TestCudaFacts)

} // namespace mr::test::tst_cuda_facts

#include "tst_cuda_facts.moc"
