#include "core/tier/disk_layout.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>

namespace mr {
namespace {

// Files of more bytes than this are not addressable by off_t.
constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 62;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value)
{
    return XXH3_64bits_withSeed(&value, sizeof(value), hash);
}

// The file that would be done first with its held bytes and these; the lowest if several.
std::size_t quickest(
    std::span<const std::uint64_t> held, std::span<const double> speeds, std::uint64_t bytes)
{
    std::size_t best = 0;
    double bestTime = 0.0;
    for (std::size_t i = 0; i < held.size(); ++i) {
        const double time = static_cast<double>(held[i] + bytes) / speeds[i];
        if (i == 0 || time < bestTime) {
            best = i;
            bestTime = time;
        }
    }
    return best;
}

Status checkInput(std::span<const DiskTileSpec> tiles, std::span<const double> speeds)
{
    if (tiles.empty() || speeds.empty())
        return Status::error(
            ErrorKind::InvalidArgument, "disk layout: there must be a tile and a file");
    for (const double speed : speeds)
        if (!std::isfinite(speed) || speed <= 0.0)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format(
                    "disk layout: a disk's speed is {}, not above 0", std::to_string(speed)));
    for (const DiskTileSpec& tile : tiles)
        if (tile.bytes == 0 || tile.bytes > kMostFileBytes)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("disk layout: tile {} has {} bytes", tile.name, tile.bytes));
    return {};
}

} // namespace

Result<DiskLayout> layOutTiles(
    std::span<const DiskTileSpec> tiles, std::span<const double> fileSpeeds)
{
    MR_TRY(checkInput(tiles, fileSpeeds));
    DiskLayout layout;
    std::vector<std::uint64_t> held(fileSpeeds.size(), 0); // without the header page
    for (const DiskTileSpec& tile : tiles) {
        const std::uint64_t bytes = diskPadded(tile.bytes);
        const std::size_t file = quickest(held, fileSpeeds, bytes);
        if (held[file] > kMostFileBytes - bytes)
            return Status::error(ErrorKind::InvalidArgument,
                "disk layout: tile " + tile.name + " ends beyond what a file can hold");
        layout.tiles.push_back(
            {tile.name, tile.bytes, static_cast<int>(file), kDiskPageBytes + held[file]});
        held[file] += bytes;
    }
    for (const std::uint64_t bytes : held)
        layout.fileBytes.push_back(kDiskPageBytes + bytes);
    return layout;
}

std::uint64_t DiskLayout::hash() const
{
    std::uint64_t value = tiles.size();
    for (const DiskTile& tile : tiles) {
        value = XXH3_64bits_withSeed(tile.name.data(), tile.name.size(), value);
        value = mixed(value, tile.bytes);
        value = mixed(value, static_cast<std::uint64_t>(tile.file));
        value = mixed(value, tile.offset);
    }
    for (const std::uint64_t bytes : fileBytes)
        value = mixed(value, bytes);
    return value;
}

} // namespace mr
