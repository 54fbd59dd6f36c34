// DiskTiles: generation, hash and state of each tile on the disk, kept in memory.
//
// The file itself holds no state: after a crash its tiles are of different steps and worthless, so
// a format for them would only be more to write. The generations and hashes here catch writes that
// were lost, or went elsewhere: their completions look good.
//
// Threads  One (the disk thread).
// Errors   Internal: the plan reads a tile that it never wrote, or overlaps. Io: the tile is lost.
//          DataCorrupt: the bytes are not those that were written.
// Units    Generations count the writes of a tile, from 1; where it is read alone, its reads.

#pragma once

#include "core/tier/disk_layout.h"
#include "core/tier/disk_verdict.h"

#include <millrace/status.h>

#include <cstdint>
#include <vector>

namespace mr {

enum class DiskVerify : std::uint8_t {
    Sampled, // the first two generations of a tile, then one of 16
    All,
};

class DiskTiles
{
public:
    // Tiles that are read alone are there from the beginning: their first read is what others are
    // compared with.
    DiskTiles(const DiskNames& names, DiskVerify verify);

    // May a read or a write of it begin? Sets `hashed` if the job has to sum up the hashes of its
    // blocks.
    Status beginRead(DiskTileId tile, bool& hashed);
    Status beginWrite(DiskTileId tile, bool& hashed);

    // `hash` is looked at if the job was hashed. A tile that reads back wrong is lost.
    Status endRead(DiskTileId tile, bool hashed, std::uint64_t hash);
    void endWrite(DiskTileId tile, bool hashed, std::uint64_t hash) noexcept;

    // Marks the tile as lost: a write to it has failed.
    void poison(DiskTileId tile) noexcept;

    std::uint64_t generation(DiskTileId tile) const noexcept { return at(tile).generation; }

    // Is that generation hashed? Fixed by tile and number, so that runs agree.
    static bool isVerified(DiskVerify verify, DiskTileId tile, std::uint64_t generation) noexcept;

private:
    enum class State : std::uint8_t { NeverWritten, Clean, Writing, Bad };
    struct Tile {
        std::uint64_t generation = 0;
        std::uint64_t hash = 0; // hash of that generation, if hashed
        int readers = 0;
        State state = State::NeverWritten;
        bool hashed = false;
        bool isReadOnly = false;
    };

    Tile& at(DiskTileId tile) noexcept { return m_states[static_cast<std::size_t>(tile.value)]; }
    const Tile& at(DiskTileId tile) const noexcept
    {
        return m_states[static_cast<std::size_t>(tile.value)];
    }

    const DiskNames& m_names; // outlives this
    std::vector<Tile> m_states;
    DiskVerify m_verify;
};

// Hash of one block of a tile. A tile's hash is the sum of its blocks' (modulo 2^64): blocks arrive
// in any order, and the index in each keeps exchanged ones from passing.
std::uint64_t diskBlockHash(const std::byte* data, std::size_t bytes, std::uint64_t index) noexcept;

} // namespace mr
