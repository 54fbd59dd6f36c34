#include "core/choose/scratch_rates.h"

#include "core/base/bytes.h"
#include "core/tier/disk_health.h"

#include <algorithm>

namespace mr {
namespace {

// A file system that is full to the last byte troubles everyone.
constexpr std::uint64_t kLeftFreeBytes = std::uint64_t{256} << 20;

} // namespace

std::string rateKey(const ScratchFolder& folder)
{
    return folder.device + " " + folder.fileSystem + " " + folder.mountPoint;
}

Result<ScratchSpeed> keepDiskRates(const ScratchFolder& folder, const DiskRates& rates)
{
    const double eachWay = 0.5 * rates.mixedBytesPerSecond;
    const ScratchSpeed speed{rates.readBytesPerSecond, rates.writeBytesPerSecond, eachWay, eachWay};
    RateCache cache =
        RateCache::load(RateCache::defaultPath()); // others may have written it meanwhile
    cache.putDisk(rateKey(folder), speed);
    MR_TRY(cache.save(RateCache::defaultPath()));
    return speed;
}

Result<ScratchInfo> inspectScratch(const std::string& path)
{
    MR_ASSIGN(auto folder, inspectScratchFolder(path));
    const DiskHealth health = readDiskHealth(folder.device);
    ScratchInfo info;
    info.path = folder.path.string();
    info.fileSystem = folder.fileSystem;
    info.drive = health.drive;
    info.driveBytes = health.driveBytes;
    info.freeBytes = folder.freeBytes;
    info.temperatureCelsius = health.temperatureCelsius;
    info.usable = folder.place != ScratchPlace::ReadOnly;
    info.warnings = folder.warnings;
    const RateCache cache = RateCache::load(RateCache::defaultPath());
    if (const ScratchSpeed* speed = cache.findDisk(rateKey(folder)))
        info.speed = *speed;
    return info;
}

Result<ScratchSpeed> measureScratch(const std::string& path, const ScratchMeasuring& how)
{
    auto folder = inspectScratchFolder(path);
    MR_TRY(folder.status());
    const std::uint64_t free = folder.value().freeBytes;
    DiskBenchSpec spec;
    spec.folder = folder.value().path;
    spec.bytes = std::min(how.bytes, free > kLeftFreeBytes ? free - kLeftFreeBytes : 0);
    spec.seconds = how.seconds;
    spec.rounds = 1;
    spec.limit = false;
    spec.progress = how.progress;
    spec.cancelled = how.cancelled;
    if (spec.bytes < kLeastDiskBenchBytes)
        return Status::error(ErrorKind::OutOfMemory,
            spec.folder.string() + " has " + formatBytes(free) + " free; measuring it takes " +
                formatBytes(kLeastDiskBenchBytes + kLeftFreeBytes));
    MR_ASSIGN(auto measured, benchDisk(spec));
    return keepDiskRates(folder.value(), measured.rates);
}

} // namespace mr
