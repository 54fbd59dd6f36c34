#include "core/parquet/bit_runs.h"

#include <algorithm>

namespace mr {
namespace {

std::uint64_t unsignedByte(char c)
{
    return static_cast<unsigned char>(c);
}

// Takes `count` bytes from the front.
bool takeBytes(std::string_view& bytes, std::uint64_t count, std::string_view& out)
{
    if (count > bytes.size())
        return false;
    out = bytes.substr(0, static_cast<std::size_t>(count));
    bytes.remove_prefix(static_cast<std::size_t>(count));
    return true;
}

std::uint64_t unfolded(std::uint64_t zigzag)
{
    return (zigzag >> 1U) ^ (~(zigzag & 1U) + 1U);
}

} // namespace

std::uint64_t bitsAt(std::string_view bytes, std::uint64_t at, unsigned width) noexcept
{
    std::uint64_t out = 0;
    for (unsigned done = 0; done < width;) {
        const unsigned within = static_cast<unsigned>((at + done) % 8);
        const unsigned taken = std::min(8 - within, width - done);
        const std::uint64_t byte = unsignedByte(bytes[static_cast<std::size_t>((at + done) / 8)]);
        out |= ((byte >> within) & ((1U << taken) - 1)) << done;
        done += taken;
    }
    return out;
}

bool takeVarint(std::string_view& bytes, std::uint64_t& out) noexcept
{
    out = 0;
    for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
        const std::uint64_t byte = unsignedByte(bytes.front());
        bytes.remove_prefix(1);
        out |= (byte & 0x7FU) << shift;
        if (byte < 0x80U)
            return true;
    }
    return false;
}

bool HybridRuns::begin() noexcept
{
    constexpr std::uint64_t kMostRun = std::uint64_t{1} << 32;
    std::uint64_t head = 0;
    if (!takeVarint(m_bytes, head) || head >> 1U > kMostRun)
        return false;
    m_isPacked = (head & 1U) != 0;
    m_left = m_isPacked ? (head >> 1U) * 8 : head >> 1U;
    m_bit = 0;
    if (m_isPacked) {
        // The last group may lack the bytes that no value needs.
        const std::uint64_t bytes = std::min<std::uint64_t>(m_left / 8 * m_width, m_bytes.size());
        if (m_width > 0)
            m_left = std::min(m_left, bytes * 8 / m_width);
        return takeBytes(m_bytes, bytes, m_group);
    }
    std::string_view value;
    if (!takeBytes(m_bytes, (m_width + 7) / 8, value))
        return false;
    m_value = 0;
    for (std::size_t i = 0; i < value.size(); ++i)
        m_value |= static_cast<std::uint32_t>(unsignedByte(value[i]) << (8 * i));
    return true;
}

bool HybridRuns::next(std::uint32_t& out) noexcept
{
    if (m_width == 0) { // no bits are needed for the one value that there is
        out = 0;
        return true;
    }
    while (m_left == 0)
        if (m_bytes.empty() || !begin())
            return false;
    --m_left;
    out = m_value;
    if (m_isPacked) {
        out = static_cast<std::uint32_t>(bitsAt(m_group, m_bit, m_width));
        m_bit += m_width;
    }
    return true;
}

bool DeltaRuns::open(std::string_view bytes) noexcept
{
    constexpr std::uint64_t kMostBlock = std::uint64_t{1} << 24;
    std::uint64_t block = 0;
    m_bytes = bytes;
    if (!takeVarint(m_bytes, block) || !takeVarint(m_bytes, m_parts) ||
        !takeVarint(m_bytes, m_count) || !takeVarint(m_bytes, m_value))
        return false;
    if (block == 0 || block > kMostBlock || m_parts == 0 || m_parts > block || block % m_parts != 0)
        return false;
    m_perPart = block / m_parts;
    m_value = unfolded(m_value);
    return m_perPart % 8 == 0;
}

bool DeltaRuns::beginBlock() noexcept
{
    if (!takeVarint(m_bytes, m_least) || !takeBytes(m_bytes, m_parts, m_widths))
        return false;
    m_least = unfolded(m_least);
    return true;
}

bool DeltaRuns::beginPart() noexcept
{
    if (m_widths.empty() && !beginBlock())
        return false;
    m_width = static_cast<unsigned>(unsignedByte(m_widths.front()));
    m_widths.remove_prefix(1);
    m_inPart = m_perPart;
    m_bit = 0;
    return m_width <= 64 && takeBytes(m_bytes, m_perPart / 8 * m_width, m_part);
}

bool DeltaRuns::next(std::int64_t& out) noexcept
{
    if (m_given == m_count)
        return false;
    if (m_given > 0) {
        if (m_inPart == 0 && !beginPart())
            return false;
        m_value += m_least + bitsAt(m_part, m_bit, m_width); // wraps around, as the format says
        m_bit += m_width;
        --m_inPart;
    }
    ++m_given;
    out = static_cast<std::int64_t>(m_value);
    return true;
}

bool DeltaRuns::skipAll(std::string_view& behind) const noexcept
{
    DeltaRuns rest = *this;
    std::uint64_t left = m_count > 0 ? m_count - 1 : 0; // the first lies in the head
    while (left > 0) {
        if (!rest.beginPart())
            return false;
        left -= std::min(left, rest.m_perPart);
    }
    // Parts that hold no number have a width and no bytes.
    behind = rest.m_bytes;
    return true;
}

} // namespace mr
