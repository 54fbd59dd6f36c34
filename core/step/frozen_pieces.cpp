#include "core/step/frozen_pieces.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {
namespace {

// Adds the parts of bytes [first, end) of a group that lie in its extents.
void addPieces(const BaseFiles& base, GroupId group, std::size_t first, std::size_t end,
    std::vector<FrozenPiece>& pieces)
{
    std::size_t stageAt = 0;
    for (const BaseExtent& extent : base.extents) {
        const std::size_t from = std::max(first, extent.at);
        const std::size_t to = std::min(end, extent.at + extent.bytes);
        if (extent.group != group || from >= to)
            continue;
        const std::uint64_t begin = extent.offset + (from - extent.at);
        FrozenPiece piece;
        piece.file = extent.file;
        piece.lead = begin % kDiskAlign;
        piece.offset = begin - piece.lead;
        piece.bytes = to - from;
        piece.stageAt = stageAt;
        piece.at = from;
        stageAt += diskPages(piece.lead + piece.bytes);
        pieces.push_back(std::move(piece));
    }
}

} // namespace

Result<FrozenPieces> FrozenPieces::cut(
    const MemoryPlan& plan, const ModelShape& shape, std::size_t each, const BaseFiles& base)
{
    FrozenPieces frozen;
    int inGroup = 0;
    for (std::size_t i = 0; i < plan.disk.frozen.size(); ++i) {
        const FrozenTile& tile = plan.disk.frozen[i];
        const bool isFirst = i == 0 || plan.disk.frozen[i - 1].group != tile.group;
        inGroup = isFirst ? 0 : inGroup + 1;
        const GroupShape& group = shape.groups[static_cast<std::size_t>(tile.group.value)];
        const std::size_t first = group.frozenBytes(0, tile.first, each);
        const std::size_t end = first + group.frozenBytes(tile.first, tile.count, each);
        const std::size_t before = frozen.m_pieces.size();
        frozen.m_first.push_back(static_cast<std::int32_t>(before));
        addPieces(base, tile.group, first, end, frozen.m_pieces);
        if (frozen.m_pieces.size() == before)
            return Status::error(ErrorKind::Internal,
                fmt::format("frozen weights: tile {} of layer {} is in no file", inGroup,
                    tile.group.value));
        for (std::size_t p = before; p < frozen.m_pieces.size(); ++p)
            frozen.m_pieces[p].name = fmt::format("layer {} frozen {}", tile.group.value, inGroup);
    }
    frozen.m_first.push_back(static_cast<std::int32_t>(frozen.m_pieces.size()));
    return frozen;
}

std::span<const FrozenPiece> FrozenPieces::of(std::int32_t tile) const noexcept
{
    const auto index = static_cast<std::size_t>(tile);
    const auto first = static_cast<std::size_t>(m_first[index]);
    return std::span(m_pieces).subspan(first, static_cast<std::size_t>(m_first[index + 1]) - first);
}

} // namespace mr
