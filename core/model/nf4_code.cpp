#include "core/model/nf4_code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace mr {
namespace {

std::size_t padded(std::size_t bytes) noexcept
{
    return (bytes + kNf4Align - 1) / kNf4Align * kNf4Align;
}

std::int64_t ceilDivide(std::int64_t count, std::int64_t each) noexcept
{
    return (count + each - 1) / each;
}

// Between each two values of the book.
std::array<float, kNf4Book - 1> middles() noexcept
{
    std::array<float, kNf4Book - 1> limits{};
    for (std::size_t i = 0; i < limits.size(); ++i)
        limits[i] = (nf4Book()[i] + nf4Book()[i + 1]) / 2.0F;
    return limits;
}

// For each power of ten from 1e-6 to 1 twice as many values as for the one before, in the middles
// of equal cells of [0.1, 1], both signs; 0 and 1. The edges are F32 numbers, counted from the
// nearer end.
std::array<float, kNf4Map> makeMap()
{
    constexpr int kDecades = 7;
    std::array<float, kNf4Map> map{};
    std::size_t at = 0;
    for (int decade = 0; decade < kDecades; ++decade) {
        const int cells = 1 << decade;
        const float width = (1.0F - 0.1F) / static_cast<float>(cells);
        const auto edge = [&](int i) {
            const bool isLow = i < (cells + 1) / 2;
            return static_cast<float>(
                isLow ? double{0.1F} + double{width} * i : 1.0 - double{width} * (cells - i));
        };
        const auto power = static_cast<float>(std::pow(10.0, decade - kDecades + 1));
        for (int cell = 0; cell < cells; ++cell) {
            const float value = power * ((edge(cell) + edge(cell + 1)) / 2.0F);
            map[at++] = value;
            map[at++] = -value;
        }
    }
    map[at++] = 0.0F;
    map[at] = 1.0F;
    std::ranges::sort(map);
    return map;
}

// Magnitudes are ordered as their bits are.
float largestMagnitude(std::span<const float> block)
{
    std::int32_t largest = 0;
    for (const float x : block)
        largest = std::max(largest, std::bit_cast<std::int32_t>(x) & 0x7FFFFFFF);
    return std::bit_cast<float>(largest);
}

// Index of the nearest number of the map; of two as near the lower one.
std::uint8_t nearestInMap(float x)
{
    const auto& map = nf4Map();
    const auto above = std::ranges::lower_bound(map, x);
    if (above == map.begin())
        return 0;
    const auto below = above - 1;
    const bool isBelow = above == map.end() || x - *below <= *above - x;
    return static_cast<std::uint8_t>((isBelow ? below : above) - map.begin());
}

// Writes the tables but for the book and the map, and the codes of the blocks' magnitudes.
void packMagnitudes(std::span<const float> absmax, std::span<float> tables, std::uint8_t* codes)
{
    double sum = 0.0;
    for (const float value : absmax)
        sum += double{value};
    const auto offset = static_cast<float>(sum / static_cast<double>(absmax.size()));
    tables[kNf4Fixed - 1] = offset;
    for (std::size_t first = 0; first < absmax.size(); first += kNf4Nested) {
        const auto nested =
            absmax.subspan(first, std::min<std::size_t>(kNf4Nested, absmax.size() - first));
        float largest = 0.0F;
        for (const float value : nested)
            largest = std::max(largest, std::abs(value - offset));
        tables[kNf4Fixed + first / kNf4Nested] = largest;
        for (std::size_t i = 0; i < nested.size(); ++i)
            codes[first + i] =
                nearestInMap(largest > 0.0F ? (nested[i] - offset) * (1.0F / largest) : 0.0F);
    }
}

} // namespace

Nf4Layout nf4Layout(std::int64_t elements) noexcept
{
    Nf4Layout layout;
    layout.elements = elements;
    layout.blocks = ceilDivide(elements, kNf4Block);
    layout.tables = kNf4Fixed + ceilDivide(layout.blocks, kNf4Nested);
    layout.absmaxAt = padded(sizeof(float) * static_cast<std::size_t>(layout.tables));
    layout.codesAt = layout.absmaxAt + padded(static_cast<std::size_t>(layout.blocks));
    layout.bytes = layout.codesAt + padded(static_cast<std::size_t>(ceilDivide(elements, 2)));
    return layout;
}

DequantizeNf4Args nf4Args(std::byte* packed, const TensorView& out) noexcept
{
    const Nf4Layout layout = nf4Layout(out.count());
    return {vectorView(packed + layout.codesAt, DType::U8, ceilDivide(layout.elements, 2)),
        vectorView(packed + layout.absmaxAt, DType::U8, layout.blocks),
        vectorView(packed, DType::F32, layout.tables), out};
}

