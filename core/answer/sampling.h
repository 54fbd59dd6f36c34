// Choosing the next token from logits.
//
// Threads  Pure; the random number is Philox keyed by seed and position, so a prompt and a seed
//          always give the same text.
// Source   Holtzman et al., "The curious case of neural text degeneration" (top-p).

#pragma once

#include <cstdint>
#include <span>

namespace mr {

// temperature 0 or topP 0: the largest logit, the smallest index among equals.
std::int32_t sampleToken(std::span<const float> logits, double temperature, double topP,
    std::uint64_t seed, std::int64_t position);

} // namespace mr
