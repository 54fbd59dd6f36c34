#include "app/compose.h"

#include "core/device/cpu/cpu_device.h"

#include <millrace/library.h>
#include <millrace/run_reader.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace mr::app {
namespace {

Status noCuda()
{
    return Status::error(ErrorKind::InvalidArgument,
        "device cuda: this build has no CUDA device yet; use --device cpu");
}

} // namespace

Result<std::unique_ptr<Device>> makeDevice(const RunSpec& resolved)
{
    if (resolved.device == DeviceChoice::Cuda)
        return noCuda();
    CpuDeviceOptions options;
    options.memoryBytes = static_cast<std::size_t>(resolved.deviceMemoryBytes);
    options.threads = static_cast<int>(std::max<std::int64_t>(resolved.threads, 1));
    options.mode =
        resolved.threadedDevice ? CpuDeviceOptions::Mode::Threaded : CpuDeviceOptions::Mode::Inline;
    options.linkBytesPerSecond = resolved.linkBytesPerSecond;
    return makeCpuDevice(options);
}

Result<std::unique_ptr<Device>> makeInferenceDevice(
    DeviceChoice choice, std::size_t bytes, std::int64_t threads)
{
    if (choice == DeviceChoice::Cuda)
        return noCuda();
    const MachineInfo machine = inspectMachine();
    CpuDeviceOptions options;
    options.memoryBytes = bytes;
    options.threads = static_cast<int>(
        threads > 0 ? threads : std::max(1, std::min(machine.physicalCores, machine.threads)));
    return makeCpuDevice(options);
}

Result<std::unique_ptr<RunStore>> openStore(const std::string& database)
{
    return RunStore::open(database.empty() ? defaultDatabasePath() : database);
}

std::string sampleFolder()
{
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    const std::array<fs::path, 2> places = {
        program / "../share/millrace/sample", fs::path(MR_SOURCE_DIR) / "resources" / "sample"};
    for (const fs::path& place : places)
        if (fs::exists(place / "model" / "config.json", error))
            return fs::canonical(place, error).string();
    return {};
}

} // namespace mr::app
