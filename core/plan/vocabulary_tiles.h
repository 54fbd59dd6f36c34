// VocabularyTiles: the matrices of embedding and head where device memory does not hold them whole.
//
// The head's matrix comes by tiles of whole parts of the vocabulary (HeadParts): ascending for the
// softmax of all micro-batches, descending for their gradients. The embedding's rows come as tokens
// name them. A tile's copy is cut as all ranges are, so it brings some elements of the rows beside
// it; the first tile brings what lies before the matrix, which is the final norm.
//
// Threads  Pure.
// Units    Elements of the group.

#pragma once

#include "core/plan/model_shape.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace mr {

struct VocabularyTile {
    std::int64_t firstRow = 0; // of the matrix
    std::int64_t rows = 0;
    std::int64_t first = 0; // the range that holds them
    std::int64_t count = 0;
};

struct VocabularyTiles {
    VocabularyShape shape;
    std::int64_t rows = 0;         // of a tile; 0: the device holds the matrices whole
    std::int64_t headElements = 0; // of the group

    bool any() const noexcept { return rows > 0; }
    int count() const noexcept { return static_cast<int>((shape.rows + rows - 1) / rows); }

    VocabularyTile at(int index) const noexcept
    {
        VocabularyTile tile;
        tile.firstRow = index * rows;
        tile.rows = std::min(rows, shape.rows - tile.firstRow);
        const std::int64_t begin = shape.headFirst + tile.firstRow * shape.cols;
        const std::int64_t end = begin + tile.rows * shape.cols;
        tile.first = index == 0 ? 0 : begin / kCutElements * kCutElements;
        tile.count =
            std::min(headElements, (end + kCutElements - 1) / kCutElements * kCutElements) -
            tile.first;
        if (index + 1 == count())
            tile.count = headElements - tile.first;
        return tile;
    }

    // The tile whose range this is.
    std::optional<int> indexOf(std::int64_t first, std::int64_t elements) const noexcept
    {
        for (int i = 0; any() && i < count(); ++i)
            if (at(i).first == first && at(i).count == elements)
                return i;
        return {};
    }

    // Elements of the largest tile.
    std::int64_t largest() const noexcept
    {
        std::int64_t most = 0;
        for (int i = 0; any() && i < count(); ++i)
            most = std::max(most, at(i).count);
        return most;
    }
};

// Rows of a tile: whole parts, as many as `most` elements or a block have room for, at least one.
inline std::int64_t tileRowsOf(const ModelShape& shape, std::int64_t most) noexcept
{
    std::int64_t block = 0;
    for (std::size_t g = 1; g + 1 < shape.groups.size(); ++g)
        block = std::max(block, shape.groups[g].elements);
    const VocabularyShape& vocabulary = shape.vocabulary;
    const std::int64_t part = vocabulary.part * vocabulary.cols;
    const std::int64_t parts = std::max<std::int64_t>(1, std::min(most, block) / part);
    return std::min(vocabulary.rows, parts * vocabulary.part);
}

// `tileRows` of embedding and head: GroupPlacement's.
inline VocabularyTiles tilesOf(const ModelShape& shape, std::int64_t tileRows) noexcept
{
    return {shape.vocabulary, tileRows, shape.groups.back().elements};
}

} // namespace mr
