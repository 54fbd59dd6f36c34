// What a card changes about a spec. The card is that of a fake plugin: 8 GiB, 6 GiB of them free,
// compute capability 7.5, so without bf16.

#include "app/compose.h"
#include "support/test_room.h"

#include <QTest>

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

mr::RunSpec specOn(mr::DeviceChoice device)
{
    mr::RunSpec spec;
    spec.device = device;
    return spec;
}

} // namespace

class TestCompose : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        qputenv("MILLRACE_CUDA_PLUGIN", MR_FAKE_PLUGINS "/libfake_plugin_good.so");
    }

    void autoTakesTheCardAndWhatItHas()
    {
        auto spec = mr::app::completeForMachine(specOn(mr::DeviceChoice::Auto));
        QVERIFY2(spec.ok(), spec.status().message().c_str());
        QVERIFY(spec.value().device == mr::DeviceChoice::Cuda);
        QCOMPARE(spec.value().deviceMemoryBytes, 6 * kGiB - kGiB / 2);
        QVERIFY(spec.value().precision == mr::PrecisionChoice::F32);
    }

    void whatTheUserChoseStays()
    {
        mr::RunSpec asked = specOn(mr::DeviceChoice::Cuda);
        asked.deviceMemoryBytes = kGiB;
        asked.precision = mr::PrecisionChoice::F32;
        auto spec = mr::app::completeForMachine(asked);
        QVERIFY(spec.ok());
        QCOMPARE(spec.value().deviceMemoryBytes, kGiB);
        QVERIFY(spec.value().precision == mr::PrecisionChoice::F32);

        auto onCpu = mr::app::completeForMachine(specOn(mr::DeviceChoice::Cpu));
        QVERIFY(onCpu.ok());
        QVERIFY(onCpu.value().device == mr::DeviceChoice::Cpu);
        QCOMPARE(onCpu.value().deviceMemoryBytes, std::uint64_t{0});
    }

    void whatOnlyTheCpuDeviceHasMeansTheCpuDevice()
    {
        mr::RunSpec asked = specOn(mr::DeviceChoice::Auto);
        asked.linkBytesPerSecond = 1e9;
        auto spec = mr::app::completeForMachine(asked);
        QVERIFY(spec.ok());
        QVERIFY(spec.value().device != mr::DeviceChoice::Cuda);
    }

    void bf16OnACardWithoutItIsRefused()
    {
        mr::RunSpec asked = specOn(mr::DeviceChoice::Cuda);
        asked.precision = mr::PrecisionChoice::BF16;
        const auto spec = mr::app::completeForMachine(asked);
        QVERIFY(!spec.ok());
        QVERIFY(spec.status().kind() == mr::ErrorKind::InvalidArgument);
        QVERIFY(spec.status().message().find("Invented GPU (compute capability 7.5)") !=
                std::string::npos);
    }

    void inferenceTakesTheCardIfItHasTheRoom()
    {
        auto onCard = mr::app::makeInferenceDevice({mr::DeviceChoice::Auto, 4096});
        QVERIFY(onCard.ok());
        QCOMPARE(onCard.value()->info().memoryBytes, std::size_t{4096});
        QVERIFY(mr::app::makeInferenceDevice({mr::DeviceChoice::Auto, 7 * kGiB}).ok());
        const auto bf16 =
            mr::app::makeInferenceDevice({mr::DeviceChoice::Cuda, 4096, 0, mr::DType::BF16});
        QVERIFY(bf16.status().message().find("no bf16 arithmetic") != std::string::npos);
    }
};

MR_TEST_WITH_APP(TestCompose)
#include "tst_compose.moc"
