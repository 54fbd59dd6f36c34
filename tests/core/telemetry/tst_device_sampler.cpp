// One look at the machine, and the thread that takes one each second.

#include "core/base/host_folder.h"
#include "core/telemetry/device_sampler.h"
#include "support/test_room.h"

#include <QTest>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace mr::test::tst_device_sampler {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// Collects the samples of the sampler's thread; the test waits for them.
class Samples
{
public:
    DeviceSampler::Sink sink()
    {
        return [this](const MachineSample& sample) {
            const std::lock_guard lock(m_mutex);
            m_samples.push_back(sample);
            m_changed.notify_all();
        };
    }

    bool waitFor(std::size_t count)
    {
        std::unique_lock lock(m_mutex);
        return m_changed.wait_for(lock, 30s, [&] { return m_samples.size() >= count; });
    }

    std::vector<MachineSample> all()
    {
        const std::lock_guard lock(m_mutex);
        return m_samples;
    }

private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::vector<MachineSample> m_samples;
};

DeviceSamplerOptions withFakeDriver(const HostFolder& host)
{
    DeviceSamplerOptions options;
    options.runBegan = Clock::now();
    options.device = "Test GPU 24 GB";
    options.nvmlLibrary = MR_FAKE_NVML;
    options.root = host.root();
    return options;
}

} // namespace

class TestDeviceSampler : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aSampleHasAllThatTheMachineSays()
    {
        HostFolder host;
        host.writeBasics();
        const DeviceSamplerOptions options = withFakeDriver(host);
        MachineProbe probe(options);
        (void)probe.read(options.runBegan);
        host.write("proc/stat", kStatLater);
        host.write("proc/self/stat", processStat(340));

        const MachineSample sample = probe.read(options.runBegan + 3s);

        QCOMPARE(sample.timeMs, 3000);
        QCOMPARE(sample[MachineMetric::DeviceUtilization], std::optional(87.0));
        QCOMPARE(sample[MachineMetric::DeviceMemoryUtilization], std::optional(41.0));
        QCOMPARE(sample[MachineMetric::DeviceMemoryUsed], std::optional(1000.0));
        QCOMPARE(sample[MachineMetric::DevicePcieReceived], std::optional(12e6));
        QCOMPARE(sample[MachineMetric::DevicePcieSent], std::optional(7e6));
        QCOMPARE(sample[MachineMetric::DevicePower], std::optional(215.5));
        QCOMPARE(sample[MachineMetric::DeviceTemperature], std::optional(61.0));
        QCOMPARE(sample[MachineMetric::DeviceSmClock], std::optional(1800.0));
        QCOMPARE(sample[MachineMetric::DeviceMemoryClock], std::optional(9500.0));
        QCOMPARE(sample[MachineMetric::HostCpu], std::optional(75.0));
        QCOMPARE(sample[MachineMetric::ProcessCpu], std::optional(40.0));
        QVERIFY(sample[MachineMetric::ProcessResident].has_value());
        QVERIFY(sample[MachineMetric::HostMemoryAvailable].has_value());
        QVERIFY(!sample[MachineMetric::HostTemperature] && !sample[MachineMetric::HostPower]);
        QVERIFY(!sample[MachineMetric::DiskTemperature]);
    }

    void theWarmestDriveOfTheRunCounts()
    {
        HostFolder host;
        host.writeBasics();
        host.write("cool", "38850\n");
        host.write("warm", "71850\n");
        DeviceSamplerOptions options = withFakeDriver(host);
        for (const char* sensor : {"cool", "warm", "silent"})
            options.driveSensors.push_back(host.root() / sensor);
        MachineProbe probe(options);

        QCOMPARE(
            probe.read(options.runBegan)[MachineMetric::DiskTemperature], std::optional(71.85));
    }

    void aGpuThatTheRunDoesNotUseIsNotSampled()
    {
        HostFolder host;
        host.writeBasics();
        DeviceSamplerOptions options = withFakeDriver(host);
        options.device = "CPU (2 threads)";

        const MachineSample sample = MachineProbe(options).read(options.runBegan + 1s);

        for (std::size_t i = 0; i < kMachineMetrics; ++i)
            QVERIFY(!kMachineMetricInfos[i].name.starts_with("device.") || !sample.values[i]);
        QVERIFY(sample[MachineMetric::HostMemoryAvailable].has_value());
    }

    void aMachineWithoutADriverIsSampledToo()
    {
        HostFolder host;
        host.writeBasics();
        DeviceSamplerOptions options = withFakeDriver(host);
        options.nvmlLibrary = "libmillrace-none.so.1";

        const MachineSample sample = MachineProbe(options).read(options.runBegan + 1s);

        QVERIFY(!sample[MachineMetric::DeviceUtilization]);
        QVERIFY(sample[MachineMetric::ProcessResident].has_value());
    }

    void samplesFallOnSecondsOfTheRun()
    {
        HostFolder host;
        host.writeBasics();
        DeviceSamplerOptions options = withFakeDriver(host);
        options.runBegan = Clock::now() - 12'345ms; // resumed: its earlier life took 12 s
        Samples samples;
        const auto sampler = DeviceSampler::start(options, samples.sink());

        QVERIFY(samples.waitFor(2));
        sampler->stop();

        const auto all = samples.all();
        QVERIFY(all[0].timeMs >= 13'000);
        QVERIFY(all[1].timeMs / 1000 > all[0].timeMs / 1000); // a place of its own for each
    }

    void nothingComesAfterStop()
    {
        HostFolder host;
        Samples samples;
        const auto sampler = DeviceSampler::start(withFakeDriver(host), samples.sink());

        sampler->stop();
        const std::size_t count = samples.all().size();
        sampler->stop(); // harmless

        QVERIFY(count <= 1); // it did not wait for the next second
        QCOMPARE(samples.all().size(), count);
    }
};

MR_TEST(TestDeviceSampler)

} // namespace mr::test::tst_device_sampler

#include "tst_device_sampler.moc"
