#include "core/base/host_memory.h"

#include "core/base/bytes.h"
#include "core/base/kernel_files.h"

#include <algorithm>
#include <string_view>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKibibyte = 1024; // the unit of /proc/meminfo

// The path of this program's group below the mount of control groups: "0::/user.slice/...". Empty
// if there is none.
fs::path groupPath(std::string_view groups)
{
    constexpr std::string_view kUnified = "0::/";
    while (!groups.empty()) {
        const std::size_t end = std::min(groups.find('\n'), groups.size());
        const std::string_view line = groups.substr(0, end);
        groups.remove_prefix(std::min(end + 1, groups.size()));
        if (line.starts_with(kUnified))
            return fs::path(line.substr(kUnified.size())).relative_path();
    }
    return {};
}

// Page cache that the kernel gives back before the group is out of memory.
std::uint64_t cacheOf(const fs::path& group)
{
    const std::string stat = readKernelFile(group / "memory.stat");
    return numberOfLine(stat, "inactive_file", ' ').value_or(0) +
           numberOfLine(stat, "active_file", ' ').value_or(0);
}

// "max" and a missing file are no limit. Beyond memory.high the kernel slows a group down until it
// uses less, which page-locked memory never does.
void applyLimits(const fs::path& group, HostMemory& memory)
{
    std::optional<std::uint64_t> limit = readKernelNumber(group / "memory.max");
    if (const auto high = readKernelNumber(group / "memory.high"))
        limit = std::min(limit.value_or(*high), *high);
    if (!limit)
        return;
    if (*limit < memory.totalBytes) {
        memory.totalBytes = *limit;
        memory.isLimited = true;
    }
    const std::uint64_t used = readKernelNumber(group / "memory.current").value_or(0);
    const std::uint64_t fixed = used - std::min(used, cacheOf(group));
    memory.availableBytes = std::min(memory.availableBytes, *limit - std::min(*limit, fixed));
}

std::string totalWords(const HostMemory& memory)
{
    const std::string bytes = formatBytes(memory.totalBytes);
    return memory.isLimited ? "the control group of this program may use " + bytes + " of memory"
                            : "this machine has " + bytes + " of memory";
}

} // namespace

std::optional<HostMemory> readHostMemory(const fs::path& root)
{
    const std::string text = readKernelFile(root / "proc/meminfo");
    const auto total = numberOfLine(text, "MemTotal", ':');
    const auto available = numberOfLine(text, "MemAvailable", ':');
    if (!total || !available)
        return std::nullopt;
    HostMemory memory{*total * kKibibyte, *available * kKibibyte, false};
    fs::path group = groupPath(readKernelFile(root / "proc/self/cgroup"));
    for (;; group = group.parent_path()) {
        applyLimits(root / "sys/fs/cgroup" / group, memory);
        if (group.empty())
            return memory;
    }
}

std::uint64_t defaultHostBudget(std::uint64_t availableBytes) noexcept
{
    constexpr std::uint64_t kKept = std::uint64_t{4} << 30;
    const std::uint64_t most = availableBytes / 10 * 8;
    const std::uint64_t rest = availableBytes > kKept ? availableBytes - kKept : 0;
    return std::min(most, std::max(rest, availableBytes / 4));
}

std::string hostMemoryWords(const HostMemory& memory)
{
    if (memory.totalBytes == 0)
        return {};
    return "; " + totalWords(memory) + ", " + formatBytes(memory.availableBytes) +
           " of it available; --host-memory gives another budget";
}

std::string believedBudgetWords(
    std::uint64_t budgetBytes, std::uint64_t heldBytes, const HostMemory& memory)
{
    const bool isWithin = heldBytes <= budgetBytes;
    if (memory.totalBytes == 0 || !isWithin || heldBytes <= memory.availableBytes)
        return {};
    return "The host memory budget of " + formatBytes(budgetBytes) +
           " is believed: the run will hold " + formatBytes(heldBytes) + "; " + totalWords(memory) +
           ", " + formatBytes(memory.availableBytes) +
           " of it available. If that does not grow, the system may end the program; a smaller "
           "--host-memory prevents it.";
}

} // namespace mr
