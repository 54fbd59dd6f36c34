// Nvml passes on the numbers of the driver's library; those that the library lacks are absent. The
// library is made up (fake_nvml.cpp): no test needs a GPU.

#include "core/base/nvml.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_nvml {

class TestNvml : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aMachineWithoutADriverHasNone() { QVERIFY(!Nvml::load("libmillrace-none.so.1")); }

    void aLibraryThatIsNotNvmlIsRefused() { QVERIFY(!Nvml::load("libm.so.6")); }

    void aDriverThatDoesNotStartIsNone() { QVERIFY(!Nvml::load(MR_FAKE_NVML_BROKEN)); }

    void everyNumberHasItsUnit()
    {
        const auto nvml = Nvml::load(MR_FAKE_NVML);
        QVERIFY(nvml);
        const Nvml::Gpu gpu = nvml->gpus().at(0);

        QCOMPARE(nvml->name(gpu), std::optional<std::string>("Test GPU 24 GB"));
        QCOMPARE(nvml->memory(gpu)->totalBytes, std::uint64_t{24'000});
        QCOMPARE(nvml->memory(gpu)->usedBytes, std::uint64_t{1'000});
        QCOMPARE(nvml->utilization(gpu)->computePercent, 87.0);
        QCOMPARE(nvml->utilization(gpu)->memoryPercent, 41.0);
        QCOMPARE(nvml->pcieReceivedBytesPerSecond(gpu), std::optional(12e6));
        QCOMPARE(nvml->pcieSentBytesPerSecond(gpu), std::optional(7e6));
        QCOMPARE(nvml->powerWatts(gpu), std::optional(215.5));
        QCOMPARE(nvml->temperatureCelsius(gpu), std::optional(61.0));
        QCOMPARE(nvml->smClockMhz(gpu), std::optional(1800.0));
        QCOMPARE(nvml->memoryClockMhz(gpu), std::optional(9500.0));
    }

    void aGpuThatDoesNotAnswerIsCountedAndEmpty()
    {
        const auto nvml = Nvml::load(MR_FAKE_NVML);

        QCOMPARE(nvml->gpus().size(), std::size_t{2});
        QVERIFY(nvml->gpus()[1] == nullptr);
    }

    void aGpuIsFoundByBusIdOrByName()
    {
        const auto nvml = Nvml::load(MR_FAKE_NVML);
        const Nvml::Gpu gpu = nvml->gpus().at(0);

        QCOMPARE(nvml->find("00000000:65:00.0"), gpu);
        QCOMPARE(nvml->find("Test GPU 24 GB"), gpu);
        QVERIFY(nvml->find("CPU (2 threads)") == nullptr);
        QVERIFY(nvml->find("") == nullptr);
    }

    void functionsThatAnOldDriverLacksAreAbsent()
    {
        const auto nvml = Nvml::load(MR_FAKE_NVML_OLD);
        QVERIFY(nvml);
        const Nvml::Gpu gpu = nvml->find("Test GPU 24 GB");
        QVERIFY(gpu != nullptr);

        QVERIFY(!nvml->memory(gpu));
        QVERIFY(!nvml->utilization(gpu));
        QVERIFY(!nvml->pcieReceivedBytesPerSecond(gpu));
        QVERIFY(!nvml->pcieSentBytesPerSecond(gpu));
        QVERIFY(!nvml->temperatureCelsius(gpu));
        QVERIFY(!nvml->smClockMhz(gpu));
        QVERIFY(!nvml->memoryClockMhz(gpu));
        QCOMPARE(nvml->powerWatts(gpu), std::optional(215.5));
    }
};

MR_TEST(TestNvml)

} // namespace mr::test::tst_nvml

#include "tst_nvml.moc"
