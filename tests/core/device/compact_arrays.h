// A compact state with values of every kind, and updates of it in the written order.

#pragma once

#include "core/device/compact_reference.h"

#include <cstring>
#include <random>
#include <vector>

namespace mr::test {

struct CompactArrays {
    std::vector<std::uint16_t> weight;
    std::vector<std::int8_t> remainder;
    std::vector<std::int8_t> m;
    std::vector<std::uint8_t> v;
    std::vector<float> mScale;
    std::vector<float> vScale;

    explicit CompactArrays(std::size_t count)
        : weight(count)
        , remainder(count)
        , m(count)
        , v(count)
        , mScale(compactGroups(count))
        , vScale(compactGroups(count))
    {
    }

    // `first` is a multiple of kCompactGroup.
    CompactRange range(std::size_t first, std::size_t count)
    {
        const std::size_t group = first / kCompactGroup;
        return {weight.data() + first, remainder.data() + first, m.data() + first, v.data() + first,
            mScale.data() + group, vScale.data() + group, count};
    }

    CompactRange all() { return range(0, weight.size()); }

    // To the bit.
    bool equals(const CompactArrays& other) const
    {
        const auto same = [](const auto& a, const auto& b) {
            return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(),
                                                             a.size() * sizeof(a.front())) == 0);
        };
        return same(weight, other.weight) && same(remainder, other.remainder) && same(m, other.m) &&
               same(v, other.v) && same(mScale, other.mScale) && same(vScale, other.vScale);
    }
};

// Numbers over many magnitudes, denormals and zeros among them.
class AnyFloats
{
public:
    explicit AnyFloats(unsigned seed)
        : m_engine(seed)
    {
    }

    // Exponents in [lowest, highest].
    float operator()(int lowest, int highest)
    {
        const auto span = static_cast<unsigned>(highest - lowest + 1);
        const int exponent = lowest + static_cast<int>(m_engine() % span);
        const float mantissa = 1.0F + static_cast<float>(m_engine() & 0x7FFFFFU) / 8388608.0F;
        const float magnitude = std::ldexp(mantissa, exponent);
        return m_engine() % 32 == 0 ? 0.0F : (m_engine() & 1U) ? -magnitude : magnitude;
    }

private:
    std::mt19937 m_engine;
};

// Every 17th group is zeros with the scales of a fresh state.
inline CompactArrays someState(std::size_t count, unsigned seed)
{
    CompactArrays state(count);
    AnyFloats any(seed);
    std::vector<CompactValue> values(count);
    for (std::size_t first = 0; first < count; first += kCompactGroup) {
        const std::size_t end = std::min(count, first + kCompactGroup);
        for (std::size_t i = first; i < end && first / kCompactGroup % 17 != 16; ++i)
            values[i] = {any(-140, 8), any(-50, 2), std::fabs(any(-40, 2))};
        encodeReferenceGroup(values.data(), first, end, state.all());
    }
    return state;
}

// grad: as many as the state has elements.
inline void updateInOrder(CompactArrays& state, const std::vector<float>& grad,
    const AdamwFactors& f, float clipFactor, bool decayed, RootCodes codes = RootCodes::AtLeastOne)
{
    const CompactRange all = state.all();
    std::vector<CompactValue> values(all.count);
    for (std::size_t i = 0; i < all.count; ++i)
        values[i] = updateReference(decodeReference(all, i), grad[i], f, clipFactor, decayed);
    for (std::size_t first = 0; first < all.count; first += kCompactGroup)
        encodeReferenceGroup(
            values.data(), first, std::min(all.count, first + kCompactGroup), all, codes);
}

// F32 gradients, and the same cut to BF16.
struct Gradients {
    std::vector<float> wide;
    std::vector<std::uint16_t> narrow;

    Gradients(std::size_t count, unsigned seed, bool isBf16)
        : wide(count)
    {
        AnyFloats any(seed);
        for (float& g : wide)
            g = any(-60, 4);
        if (!isBf16)
            return;
        for (float& g : wide) {
            narrow.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(g) >> 16));
            g = bf16Value(narrow.back());
        }
    }

    DType type() const { return narrow.empty() ? DType::F32 : DType::BF16; }

    const void* from(std::size_t first) const
    {
        return narrow.empty() ? static_cast<const void*>(wide.data() + first)
                              : static_cast<const void*>(narrow.data() + first);
    }
};

struct Plain {
    std::vector<float> master, m, v;

    explicit Plain(std::size_t count)
        : master(count)
        , m(count)
        , v(count)
    {
    }
};

inline Plain decoded(CompactArrays& state)
{
    Plain plain(state.weight.size());
    decodeCompact(state.all(), plain.master.data(), plain.m.data(), plain.v.data());
    return plain;
}

inline Plain somePlain(std::size_t count, unsigned seed)
{
    Plain plain(count);
    AnyFloats any(seed);
    for (std::size_t i = 0; i < count; ++i) {
        plain.master[i] = any(-140, 8);
        plain.m[i] = any(-30, 2);
        plain.v[i] = std::fabs(any(-40, 2));
    }
    return plain;
}

inline double wide(float x)
{
    return static_cast<double>(x);
}

} // namespace mr::test
