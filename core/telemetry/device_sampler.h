// DeviceSampler: looks at the device and the machine once a second while a run goes on.
//
// A thread of its own, so that a slow driver or sensor makes nobody wait but the next sample. It
// wakes on whole seconds of the run's own clock; a second that was missed stays empty.
//
// Threads   start() and stop() from any thread; the sink is called on the sampler's.
// Ownership Owns its thread and the loaded driver library; the destructor stops and joins.
// Errors    None: values that cannot be read are absent from the sample.

#pragma once

#include "core/base/host_readings.h"
#include "core/base/nvml.h"

#include <millrace/machine_metrics.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace mr {

struct DeviceSamplerOptions {
    // When the run's active time was 0; earlier lives of a resumed run count.
    std::chrono::steady_clock::time_point runBegan;
    // The device the run works on, by PCI bus id or by its name; none of the driver's GPUs has the
    // name of the CPU device, so a run on that is sampled without one.
    std::string device;
    std::string nvmlLibrary = kNvmlLibrary;
    std::filesystem::path root = "/"; // folder of proc/ and sys/
    // Sensor files of the run's drives, in thousandths of a degree; the warmest counts.
    std::vector<std::filesystem::path> driveSensors;
};

// One look at everything.
class MachineProbe
{
public:
    explicit MachineProbe(const DeviceSamplerOptions& options);

    MachineSample read(std::chrono::steady_clock::time_point now);

private:
    void readDevice(MachineSample& sample) const;
    void readDrives(MachineSample& sample) const;

    std::chrono::steady_clock::time_point m_runBegan;
    std::vector<std::filesystem::path> m_driveSensors;
    HostProbe m_host;
    std::unique_ptr<Nvml> m_nvml; // null: no driver
    Nvml::Gpu m_gpu = nullptr;
};

class DeviceSampler
{
public:
    using Sink = std::function<void(const MachineSample&)>;

    static std::unique_ptr<DeviceSampler> start(DeviceSamplerOptions options, Sink sink);
    ~DeviceSampler();

    // Joins: the sink is not called afterwards.
    void stop();

private:
    DeviceSampler(DeviceSamplerOptions options, Sink sink);
    void loop(const std::stop_token& stop);

    const DeviceSamplerOptions m_options;
    const Sink m_sink;
    std::mutex m_mutex; // only to wait with
    std::condition_variable_any m_wake;
    std::jthread m_thread; // last: joined before the members it uses go
};

} // namespace mr
