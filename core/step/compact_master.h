// The master of a run with compact state: from F32 halves to the codec's planes and back.
//
// Moments are no part of it: encoding takes them as zero, which they are before a run's first step.
//
// Threads  Pure functions.
// Units    Elements; a range begins at a multiple of kCompactGroup of its group.

#pragma once

#include <cstdint>
#include <span>

namespace mr {

// All of the same length.
void encodeMaster(std::span<const std::uint16_t> high, std::span<const std::int16_t> low,
    std::span<std::uint16_t> weight, std::span<std::int8_t> remainder);

// The low halves beside weights as high ones: the rest of the decoded F32 master. So BF16 weights
// are saved as forward reads them. The rest may exceed 16 bits by the codec's rounding (remainder
// 127 stands for the tie between two BF16): then the nearest value that halves can hold is taken.
void decodeMaster(std::span<const std::uint16_t> weight, std::span<const std::int8_t> remainder,
    std::span<std::int16_t> low);

// The low half beside `weight` for a high one: the nearest there is.
std::int16_t restOf(float master, std::uint16_t weight) noexcept;

} // namespace mr