const std::array<float, kNf4Book>& nf4Book() noexcept
{
    static constexpr std::array<float, kNf4Book> kBook = {-1.0F, -0.6961928009986877F,
        -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F, -0.18477343022823334F,
        -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,
        0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F,
        0.7229568362236023F, 1.0F};
    return kBook;
}

const std::array<float, kNf4Map>& nf4Map() noexcept
{
    static const std::array<float, kNf4Map> kMap = makeMap();
    return kMap;
}

void Nf4Packer::begin(std::int64_t elements)
{
    m_layout = nf4Layout(elements);
    m_bytes.assign(m_layout.bytes, std::byte{0});
    m_absmax.clear();
    m_absmax.reserve(static_cast<std::size_t>(m_layout.blocks));
    m_held = 0;
}

void Nf4Packer::add(std::span<const float> next)
{
    while (!next.empty()) {
        if (m_held == 0 && next.size() >= m_block.size()) {
            packBlock(next.first(m_block.size()));
            next = next.subspan(m_block.size());
            continue;
        }
        const std::size_t taken = std::min(next.size(), m_block.size() - m_held);
        std::copy_n(next.begin(), taken, m_block.begin() + static_cast<std::ptrdiff_t>(m_held));
        m_held += taken;
        next = next.subspan(taken);
        if (m_held == m_block.size()) {
            packBlock(m_block);
            m_held = 0;
        }
    }
}

// Elements of a block of zeros have the code of 0. The loops are those that a compiler makes vector
// instructions of.
void Nf4Packer::packBlock(std::span<const float> block)
{
    static const std::array<float, kNf4Book - 1> kMiddles = middles();
    const float largest = largestMagnitude(block);
    const float inverse = largest > 0.0F ? 1.0F / largest : 0.0F;
    std::array<float, kNf4Block> scaled{};
    std::array<std::uint32_t, kNf4Block> codes{};
    for (std::size_t i = 0; i < block.size(); ++i)
        scaled[i] = block[i] * inverse;
    for (const float middle : kMiddles)
        for (std::size_t i = 0; i < codes.size(); ++i) // of a fixed count
            codes[i] += middle < scaled[i] ? 1U : 0U;
    std::fill(codes.begin() + std::ssize(block), codes.end(), 0U);
    std::byte* to = m_bytes.data() + m_layout.codesAt + m_absmax.size() * (kNf4Block / 2);
    for (std::size_t i = 0; i < block.size(); i += 2)
        to[i / 2] = static_cast<std::byte>(codes[i] << 4U | codes[i + 1]);
    m_absmax.push_back(largest);
}

std::span<const std::byte> Nf4Packer::finish()
{
    if (m_held > 0)
        packBlock(std::span(m_block).first(m_held));
    m_held = 0;
    std::vector<float> tables(static_cast<std::size_t>(m_layout.tables));
    std::ranges::copy(nf4Book(), tables.begin());
    std::ranges::copy(nf4Map(), tables.begin() + kNf4Book);
    packMagnitudes(
        m_absmax, tables, reinterpret_cast<std::uint8_t*>(m_bytes.data() + m_layout.absmaxAt));
    std::memcpy(m_bytes.data(), tables.data(), tables.size() * sizeof(float));
    return m_bytes;
}

float nearestBfloat(float x) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7FFFU + (bits >> 16 & 1U)) & 0xFFFF0000U);
}

void unpackNf4(std::span<const std::byte> packed, std::int64_t elements, std::int64_t first,
    std::span<float> out)
{
    const Nf4Layout layout = nf4Layout(elements);
    const auto number = [&](std::size_t i) {
        float value = 0.0F;
        std::memcpy(&value, packed.data() + i * sizeof value, sizeof value);
        return value;
    };
    const auto byteAt = [&](std::size_t at) { return std::to_integer<std::size_t>(packed[at]); };
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t element = static_cast<std::size_t>(first) + i;
        const std::size_t block = element / kNf4Block;
        const float absmax = number(kNf4Book + byteAt(layout.absmaxAt + block)) *
                                 number(kNf4Fixed + block / kNf4Nested) +
                             number(kNf4Fixed - 1);
        const std::size_t pair = byteAt(layout.codesAt + element / 2);
        out[i] = nearestBfloat(number(element % 2 == 0 ? pair >> 4U : pair & 0xFU) * absmax);
    }
}

} // namespace mr
