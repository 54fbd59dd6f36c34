#include "core/step/compact_master.h"

#include "core/device/compact_state.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>

namespace mr {
namespace {

constexpr std::size_t kPieceElements = 1024;

// One piece of compact state beside the weights and remainders of a caller. Zeros are a state of
// zeros.
struct CompactPiece {
    std::array<float, kPieceElements> master{};
    std::array<float, kPieceElements> firstMoment{};
    std::array<float, kPieceElements> secondMoment{};
    std::array<std::uint16_t, kPieceElements> weight{};
    std::array<std::int8_t, kPieceElements> remainder{};
    std::array<std::int8_t, kPieceElements> m{};
    std::array<std::uint8_t, kPieceElements> v{};
    std::array<float, kPieceElements / kCompactGroup> mScale{};
    std::array<float, kPieceElements / kCompactGroup> vScale{};

    CompactRange range(std::size_t count) noexcept
    {
        return {weight.data(), remainder.data(), m.data(), v.data(), mScale.data(), vScale.data(),
            count};
    }
};

} // namespace

// Bits of F32 order as their values do within one sign, so the rest is a difference of integers.
// The signs differ only if the master lies beyond a weight of 0: it is less than 2^-133.
std::int16_t restOf(float master, std::uint16_t weight) noexcept
{
    using Limits = std::numeric_limits<std::int16_t>;
    const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(master));
    if (bits >> 31 != weight >> 15)
        return 0;
    const std::int64_t rest = bits - (static_cast<std::int64_t>(weight) << 16);
    return static_cast<std::int16_t>(std::clamp<std::int64_t>(rest, Limits::min(), Limits::max()));
}

void encodeMaster(std::span<const std::uint16_t> high, std::span<const std::int16_t> low,
    std::span<std::uint16_t> weight, std::span<std::int8_t> remainder)
{
    assert(low.size() == high.size() && weight.size() == high.size());
    CompactPiece piece;
    for (std::size_t at = 0; at < high.size(); at += kPieceElements) {
        const std::size_t count = std::min(kPieceElements, high.size() - at);
        for (std::size_t i = 0; i < count; ++i)
            piece.master[i] = joinHalves(high[at + i], low[at + i]);
        encodeCompact(piece.master.data(), piece.firstMoment.data(), piece.secondMoment.data(),
            piece.range(count));
        std::copy_n(piece.weight.data(), count, weight.data() + at);
        std::copy_n(piece.remainder.data(), count, remainder.data() + at);
    }
}

void decodeMaster(std::span<const std::uint16_t> weight, std::span<const std::int8_t> remainder,
    std::span<std::int16_t> low)
{
    assert(remainder.size() == weight.size() && low.size() == weight.size());
    CompactPiece piece;
    for (std::size_t at = 0; at < weight.size(); at += kPieceElements) {
        const std::size_t count = std::min(kPieceElements, weight.size() - at);
        std::copy_n(weight.data() + at, count, piece.weight.data());
        std::copy_n(remainder.data() + at, count, piece.remainder.data());
        decodeCompact(piece.range(count), piece.master.data(), piece.firstMoment.data(),
            piece.secondMoment.data());
        for (std::size_t i = 0; i < count; ++i)
            low[at + i] = restOf(piece.master[i], weight[at + i]);
    }
}

} // namespace mr
