#include "core/choose/scratch_set.h"

#include "core/choose/scratch_rates.h"
#include "core/tier/disk_health.h"
#include "core/tier/scratch_file.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace mr {
namespace {

// A drive with less is as good as full.
constexpr std::uint64_t kLeastRoomBytes = std::uint64_t{64} << 20;

constexpr std::array kRates = {&ScratchSpeed::readBytesPerSecond,
    &ScratchSpeed::writeBytesPerSecond, &ScratchSpeed::mixedReadBytesPerSecond,
    &ScratchSpeed::mixedWriteBytesPerSecond};

double speedOf(const ScratchMember& member) noexcept
{
    // Each byte is read once and written once, about.
    return 1.0 / (1.0 / member.speed.mixedReadBytesPerSecond +
                     1.0 / member.speed.mixedWriteBytesPerSecond);
}

// Partitions of one drive share its speed.
std::string driveKey(const ScratchFolder& folder)
{
    const std::string drive = driveOf(folder.device);
    return drive.empty() ? rateKey(folder) : drive;
}

// Folders of one drive share its speed and folders of one file system its room: each gets an equal
// part.
void shareDrives(std::vector<ScratchMember>& members)
{
    std::vector<ScratchMember> alone = members;
    for (ScratchMember& member : members) {
        const auto with = [&](auto isSame) {
            return std::ranges::count_if(
                alone, [&](const ScratchMember& other) { return isSame(other.folder); });
        };
        const auto drives = with(
            [&](const ScratchFolder& other) { return driveKey(other) == driveKey(member.folder); });
        const auto rooms = with(
            [&](const ScratchFolder& other) { return rateKey(other) == rateKey(member.folder); });
        for (const auto rate : kRates)
            member.speed.*rate /= static_cast<double>(drives);
        member.roomBytes /= static_cast<std::uint64_t>(rooms);
    }
}

Result<ScratchMember> inspectMember(const std::string& path, const RateCache& cache)
{
    auto folder = inspectScratchFolder(path);
    MR_TRY(folder.status());
    MR_ASSIGN(auto left, listScratch(folder.value().path));
    ScratchMember member;
    member.folder = std::move(folder).value();
    member.roomBytes = member.folder.freeBytes;
    for (const FoundScratch& file : left)
        member.roomBytes += file.inUse ? 0 : file.bytes;
    if (const ScratchSpeed* speed = cache.findDisk(rateKey(member.folder)))
        member.speed = *speed;
    if (member.roomBytes < kLeastRoomBytes)
        member.roomBytes = 0;
    return member;
}

} // namespace

std::uint64_t ScratchSet::roomBytes() const noexcept
{
    std::uint64_t room = 0;
    for (const ScratchMember& member : members)
        room += member.roomBytes;
    return room;
}

bool ScratchSet::isMeasured() const noexcept
{
    return !members.empty() && std::ranges::all_of(members, [](const ScratchMember& member) {
        return member.speed.mixedReadBytesPerSecond > 0.0 &&
               member.speed.mixedWriteBytesPerSecond > 0.0;
    });
}

// A full folder leaves the rest to the others; the last round fills none. Bytes that fit nowhere go
// to all alike, and ScratchFile refuses them.
std::vector<double> ScratchSet::divide(std::uint64_t bytes) const
{
    const bool measured = isMeasured();
    std::vector<double> parts(members.size(), 0.0);
    std::vector<bool> full(members.size(), false);
    auto rest = static_cast<double>(bytes);
    for (std::size_t round = 0; round < members.size(); ++round) {
        double speeds = 0.0;
        for (std::size_t i = 0; i < members.size(); ++i)
            speeds += full[i] ? 0.0 : measured ? speedOf(members[i]) : 1.0;
        bool filled = false;
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (full[i])
                continue;
            const auto room = static_cast<double>(members[i].roomBytes);
            parts[i] = rest * (measured ? speedOf(members[i]) : 1.0) / speeds;
            if (parts[i] <= room || bytes > roomBytes())
                continue;
            parts[i] = room;
            full[i] = filled = true;
        }
        if (!filled)
            break;
        rest = static_cast<double>(bytes);
        for (std::size_t i = 0; i < members.size(); ++i)
            rest -= full[i] ? parts[i] : 0.0;
    }
    return parts;
}

// All work at once, and are done when the last one is.
void ScratchSet::addRates(std::uint64_t bytes, Feedback& rates) const
{
    if (!isMeasured() || bytes == 0)
        return;
    const std::vector<double> parts = divide(bytes);
    const auto together = [&](double ScratchSpeed::*rate) {
        double seconds = 0.0;
        for (std::size_t i = 0; i < members.size(); ++i)
            seconds = std::max(seconds, parts[i] / (members[i].speed.*rate));
        return static_cast<double>(bytes) / seconds; // 0 where one rate is not known
    };
    rates.diskReadBytesPerSecond = together(&ScratchSpeed::mixedReadBytesPerSecond);
    rates.diskWriteBytesPerSecond = together(&ScratchSpeed::mixedWriteBytesPerSecond);
    rates.diskReadAloneBytesPerSecond = together(&ScratchSpeed::readBytesPerSecond);
    rates.diskWriteAloneBytesPerSecond = together(&ScratchSpeed::writeBytesPerSecond);
}

Result<ScratchSet> inspectScratchSet(std::span<const std::string> folders, const RateCache& cache)
{
    ScratchSet set;
    for (const std::string& path : folders) {
        MR_ASSIGN(auto member, inspectMember(path, cache));
        const std::filesystem::path& found = member.folder.path;
        for (const ScratchMember& other : set.members)
            if (other.folder.path == found)
                return Status::error(ErrorKind::InvalidArgument,
                    "disk-path: " + found.string() + " is named twice; name each folder once");
        set.members.push_back(std::move(member));
    }
    shareDrives(set.members);
    return set;
}

} // namespace mr
