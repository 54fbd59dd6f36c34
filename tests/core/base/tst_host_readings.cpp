// /proc and /sys are read as the kernel writes them, whole, cut and missing.

#include "core/base/host_folder.h"
#include "core/base/host_readings.h"
#include "support/test_room.h"

#include <QTest>

#include <unistd.h>

namespace mr::test::tst_host_readings {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

} // namespace

class TestHostReadings : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void waitingForTheDiskIsIdleAndGuestsAreCountedOnce()
    {
        const auto ticks = parseCpuTicks(kStat);

        QVERIFY(ticks.has_value());
        QCOMPARE(ticks->total, std::uint64_t{10'000}); // without the 70 of guests
        QCOMPARE(ticks->busy, std::uint64_t{1'700});
    }

    void anOldKernelHasFewerFields()
    {
        QCOMPARE(parseCpuTicks("cpu  10 20 30 40\n")->total, std::uint64_t{100});
    }

    void textThatIsNoStatIsRefused_data()
    {
        QTest::addColumn<QByteArray>("text");
        for (const char* text : {"", "cpu", "cpu  ", "cpu  1 2", "cpu0 1 2 3 4", "intr 1 2 3 4 5"})
            QTest::newRow(text) << QByteArray(text);
    }

    void textThatIsNoStatIsRefused()
    {
        QFETCH(const QByteArray, text);

        QVERIFY(!parseCpuTicks(text.toStdString()));
        QVERIFY(!parseProcessStat(text.toStdString()));
    }

    void theNameOfAProcessMayHoldAnything()
    {
        const auto process = parseProcessStat(processStat(100));

        QVERIFY(process.has_value());
        QCOMPARE(process->cpuTicks, std::uint64_t{140});
        QCOMPARE(process->residentPages, std::uint64_t{2500});
    }

    void aProcessStatThatIsCutIsRefused()
    {
        const std::string whole = processStat(100);
        for (const std::size_t bytes : {5U, 17U, 19U, 30U, 80U})
            QVERIFY(!parseProcessStat(std::string_view(whole).substr(0, bytes)));
    }

    void sharesAreOfTheTimeBetweenTwoLooks()
    {
        HostFolder host;
        host.writeBasics();
        HostProbe probe(host.root());
        const HostNumbers first = probe.read(kSecond);
        host.write("proc/stat", kStatLater);
        host.write("proc/self/stat", processStat(340));

        const HostNumbers second = probe.read(2 * kSecond);

        QVERIFY(!first.cpuPercent && !first.processPercent);
        QCOMPARE(second.cpuPercent, std::optional(75.0));
        QCOMPARE(second.processPercent, std::optional(40.0)); // 240 of 600 ticks
        QCOMPARE(*second.residentBytes, 2500.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
        QCOMPARE(second.availableBytes, std::optional(8'192'000.0 * 1024.0));
    }

    void aMachineWithMoreMemoryThanAtFirstSaysSo()
    {
        HostFolder host;
        host.writeBasics();
        HostProbe probe(host.root());
        (void)probe.read(kSecond);
        host.write("proc/meminfo", "MemTotal: 98566144 kB\nMemAvailable: 90000000 kB\n");

        QCOMPARE(probe.read(2 * kSecond).availableBytes, std::optional(90'000'000.0 * 1024.0));
    }

    void aMachineWithoutSensorsHasNoTemperatureAndNoPower()
    {
        HostFolder host;
        host.writeBasics();
        host.write("sys/class/hwmon/hwmon0/name", "nvme\n");
        host.write("sys/class/hwmon/hwmon0/temp1_input", "38000\n");
        HostProbe probe(host.root());
        (void)probe.read(kSecond);

        const HostNumbers numbers = probe.read(2 * kSecond);

        QVERIFY(!numbers.temperatureCelsius);
        QVERIFY(!numbers.powerWatts);
    }

    void theTemperatureIsThatOfThePackage()
    {
        HostFolder host;
        host.write("sys/class/hwmon/hwmon1/name", "coretemp\n");
        host.write("sys/class/hwmon/hwmon1/temp1_label", "Core 0\n");
        host.write("sys/class/hwmon/hwmon1/temp1_input", "40000\n");
        host.write("sys/class/hwmon/hwmon1/temp2_label", "Package id 0\n");
        host.write("sys/class/hwmon/hwmon1/temp2_input", "52500\n");

        QCOMPARE(HostProbe(host.root()).read(kSecond).temperatureCelsius, std::optional(52.5));
    }

    void aThermalZoneServesWhereThereIsNoSensor()
    {
        HostFolder host;
        host.write("sys/class/thermal/thermal_zone0/type", "acpitz\n");
        host.write("sys/class/thermal/thermal_zone0/temp", "27800\n");
        host.write("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
        host.write("sys/class/thermal/thermal_zone1/temp", "47000\n");

        QCOMPARE(HostProbe(host.root()).read(kSecond).temperatureCelsius, std::optional(47.0));
    }

    void powerIsTheEnergyOfAllPackagesOverTheTime()
    {
        HostFolder host;
        const auto package = [&host](int index, const char* name, const char* energy) {
            const std::string folder = "sys/class/powercap/intel-rapl:" + std::to_string(index);
            host.write(folder + "/name", name);
            host.write(folder + "/energy_uj", energy);
            host.write(folder + "/max_energy_range_uj", "1000000000");
        };
        package(0, "package-0", "5000000");
        package(1, "package-1", "999000000");
        package(2, "psys", "1");
        HostProbe probe(host.root());
        QVERIFY(!probe.read(kSecond).powerWatts);
        package(0, "package-0", "65000000"); // 60 J
        package(1, "package-1", "39000000"); // starts again: 40 J
        package(2, "psys", "900000000");

        QCOMPARE(probe.read(3 * kSecond).powerWatts, std::optional(50.0));
    }

    void anEmptyMachineSaysNothing()
    {
        HostFolder host;
        HostProbe probe(host.root());
        (void)probe.read(kSecond);

        const HostNumbers numbers = probe.read(2 * kSecond);

        QVERIFY(!numbers.cpuPercent && !numbers.processPercent && !numbers.residentBytes);
        QVERIFY(!numbers.availableBytes && !numbers.temperatureCelsius && !numbers.powerWatts);
    }
};

MR_TEST(TestHostReadings)

} // namespace mr::test::tst_host_readings

#include "tst_host_readings.moc"
