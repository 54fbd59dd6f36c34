// StateCodec: in which planes a run keeps master weights and AdamW moments, as one small table.
//
// Plans count these bytes, run memory lays them out, copies move them and checkpoints save them,
// all from the same rows.
//
//   plane         Plain, 12 bytes an element    Compact, 5.25 (core/device/compact_state.h)
//   High          U16  BF16, half up            U16  BF16, nearest even
//   Low           I16  the rest of the F32      I8   remainder
//   FirstMoment   F32  m                        I8   m, companded
//   SecondMoment  F32  v                        U8   the root of v
//   FirstScale    -                             F32  of m, for 32 elements
//   SecondScale   -                             F32  of the root of v, for 32 elements
//
// High is the uploaded weight in both. An optimizer without moments (optimizer.h) keeps the first
// two planes of Plain (Halves, 4 bytes an element) or of Compact (Bits24, 3), or High alone,
// rounded at random (Random16, 2).
//
// Units    Elements of a group. Groups of 32 divide kCutElements and the first element of every
//          weight, and a window's tiles are whole rows that end where such a group does, so no cut
//          parts them.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace mr {

enum class StateCodec : std::uint8_t { Plain, Compact, Halves, Bits24, Random16 };
inline constexpr std::size_t kStateCodecs = 5;

// Are its weights BF16 and a rest of 8 bits?
constexpr bool hasRemainder(StateCodec codec) noexcept
{
    return codec == StateCodec::Compact || codec == StateCodec::Bits24;
}
// Does it keep the master of F32 weights to the bit?
constexpr bool isLossless(StateCodec codec) noexcept
{
    return codec == StateCodec::Plain || codec == StateCodec::Halves;
}

enum class StatePart : std::uint8_t {
    High,
    Low,
    FirstMoment,
    SecondMoment,
    FirstScale,
    SecondScale,
};
inline constexpr std::size_t kStateParts = 6;

// In the order in which parts of one tile lie: wide values first, so that all are aligned.
inline constexpr std::array<StatePart, kStateParts> kPartsOfTile = {StatePart::FirstMoment,
    StatePart::SecondMoment, StatePart::FirstScale, StatePart::SecondScale, StatePart::Low,
    StatePart::High};

struct StatePlane {
    std::size_t valueBytes = 0; // 0: the codec has no such plane
    std::int64_t elementsPerValue = 1;

    constexpr bool exists() const noexcept { return valueBytes > 0; }
    constexpr std::int64_t values(std::int64_t elements) const noexcept
    {
        return exists() ? (elements + elementsPerValue - 1) / elementsPerValue : 0;
    }
    constexpr std::size_t bytes(std::int64_t elements) const noexcept
    {
        return valueBytes * static_cast<std::size_t>(values(elements));
    }
};

inline constexpr std::int64_t kScaledElements = 32; // with one scale

// The least number of rows that parts no group, where the first of them begins one.
constexpr std::int64_t rowsOfWholeGroups(StateCodec codec, std::int64_t cols) noexcept
{
    return codec == StateCodec::Compact ? kScaledElements / std::gcd(cols, kScaledElements) : 1;
}

inline constexpr std::array<std::array<StatePlane, kStateParts>, kStateCodecs> kStatePlanes = {{
    {{{2, 1}, {2, 1}, {4, 1}, {4, 1}, {0, 1}, {0, 1}}},
    {{{2, 1}, {1, 1}, {1, 1}, {1, 1}, {4, kScaledElements}, {4, kScaledElements}}},
    {{{2, 1}, {2, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}},
    {{{2, 1}, {1, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}},
    {{{2, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}},
}};

constexpr const StatePlane& planeOf(StateCodec codec, StatePart part) noexcept
{
    return kStatePlanes[static_cast<std::size_t>(codec)][static_cast<std::size_t>(part)];
}

// Is a part of the master kept beside High?
constexpr bool hasLowPlane(StateCodec codec) noexcept
{
    return planeOf(codec, StatePart::Low).exists();
}

// Bytes of all planes, or of all but High. In BF16 the weights are High, so state visits the device
// without it where they stay there.
constexpr std::size_t stateBytes(StateCodec codec, std::int64_t elements, bool withHigh) noexcept
{
    std::size_t bytes = 0;
    for (const StatePart part : kPartsOfTile)
        bytes += part == StatePart::High && !withHigh ? 0 : planeOf(codec, part).bytes(elements);
    return bytes;
}
static_assert(stateBytes(StateCodec::Plain, 32, true) == 12 * 32);
static_assert(stateBytes(StateCodec::Compact, 32, true) == 168); // 5.25 * 32

} // namespace mr
