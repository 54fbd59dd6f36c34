// DiskHealth: a drive's report of its size, its temperature and the bytes written to it so far.
//
// The counters of NVMe's SMART log need privileges that a desktop does not have; the temperature is
// there for all. So everything but the name may be absent, and `why` says why in words.
//
// A drive's own writes differ from the host's: it moves data about inside (NAND writes), and only
// its maker can read how much. Percent used is the drive's own estimate of both.
//
// Threads  Any; values. readDiskHealth() blocks on /sys and one command to the drive.
// Errors   None: values that cannot be read are absent.
// Units    Bytes, degrees Celsius, percent of the rated life.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mr {

// Counters of a drive's life, by the host's side.
struct SmartCounters {
    std::uint64_t readBytes = 0;
    std::uint64_t writtenBytes = 0;
    std::uint64_t mediaErrors = 0;
    int percentUsed = 0; // percent of the rated life; may pass 100
    double temperatureCelsius = 0.0;
};

inline constexpr std::size_t kSmartLogBytes = 512;

// NVM Express Base Specification 2.0, figure 207: log page 02h. Counters beyond 64 bits are cut to
// the largest number.
SmartCounters parseSmartLog(std::span<const std::byte, kSmartLogBytes> log) noexcept;

struct DiskHealth {
    std::string drive;            // "nvme0n1": the whole disk; empty: not known
    std::uint64_t driveBytes = 0; // 0: not known
    std::optional<double> temperatureCelsius;
    std::optional<SmartCounters> counters;
    std::string why; // there are no counters; empty if there are
};

// `blockDevice` as in ScratchFolder::device, a partition or a mapper's device over one: "dm-0".
// `root` is where sys/ and dev/ lie.
DiskHealth readDiskHealth(std::string_view blockDevice, const std::filesystem::path& root = "/");

// The name of the whole disk: "nvme0n1"; empty: not known.
std::string driveOf(std::string_view blockDevice, const std::filesystem::path& root = "/");

// Where the kernel says how warm the drive is, in thousandths of a degree: cheap to read, again and
// again. Empty: it has no sensor, or is not known.
std::filesystem::path driveSensor(
    std::string_view blockDevice, const std::filesystem::path& root = "/");

} // namespace mr
