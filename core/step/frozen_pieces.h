// FrozenPieces: tiles of frozen weights on disk as reads of files, and where each lands in its
// stage.
//
// The parts of a group lie in any order and at any byte of a model's files. A read takes whole
// pages, so each part of a tile comes to whole pages of the stage, with bytes before and behind it
// that mean nothing.
//
// Threads  Constant after cut().
// Errors   Internal: a tile is in no file.
// Units    Bytes.

#pragma once

#include "core/model/base_files.h"
#include "core/plan/memory_plan.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mr {

struct FrozenPiece {
    std::string name;         // for errors: "layer 3 frozen 1"
    int file = 0;             // into BaseFiles::files
    std::uint64_t offset = 0; // a multiple of a page
    std::size_t lead = 0;     // from there to the weights
    std::size_t bytes = 0;    // of them
    std::size_t stageAt = 0;  // where the page of `offset` comes to, in the stage
    std::size_t at = 0;       // where the weights go, in the group as the run holds it
};

class FrozenPieces
{
public:
    FrozenPieces() = default;
    static Result<FrozenPieces> cut(
        const MemoryPlan& plan, const ModelShape& shape, std::size_t each, const BaseFiles& base);

    std::span<const FrozenPiece> all() const noexcept { return m_pieces; }
    // Pieces of a tile (DiskCuts::frozen), and the number of the first.
    std::span<const FrozenPiece> of(std::int32_t tile) const noexcept;
    std::int32_t firstOf(std::int32_t tile) const noexcept
    {
        return m_first[static_cast<std::size_t>(tile)];
    }

private:
    std::vector<FrozenPiece> m_pieces;
    std::vector<std::int32_t> m_first; // by tile, and their end
};

} // namespace mr
