#include "core/step/column_state.h"

#include "core/device/compact_padding.h"
#include "core/device/master24.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

namespace mr {
namespace {

// The group of compact state that is worked on, in F32.
class OpenGroup
{
public:
    explicit OpenGroup(const CompactRange& all)
        : m_all(all)
    {
    }
    ~OpenGroup() { close(); }
    OpenGroup(const OpenGroup&) = delete;
    OpenGroup& operator=(const OpenGroup&) = delete;

    PlainGroup values;

    // Opens the group of an element. Returns the element's place in `values`.
    std::size_t open(std::size_t element) noexcept
    {
        const std::size_t first = element / kCompactGroup * kCompactGroup;
        if (first != m_first) {
            close();
            m_first = first;
            decodeCompact(part(), values.master, values.m, values.v);
        }
        return element - first;
    }

    void change(std::size_t place) noexcept { m_changed |= 1U << place; }

private:
    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

    CompactRange part() const noexcept
    {
        return partOf(m_all, m_first, std::min(kCompactGroup, m_all.count - m_first));
    }

    // Encodes the moments of all elements, but the masters of changed ones only.
    void close() noexcept
    {
        if (m_changed == 0)
            return;
        std::array<std::uint16_t, kCompactGroup> weight{};
        std::array<std::int8_t, kCompactGroup> remainder{};
        CompactRange to = part();
        to.weight = weight.data();
        to.remainder = remainder.data();
        encodeCompact(values.master, values.m, values.v, to);
        for (std::size_t i = 0; i < to.count; ++i) {
            if ((m_changed >> i & 1U) == 0)
                continue;
            // A master in the middle between two weights goes to the even one, and `high` may be
            // the other: seen from there the remainder is the same on the other side.
            const std::uint16_t high = highHalf(values.master[i]);
            m_all.weight[m_first + i] = high;
            m_all.remainder[m_first + i] =
                static_cast<std::int8_t>(weight[i] == high ? remainder[i] : -remainder[i]);
        }
        m_changed = 0;
    }

    const CompactRange& m_all;
    std::size_t m_first = kNone;
    std::uint32_t m_changed = 0; // by place
};

template <typename F>
void forElements(const ComplementRows& rows, std::span<const std::int32_t> columns, F&& fn)
{
    forColumns(rows.rows, rows.cols, columns, fn);
}

void takeCompact(const ComplementRows& from, std::span<const std::int32_t> columns,
    const MomentScales& scales, ColumnValues& values)
{
    OpenGroup group(from.compact);
    forElements(from, columns, [&](std::size_t element, std::size_t i) {
        const std::size_t place = group.open(element);
        values.high[i] = from.compact.weight[element];
        values.low[i] = restOf(group.values.master[place], values.high[i]);
        values.m[i] = group.values.m[place] * scales.first;
        values.v[i] = group.values.v[place] * scales.second;
    });
}

void putCompact(const ColumnValues& values, std::span<const std::int32_t> columns,
    const MomentScales& scales, const ComplementRows& to)
{
    assert(std::is_sorted(columns.begin(), columns.end()));
    OpenGroup group(to.compact);
    forElements(to, columns, [&](std::size_t element, std::size_t i) {
        const std::size_t place = group.open(element);
        group.values.master[place] = joinHalves(values.high[i], values.low[i]);
        group.values.m[place] = values.m[i] * scales.first;
        group.values.v[place] = values.v[i] * scales.second;
        group.change(place);
    });
}

} // namespace

void ColumnValues::reserve(std::size_t count)
{
    high.reserve(count);
    low.reserve(count);
    m.reserve(count);
    v.reserve(count);
}

void ColumnValues::resize(std::size_t count)
{
    high.resize(count);
    low.resize(count);
    m.resize(count);
    v.resize(count);
}

void takeColumns(const ComplementRows& from, std::span<const std::int32_t> columns,
    const MomentScales& scales, ColumnValues& values)
{
    values.resize(from.rows * columns.size());
    if (from.compact.weight)
        return takeCompact(from, columns, scales, values);
    forElements(from, columns, [&](std::size_t element, std::size_t i) {
        values.high[i] = from.high[element];
        values.low[i] = from.low[element];
        values.m[i] = from.m[element] * scales.first;
        values.v[i] = from.v[element] * scales.second;
    });
}

void putColumns(const ColumnValues& values, std::span<const std::int32_t> columns,
    const MomentScales& scales, const ComplementRows& to)
{
    assert(values.m.size() == to.rows * columns.size());
    if (to.compact.weight)
        return putCompact(values, columns, scales, to);
    forElements(to, columns, [&](std::size_t element, std::size_t i) {
        to.high[element] = values.high[i];
        to.low[element] = values.low[i];
        to.m[element] = values.m[i] * scales.first;
        to.v[element] = values.v[i] * scales.second;
    });
}

void clearMoments(const ComplementRows& rows, std::span<const std::int32_t> columns)
{
    const CompactRange& compact = rows.compact;
    forElements(rows, columns, [&](std::size_t element, std::size_t) {
        if (compact.weight) {
            compact.m[element] = 0;
            compact.v[element] = 0;
        } else {
            rows.m[element] = 0.0F;
            rows.v[element] = 0.0F;
        }
    });
}

} // namespace mr
