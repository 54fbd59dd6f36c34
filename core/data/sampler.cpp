#include "core/base/philox.h"
#include "core/data/batch_stream.h"

#include <numeric>
#include <utility>

namespace mr {

Sampler::Sampler(SamplerState state)
    : m_state(state)
{
    shuffle();
}

std::int64_t Sampler::next()
{
    if (m_state.count == 0)
        return -1;
    if (m_state.position >= m_state.count) {
        m_state.position = 0;
        ++m_state.epoch;
        shuffle();
    }
    return m_order[m_state.position++];
}

// Fisher-Yates: element i changes places with one of [0, i]. 64 random bits times (i + 1), the high
// word taken: the bias is below (i + 1) / 2^64.
void Sampler::shuffle()
{
    m_order.resize(m_state.count);
    std::iota(m_order.begin(), m_order.end(), 0U);
    for (std::uint64_t i = m_state.count; i-- > 1;) {
        const auto words = philox(m_state.seed, i, m_state.epoch);
        const std::uint64_t random = std::uint64_t{words[0]} << 32 | words[1];
        __extension__ using Wide = unsigned __int128;
        const auto j = static_cast<std::uint64_t>(Wide{random} * (i + 1) >> 64);
        std::swap(m_order[i], m_order[j]);
    }
}

} // namespace mr
