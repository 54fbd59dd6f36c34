// Kinds of blocks in models that tests build by hand.

#pragma once

#include "core/model/model_config.h"

#include <cstdint>
#include <vector>

namespace mr::test {

// Blocks that are marked have the window, and turn by this rope. Copies config.block as it is.
inline void setWindows(ModelConfig& config, std::int64_t window,
    const std::vector<std::uint8_t>& windowed, int rope = 0)
{
    config.blocks.assign(static_cast<std::size_t>(config.layers), config.block);
    for (std::size_t i = 0; i < config.blocks.size(); ++i)
        if (windowed[i] != 0) {
            config.blocks[i].window = window;
            config.blocks[i].rope = rope;
        }
}

// Blocks that are marked have no rotary positions.
inline void setStill(ModelConfig& config, const std::vector<std::uint8_t>& still)
{
    if (config.blocks.empty())
        config.blocks.assign(static_cast<std::size_t>(config.layers), config.block);
    for (std::size_t i = 0; i < config.blocks.size(); ++i)
        config.blocks[i].turns = still[i] == 0;
}

} // namespace mr::test
