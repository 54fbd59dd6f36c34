#include "core/tier/disk_health.h"

#include "core/base/file.h"
#include "core/base/host_readings.h"

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <system_error>
#include <vector>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLayers = 8; // mappers, one above the other

std::uint64_t littleEndian(std::span<const std::byte> bytes) noexcept
{
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
}

// A 128-bit counter times `unit`.
std::uint64_t counter(
    std::span<const std::byte, kSmartLogBytes> log, std::size_t at, std::uint64_t unit = 1) noexcept
{
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t low = littleEndian(log.subspan(at, 8));
    const std::uint64_t high = littleEndian(log.subspan(at + 8, 8));
    return high != 0 || low > kMost / unit ? kMost : low * unit;
}

std::vector<fs::path> entriesIn(const fs::path& folder)
{
    std::vector<fs::path> found;
    std::error_code failed;
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
        found.push_back(it->path());
    std::ranges::sort(found);
    return found;
}

// The folder of the whole disk below a partition or mappers; of a mapper over several disks there
// is none, because no one of them takes all writes.
fs::path diskFolder(std::string_view blockDevice, const fs::path& root)
{
    std::error_code failed;
    fs::path folder = fs::canonical(root / "sys/class/block" / blockDevice, failed);
    for (int layer = 0; !failed && layer < kMostLayers; ++layer) {
        const std::vector<fs::path> below = entriesIn(folder / "slaves");
        if (below.size() > 1)
            return {};
        if (below.empty())
            return fs::exists(folder / "partition", failed) ? folder.parent_path() : folder;
        folder = fs::canonical(below.front(), failed);
    }
    return {};
}

// The first sensor below `folder`, which is a controller's or the folder of its device: where it
// lies has moved between kernels.
fs::path sensorBelow(const fs::path& folder)
{
    for (const char* below : {"", "hwmon", "device/hwmon"})
        for (const fs::path& sensor : entriesIn(folder / below)) {
            if (!sensor.filename().string().starts_with("hwmon"))
                continue;
            if (fs::path input = sensor / "temp1_input"; numberInFile(input))
                return input;
        }
    return {};
}

// A disk's device is its controller; of an NVMe drive with several paths it is the subsystem, which
// has the controllers below.
fs::path sensorOf(const fs::path& disk)
{
    if (fs::path own = sensorBelow(disk / "device"); !own.empty())
        return own;
    for (const fs::path& controller : entriesIn(disk / "device"))
        if (controller.filename().string().starts_with("nvme"))
            if (fs::path found = sensorBelow(controller); !found.empty())
                return found;
    return {};
}

using SmartLog = std::array<std::byte, kSmartLogBytes>;

// Zero, an errno, or above that an NVMe status.
int readSmartLog(const fs::path& node, SmartLog& log)
{
    const int descriptor = ::open(node.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return errno;
    constexpr std::uint8_t kGetLogPage = 0x02;
    constexpr std::uint32_t kSmart = 0x02;
    constexpr std::uint32_t kWords = kSmartLogBytes / 4 - 1; // counted from 0
    nvme_admin_cmd command{};
    command.opcode = kGetLogPage;
    command.nsid = 0xFFFFFFFFU; // the drive, not one namespace
    command.addr = reinterpret_cast<std::uintptr_t>(log.data());
    command.data_len = kSmartLogBytes;
    command.cdw10 = kWords << 16 | kSmart;
    const int done = ::ioctl(descriptor, NVME_IOCTL_ADMIN_CMD, &command);
    const int error = done < 0 ? errno : done;
    (void)::close(descriptor);
    return error;
}

void readCounters(DiskHealth& health, const fs::path& root)
{
    if (!health.drive.starts_with("nvme")) {
        health.why = health.drive + " is no NVMe drive; only their counters are read.";
        return;
    }
    SmartLog log{};
    const int error = readSmartLog(root / "dev" / health.drive, log);
    if (error == 0)
        health.counters = parseSmartLog(log);
    else if (error == EACCES || error == EPERM)
        health.why = "The counters of " + health.drive +
                     " are for administrators: `sudo smartctl -A /dev/" + health.drive +
                     "` shows them.";
    else
        health.why = "The counters of " + health.drive +
                     " cannot be read: " + std::generic_category().message(error) + ".";
}

} // namespace

SmartCounters parseSmartLog(std::span<const std::byte, kSmartLogBytes> log) noexcept
{
    constexpr std::uint64_t kDataUnit = 512'000; // a thousand blocks of 512
    constexpr double kKelvin = 273.0;            // as the specification converts
    SmartCounters counters;
    counters.temperatureCelsius = static_cast<double>(littleEndian(log.subspan(1, 2))) - kKelvin;
    counters.percentUsed = std::to_integer<int>(log[5]);
    counters.readBytes = counter(log, 32, kDataUnit);
    counters.writtenBytes = counter(log, 48, kDataUnit);
    counters.mediaErrors = counter(log, 160);
    return counters;
}

DiskHealth readDiskHealth(std::string_view blockDevice, const fs::path& root)
{
    DiskHealth health;
    const fs::path disk = blockDevice.empty() ? fs::path() : diskFolder(blockDevice, root);
    if (disk.empty()) {
        health.why = "It is not known which drive this is.";
        return health;
    }
    health.drive = disk.filename().string();
    constexpr std::uint64_t kSector = 512; // unit of /sys, for any sector size of the drive
    if (const auto sectors = numberInFile(disk / "size"); sectors && *sectors > 0)
        health.driveBytes = kSector * static_cast<std::uint64_t>(*sectors);
    health.temperatureCelsius = readTemperature(sensorOf(disk));
    readCounters(health, root);
    if (health.counters && !health.temperatureCelsius)
        health.temperatureCelsius = health.counters->temperatureCelsius;
    return health;
}

std::string driveOf(std::string_view blockDevice, const fs::path& root)
{
    return blockDevice.empty() ? std::string() : diskFolder(blockDevice, root).filename().string();
}

fs::path driveSensor(std::string_view blockDevice, const fs::path& root)
{
    const fs::path disk = blockDevice.empty() ? fs::path() : diskFolder(blockDevice, root);
    return disk.empty() ? fs::path() : sensorOf(disk);
}

} // namespace mr
