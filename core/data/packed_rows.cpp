#include "core/data/packed_rows.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <utility>

namespace mr {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Rows that are not full, by the room they have left; of one room, the one that got it first.
// A list within arrays, since a set would take 48 bytes a row.
class OpenRows
{
public:
    explicit OpenRows(std::uint32_t room)
        : m_room(room)
    {
    }

    // The row with the least room that is enough, taken out; a new one if there is none. It has
    // `need` less afterwards.
    std::uint32_t take(std::uint32_t need)
    {
        const auto found = m_byRoom.lower_bound(need);
        if (found == m_byRoom.end()) {
            m_next.push_back(kNone);
            const auto row = static_cast<std::uint32_t>(m_next.size() - 1);
            put(row, m_room - need);
            return row;
        }
        const auto [room, list] = *found;
        const std::uint32_t row = list.first;
        if (row == list.last)
            m_byRoom.erase(found);
        else
            found->second.first = m_next[row];
        put(row, room - need);
        return row;
    }

    std::size_t count() const noexcept { return m_next.size(); }

private:
    struct List {
        std::uint32_t first = kNone;
        std::uint32_t last = kNone;
    };

    void put(std::uint32_t row, std::uint32_t room)
    {
        m_next[row] = kNone;
        if (room == 0)
            return; // full
        List& list = m_byRoom[room];
        (list.first == kNone ? list.first : m_next[list.last]) = row;
        list.last = row;
    }

    const std::uint32_t m_room;
    std::map<std::uint32_t, List> m_byRoom; // at most one entry for each room there can be
    std::vector<std::uint32_t> m_next;      // next row in the list of each row
};

std::uint32_t inputsOf(const SequenceStore& sequences, std::int64_t index)
{
    return static_cast<std::uint32_t>(std::max<std::size_t>(sequences.length(index), 1) - 1);
}

// Longest first, then in their order: high words fall where lengths rise.
std::vector<std::uint64_t> longestFirst(const SequenceStore& sequences, std::uint32_t room)
{
    std::vector<std::uint64_t> keys(static_cast<std::size_t>(sequences.count()));
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::uint32_t inputs = inputsOf(sequences, static_cast<std::int64_t>(i));
        assert(inputs <= room);
        keys[i] = std::uint64_t{room - std::min(inputs, room)} << 32 | i;
    }
    std::sort(keys.begin(), keys.end());
    return keys;
}

} // namespace

PackedRows PackedRows::pack(const SequenceStore& sequences, std::int64_t seqLen)
{
    const auto room = static_cast<std::uint32_t>(seqLen);
    std::vector<std::uint32_t> rowOf(static_cast<std::size_t>(sequences.count()));
    OpenRows open(room);
    for (const std::uint64_t key : longestFirst(sequences, room))
        rowOf[static_cast<std::uint32_t>(key)] =
            open.take(room - static_cast<std::uint32_t>(key >> 32));
    PackedRows rows;
    rows.m_ends.resize(open.count());
    for (const std::uint32_t row : rowOf)
        ++rows.m_ends[row];
    std::uint32_t begin = 0;
    for (std::uint32_t& end : rows.m_ends) // for now where the row begins
        begin += std::exchange(end, begin);
    rows.m_sequences.resize(rowOf.size());
    for (std::size_t i = 0; i < rowOf.size(); ++i)
        rows.m_sequences[rows.m_ends[rowOf[i]]++] = static_cast<std::uint32_t>(i);
    return rows;
}

std::int64_t PackedRows::count() const noexcept
{
    return static_cast<std::int64_t>(m_ends.size());
}

std::span<const std::uint32_t> PackedRows::row(std::int64_t index) const noexcept
{
    assert(index >= 0 && index < count());
    const auto i = static_cast<std::size_t>(index);
    const std::size_t begin = i == 0 ? 0 : m_ends[i - 1];
    return std::span(m_sequences).subspan(begin, m_ends[i] - begin);
}

} // namespace mr
