#include "support/devices.h"

#include "core/device/cpu/cpu_device.h"

namespace mr::test {

namespace {

NamedDevice cpuDevice(std::string name, CpuDeviceOptions::Mode mode)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{1} << 30;
    options.threads = 2;
    options.mode = mode;
    return {std::move(name), std::shared_ptr<Device>(makeCpuDevice(options).value())};
}

} // namespace

const std::vector<NamedDevice>& devices()
{
    static const std::vector<NamedDevice> all{cpuDevice("cpu", CpuDeviceOptions::Mode::Inline),
        cpuDevice("cpu-threaded", CpuDeviceOptions::Mode::Threaded)};
    return all;
}

} // namespace mr::test
