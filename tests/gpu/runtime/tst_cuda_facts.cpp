// What a card says about itself, over a fake runtime: its free memory is what runs can have of it.

#include "gpu/cublaslt_gemm.h"
#include "gpu/cuda_facts.h"
#include "gpu/kernel_image.h"
#include "gpu/kernel_list.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"

#include <QTest>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace mr::gpu {

// The empty kernel's place.
Status checkKernelImage(std::string_view)
{
    return {};
}

} // namespace mr::gpu

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
    void initTestCase()
    {
        static const char kernel = 0;
        QVERIFY(addToKernelList(&kernel)); // nothing else is on the list here
    }

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
        QCOMPARE(facts.freeBytes, (1024 - 3 - static_cast<std::uint64_t>(workspace)) * kMiB);
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
