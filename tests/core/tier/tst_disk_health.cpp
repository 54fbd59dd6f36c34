// DiskHealth: the SMART log by its offsets, and drives of a made-up /sys.

#include "core/base/host_folder.h"
#include "core/base/host_readings.h"
#include "core/tier/disk_health.h"
#include "support/test_room.h"

#include <QtTest>

#include <array>
#include <limits>

namespace mr::test::tst_disk_health {

namespace fs = std::filesystem;

namespace {

using Log = std::array<std::byte, kSmartLogBytes>;

void put(Log& log, std::size_t at, std::size_t count, std::uint64_t value)
{
    for (std::size_t i = 0; i < count; ++i, value >>= 8)
        log.at(at + i) = static_cast<std::byte>(value);
}

// An NVMe drive with two partitions, as /sys has it: links into devices/.
struct Host {
    Host()
    {
        folder.write(kDisk + "/size", "4000797360\n"); // a 2 TB drive
        folder.write(kDisk + "/nvme1n1p2/partition", "2\n");
        folder.write(kDisk + "/nvme1n1p2/size", "2048\n");
        folder.write("dev/nvme1n1", "no device");
        link("sys/class/block/nvme1n1", kDisk);
        link("sys/class/block/nvme1n1p2", kDisk + "/nvme1n1p2");
        link(kDisk + "/device", kController);
    }

    // Maps dm-0 to the named devices.
    void map(const std::vector<std::string>& below) const
    {
        folder.write("sys/devices/virtual/dm-0/size", "1024\n");
        link("sys/class/block/dm-0", "sys/devices/virtual/dm-0");
        for (const std::string& name : below)
            link("sys/devices/virtual/dm-0/slaves/" + name, "sys/class/block/" + name);
    }

    void link(const std::string& name, const std::string& target) const
    {
        fs::create_directories((folder.root() / name).parent_path());
        fs::create_directories(folder.root() / target);
        fs::create_directory_symlink(folder.root() / target, folder.root() / name);
    }

    DiskHealth read(std::string_view device) const { return readDiskHealth(device, folder.root()); }

    // Not named like the drive: numbers of controllers and of drives are counted apart.
    const std::string kController = "sys/devices/pci/nvme/nvme0";
    const std::string kDisk = kController + "/nvme1n1";
    mr::test::HostFolder folder;
};

} // namespace

class TestDiskHealth : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void theLogIsReadAtItsOffsets()
    {
        Log log;
        log.fill(std::byte{0xFF}); // the bytes not put below must not be read
        put(log, 1, 2, 273 + 41);
        put(log, 5, 1, 103);
        put(log, 32, 16, 3);
        put(log, 48, 16, 70'000'000); // 35.84 TB
        put(log, 160, 16, 2);
        put(log, 40, 8, 0);
        put(log, 56, 8, 0);
        put(log, 168, 8, 0);

        const SmartCounters counters = parseSmartLog(log);

        QCOMPARE(counters.temperatureCelsius, 41.0);
        QCOMPARE(counters.percentUsed, 103);
        QCOMPARE(counters.readBytes, std::uint64_t{3 * 512'000});
        QCOMPARE(counters.writtenBytes, std::uint64_t{35'840'000'000'000});
        QCOMPARE(counters.mediaErrors, std::uint64_t{2});
    }

    void aCounterBeyondSixtyFourBitsIsTheLargest()
    {
        constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
        Log log{};
        put(log, 40, 8, 1);                   // the upper half
        put(log, 48, 8, kMost / 512'000 + 1); // its product is too large

        const SmartCounters counters = parseSmartLog(log);

        QCOMPARE(counters.readBytes, kMost);
        QCOMPARE(counters.writtenBytes, kMost);
    }

    void aPartitionIsOfItsDrive()
    {
        const Host host;

        for (const char* device : {"nvme1n1", "nvme1n1p2"}) {
            const DiskHealth health = host.read(device);
            QCOMPARE(health.drive, std::string("nvme1n1"));
            QCOMPARE(health.driveBytes, std::uint64_t{4000797360} * 512);
            QVERIFY(!health.temperatureCelsius);
        }
    }

    void aMapperIsOfTheOneDriveBelowIt()
    {
        const Host host;
        host.map({"nvme1n1p2"});

        QCOMPARE(host.read("dm-0").drive, std::string("nvme1n1"));
    }

    void aMapperOverSeveralDrivesIsOfNone()
    {
        const Host host;
        host.link("sys/class/block/sdb", "sys/devices/sdb");
        host.map({"nvme1n1p2", "sdb"});

        const DiskHealth health = host.read("dm-0");

        QVERIFY(health.drive.empty());
        QVERIFY(!health.why.empty());
    }

    void theTemperatureIsFoundWhereAKernelPutsIt_data()
    {
        QTest::addColumn<QString>("sensor");
        QTest::newRow("controller") << "sys/devices/pci/nvme/nvme0/hwmon3";
        QTest::newRow("controller, own folder") << "sys/devices/pci/nvme/nvme0/hwmon/hwmon3";
        QTest::newRow("its device") << "sys/devices/pci/nvme/nvme0/device/hwmon/hwmon3";
        QTest::newRow("a path of several") << "sys/devices/pci/nvme/nvme0/nvme7/hwmon3";
    }
    void theTemperatureIsFoundWhereAKernelPutsIt()
    {
        QFETCH(QString, sensor);
        const Host host;
        host.folder.write(sensor.toStdString() + "/temp1_input", "38850\n");

        const DiskHealth health = host.read("nvme1n1p2");

        QCOMPARE(health.temperatureCelsius.value_or(0.0), 38.85);
        const fs::path found = driveSensor("nvme1n1p2", host.folder.root());
        QCOMPARE(readTemperature(found).value_or(0.0), 38.85);
        fs::remove(found);
        QVERIFY(!readTemperature(found)); // and nothing else is found:
        QCOMPARE(driveSensor("nvme1n1p2", host.folder.root()), fs::path());
    }

    // The node is a plain file: it is asked, and knows no such command.
    void withoutCountersItSaysWhy()
    {
        const Host host;
        host.link("sys/class/block/sda", "sys/devices/sda");

        const DiskHealth nvme = host.read("nvme1n1");
        const DiskHealth sata = host.read("sda");
        fs::remove(host.folder.root() / "dev/nvme1n1");
        const DiskHealth gone = host.read("nvme1n1");

        QVERIFY(!nvme.counters && nvme.why.find("nvme1n1 cannot be read") != std::string::npos);
        QVERIFY(nvme.why != gone.why);
        QVERIFY(!sata.counters && sata.why.find("sda is no NVMe drive") != std::string::npos);
        QCOMPARE(sata.driveBytes, std::uint64_t{0});
    }

    void anUnknownDeviceHasNothing()
    {
        const Host host;

        for (const char* device : {"", "nvme9n1"}) {
            const DiskHealth health = host.read(device);
            QVERIFY(health.drive.empty() && health.driveBytes == 0 && !health.counters);
            QVERIFY(!health.why.empty());
        }
    }
};

MR_TEST(TestDiskHealth)

} // namespace mr::test::tst_disk_health

#include "tst_disk_health.moc"
