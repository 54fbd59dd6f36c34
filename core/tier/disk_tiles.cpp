#include "core/tier/disk_tiles.h"

// Compiled here, with AVX2: the system's library is built for any x86-64.
#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <utility>

namespace mr {
namespace {

constexpr std::uint64_t kAlwaysVerified = 2; // generations of each tile
constexpr std::uint64_t kSampleOneOf = 16;

Status planError(const std::string& where, const char* what)
{
    return Status::error(
        ErrorKind::Internal, "disk " + where + ": " + what + ". Please report this.");
}

} // namespace

std::uint64_t diskBlockHash(const std::byte* data, std::size_t bytes, std::uint64_t index) noexcept
{
    return XXH3_64bits_withSeed(data, bytes, index + 1);
}

bool DiskTiles::isVerified(DiskVerify verify, DiskTileId tile, std::uint64_t generation) noexcept
{
    if (verify == DiskVerify::All || generation <= kAlwaysVerified)
        return true;
    // Each generation looks at another sixteenth of the tiles, so every tile has its turn.
    return (static_cast<std::uint64_t>(tile.value) + generation) % kSampleOneOf == 0;
}

DiskTiles::DiskTiles(const DiskNames& names, DiskVerify verify)
    : m_names(names)
    , m_states(names.layout->tiles.size())
    , m_verify(verify)
{
    for (std::size_t i = 0; i < m_states.size(); ++i)
        if (names.layout->tiles[i].isReadOnly) {
            m_states[i].isReadOnly = true;
            m_states[i].state = State::Clean;
        }
}

Status DiskTiles::beginRead(DiskTileId tile, bool& hashed)
{
    Tile& entry = at(tile);
    switch (entry.state) {
    case State::NeverWritten:
        return planError(m_names.words(DiskOp::Read, tile), "it was never written");
    case State::Writing:
        return planError(m_names.words(DiskOp::Read, tile), "it is being written at this moment");
    case State::Bad:
        return Status::error(ErrorKind::Io, "disk " + m_names.words(DiskOp::Read, tile) +
                                                ": an earlier write of it failed." + diskWayOut());
    case State::Clean:
        break;
    }
    ++entry.readers;
    hashed = entry.isReadOnly ? isVerified(m_verify, tile, ++entry.generation) : entry.hashed;
    return {};
}

Status DiskTiles::beginWrite(DiskTileId tile, bool& hashed)
{
    Tile& entry = at(tile);
    if (entry.isReadOnly)
        return planError(m_names.words(DiskOp::Write, tile), "its file is to be read alone");
    if (entry.state == State::Writing || entry.readers > 0)
        return planError(m_names.words(DiskOp::Write, tile),
            entry.readers > 0 ? "it is being read at this moment"
                              : "it is being written at this moment");
    entry.state = State::Writing;
    ++entry.generation;
    hashed = isVerified(m_verify, tile, entry.generation);
    return {};
}

Status DiskTiles::endRead(DiskTileId tile, bool hashed, std::uint64_t hash)
{
    Tile& entry = at(tile);
    --entry.readers;
    if (entry.isReadOnly && hashed && !std::exchange(entry.hashed, true))
        entry.hash = hash;
    if (!hashed || hash == entry.hash)
        return {};
    entry.state = State::Bad;
    if (entry.isReadOnly)
        return Status::error(ErrorKind::DataCorrupt,
            "disk " + m_names.words(DiskOp::Read, tile) +
                ": what was read is not what was there before. Another program changed the file, "
                "or the drive, its cable or the memory is faulty." +
                diskWayOut());
    return Status::error(ErrorKind::DataCorrupt,
        fmt::format(
            "disk {}: what was read is not what was written (write {} of the tile). The drive, its "
            "cable or the memory is faulty, or another program wrote to the file.{}",
            m_names.words(DiskOp::Read, tile), entry.generation, diskWayOut()));
}

void DiskTiles::endWrite(DiskTileId tile, bool hashed, std::uint64_t hash) noexcept
{
    Tile& entry = at(tile);
    entry.state = State::Clean;
    entry.hashed = hashed;
    entry.hash = hash;
}

void DiskTiles::poison(DiskTileId tile) noexcept
{
    at(tile).state = State::Bad;
}

} // namespace mr
