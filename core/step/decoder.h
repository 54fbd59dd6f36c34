// Decoder: text from the model of a run: the blocks of training, one stretch of new tokens at a
// time.
//
// Threads    Engine thread; not during a step. Blocks.
// Ownership  Borrows all it is given.
// Errors     Those of the device; Internal where there is no room for the tokens.

#pragma once

#include "core/device/device.h"
#include "core/step/blocking_copier.h"
#include "core/step/run_memory.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/status.h>

#include <cstdint>
#include <span>

namespace mr {

class Decoder
{
public:
    Decoder(Device& device, const RunMemory& memory, const ModelConfig& config,
        BlockingCopier& copier, Stream& stream);

    // Runs `tokens` at positions first, first + 1, ... through the model, keeping projections in
    // the memory's cacheOf(), and returns the logits of the last.
    Status advance(std::span<const TokenId> tokens, std::int64_t first, std::span<float> logits);
    // After an evaluation of one micro-batch: the logits behind a row of it.
    Status logitsAt(std::int64_t row, std::span<float> logits);

private:
    Status fetch(std::span<const TokenId> tokens, std::int64_t first);
    Status logitsByTiles(const LayerContext& context, const TensorView& x);
    Status embed(std::int64_t count);
    Status runBlock(std::int64_t block, std::int64_t first, std::int64_t count);

    Device& m_device;
    const RunMemory& m_memory;
    const ModelConfig& m_config;
    BlockingCopier& m_copier;
    Stream& m_stream;
};

} // namespace mr
