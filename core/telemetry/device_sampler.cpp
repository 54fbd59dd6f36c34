#include "core/telemetry/device_sampler.h"

#include "core/base/log.h"
#include "core/base/thread.h"

#include <algorithm>
#include <utility>

namespace mr {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPeriod{kMachinePeriodMs};

// The next whole second of the run after `now`.
Clock::time_point nextSample(Clock::time_point runBegan, Clock::time_point now)
{
    return runBegan + ((now - runBegan) / kPeriod + 1) * kPeriod;
}

} // namespace

MachineProbe::MachineProbe(const DeviceSamplerOptions& options)
    : m_runBegan(options.runBegan)
    , m_driveSensors(options.driveSensors)
    , m_host(options.root)
    , m_nvml(Nvml::load(options.nvmlLibrary))
    , m_gpu(m_nvml ? m_nvml->find(options.device) : nullptr)
{
}

MachineSample MachineProbe::read(Clock::time_point now)
{
    using namespace std::chrono;
    MachineSample sample;
    sample.timeMs = duration_cast<milliseconds>(now - m_runBegan).count();
    const HostNumbers host =
        m_host.read(duration_cast<nanoseconds>(now.time_since_epoch()).count());
    sample[MachineMetric::HostCpu] = host.cpuPercent;
    sample[MachineMetric::ProcessCpu] = host.processPercent;
    sample[MachineMetric::ProcessResident] = host.residentBytes;
    sample[MachineMetric::HostMemoryAvailable] = host.availableBytes;
    sample[MachineMetric::HostTemperature] = host.temperatureCelsius;
    sample[MachineMetric::HostPower] = host.powerWatts;
    if (m_gpu)
        readDevice(sample);
    readDrives(sample);
    return sample;
}

void MachineProbe::readDrives(MachineSample& sample) const
{
    std::optional<double>& warmest = sample[MachineMetric::DiskTemperature];
    for (const std::filesystem::path& sensor : m_driveSensors)
        if (const auto celsius = readTemperature(sensor))
            warmest = std::max(warmest.value_or(*celsius), *celsius);
}

void MachineProbe::readDevice(MachineSample& sample) const
{
    if (const auto utilization = m_nvml->utilization(m_gpu)) {
        sample[MachineMetric::DeviceUtilization] = utilization->computePercent;
        sample[MachineMetric::DeviceMemoryUtilization] = utilization->memoryPercent;
    }
    if (const auto memory = m_nvml->memory(m_gpu))
        sample[MachineMetric::DeviceMemoryUsed] = static_cast<double>(memory->usedBytes);
    sample[MachineMetric::DevicePower] = m_nvml->powerWatts(m_gpu);
    sample[MachineMetric::DeviceTemperature] = m_nvml->temperatureCelsius(m_gpu);
    sample[MachineMetric::DeviceSmClock] = m_nvml->smClockMhz(m_gpu);
    sample[MachineMetric::DeviceMemoryClock] = m_nvml->memoryClockMhz(m_gpu);
    sample[MachineMetric::DevicePcieReceived] = m_nvml->pcieReceivedBytesPerSecond(m_gpu);
    sample[MachineMetric::DevicePcieSent] = m_nvml->pcieSentBytesPerSecond(m_gpu);
}

std::unique_ptr<DeviceSampler> DeviceSampler::start(DeviceSamplerOptions options, Sink sink)
{
    std::unique_ptr<DeviceSampler> sampler(new DeviceSampler(std::move(options), std::move(sink)));
    sampler->m_thread = startThread(
        {"sampler"},
        [self = sampler.get()](const std::stop_token& stop) {
            self->loop(stop);
            return Status();
        },
        [](const Status& failure) {
            log(LogLevel::Warning, failure.message() + "; the machine is not measured any more");
        });
    return sampler;
}

DeviceSampler::DeviceSampler(DeviceSamplerOptions options, Sink sink)
    : m_options(std::move(options))
    , m_sink(std::move(sink))
{
}

DeviceSampler::~DeviceSampler()
{
    stop();
}

void DeviceSampler::stop()
{
    m_thread.request_stop();
    if (m_thread.joinable())
        m_thread.join();
}

void DeviceSampler::loop(const std::stop_token& stop)
{
    MachineProbe probe(m_options);  // here: loading the driver's library takes its time
    (void)probe.read(Clock::now()); // shares and power are of the time since the last look
    while (!stop.stop_requested()) {
        const Clock::time_point next = nextSample(m_options.runBegan, Clock::now());
        std::unique_lock lock(m_mutex);
        m_wake.wait_until(lock, stop, next, [] { return false; });
        lock.unlock();
        if (!stop.stop_requested())
            m_sink(probe.read(Clock::now()));
    }
}

} // namespace mr
