// Bytes that are more than the staging buffer holds, both ways.

#include "core/device/ops.h"
#include "core/step/blocking_copier.h"
#include "support/devices.h"
#include "support/test_room.h"

#include <QTest>

#include <numeric>
#include <utility>
#include <vector>

namespace mr::test::tst_blocking_copier {

namespace {

constexpr std::size_t kStaging = 48;
constexpr std::size_t kBytes = 1000; // not a multiple of it

std::vector<std::byte> someBytes()
{
    std::vector<std::byte> bytes(kBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i * 7 % 251);
    return bytes;
}

struct Rig {
    explicit Rig(Device& onDevice)
        : device(onDevice)
        , staging(std::move(device.allocate(kStaging, MemoryKind::PinnedHost, "staging")).value())
        , memory(std::move(device.allocate(kBytes, MemoryKind::Device, "memory")).value())
        , in(std::move(device.createStream("in")).value())
        , out(std::move(device.createStream("out")).value())
        , work(std::move(device.createStream("work")).value())
        , copier(std::move(BlockingCopier::create(device, {staging.data(), kStaging}, {*in, *out}))
                     .value())
    {
    }

    Device& device;
    Buffer staging;
    Buffer memory;
    std::unique_ptr<Stream> in;
    std::unique_ptr<Stream> out;
    std::unique_ptr<Stream> work;
    std::unique_ptr<BlockingCopier> copier;
};

} // namespace

class TestBlockingCopier : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void bytesComeBackAsTheyWent_data() { eachDevice(); }
    void bytesComeBackAsTheyWent();
    void aCopyBehindAStreamSeesItsWork_data() { eachDevice(); }
    void aCopyBehindAStreamSeesItsWork();

private:
    static void eachDevice();
};

void TestBlockingCopier::eachDevice()
{
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < devices().size(); ++i)
        QTest::newRow(devices()[i].name.c_str()) << static_cast<int>(i);
}

void TestBlockingCopier::bytesComeBackAsTheyWent()
{
    QFETCH(int, index);
    Rig rig(*devices()[static_cast<std::size_t>(index)].device);
    const std::vector<std::byte> sent = someBytes();
    std::vector<std::byte> read(kBytes);

    QVERIFY(rig.copier->toDevice(rig.memory.data(), sent).ok());
    QVERIFY(rig.copier->toHost(read, rig.memory.data()).ok());

    QCOMPARE(read, sent);
    QVERIFY(rig.copier->toHost({}, rig.memory.data()).ok());
}

void TestBlockingCopier::aCopyBehindAStreamSeesItsWork()
{
    QFETCH(int, index);
    Rig rig(*devices()[static_cast<std::size_t>(index)].device);
    const auto count = static_cast<std::int64_t>(kBytes / sizeof(float));
    std::vector<float> read(static_cast<std::size_t>(count));

    const TensorView values = vectorView(rig.memory.data(), DType::F32, count);
    QVERIFY(rig.device.ops().fill({values, 2.5F}, *rig.work).ok());
    const auto bytes = std::as_writable_bytes(std::span(read));
    QVERIFY(rig.copier->toHost(bytes, rig.memory.data(), *rig.work).ok());

    QCOMPARE(read, std::vector<float>(read.size(), 2.5F));
}

MR_TEST(TestBlockingCopier)

} // namespace mr::test::tst_blocking_copier

#include "tst_blocking_copier.moc"
