// DiskLayout: where on the disks each tile lies, fixed before the first byte is written.
//
// Pure arithmetic. Tiles are given in the order in which a step touches them and lie in that order
// within a file, so that a disk sees long sequential runs. Everything is a multiple of 4,096 bytes:
// offsets, lengths, and the header page in front of each file.
//
// Threads  A value.
// Errors   InvalidArgument, naming the tile.
// Units    Bytes; speeds in any one unit.

#pragma once

#include "core/base/ids.h"

#include <millrace/status.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mr {

// Alignment of offsets, lengths and memory. Disks ask for 512 or 4,096, and some take less without
// a word (reference: ssd_offload, 5.2), so no disk is asked.
inline constexpr std::uint64_t kDiskPageBytes = 4096;

using DiskTileId = Id<struct DiskTileTag>; // a position in DiskLayout::tiles

constexpr std::uint64_t diskPadded(std::uint64_t bytes) noexcept
{
    return (bytes + kDiskPageBytes - 1) / kDiskPageBytes * kDiskPageBytes;
}

struct DiskTileSpec {
    std::string name; // for errors: "layer 3 state 1"
    std::uint64_t bytes = 0;
};

struct DiskTile {
    std::string name;
    std::uint64_t bytes = 0; // that mean something; diskPadded(bytes) are moved
    int file = 0;
    std::uint64_t offset = 0;
    bool isReadOnly = false; // a part of a file that is not the store's
};

// Files of a layout.
inline constexpr std::size_t kMostDiskFiles = 256;

struct DiskLayout {
    std::vector<DiskTile> tiles;          // in access order
    std::vector<std::uint64_t> fileBytes; // with the header page; of others as they are

    // XXH3 of names, sizes and places: two layouts that differ have different values.
    std::uint64_t hash() const;
};

// `fileSpeeds` has one entry per file, all above 0: a tile goes to the file that would be done with
// it first, so two equal disks take turns and a disk of twice the speed holds twice the bytes.
Result<DiskLayout> layOutTiles(
    std::span<const DiskTileSpec> tiles, std::span<const double> fileSpeeds);

} // namespace mr
