// The master of a model, handed out piece by piece.
//
// A whole master is 4 bytes a parameter, which a host that trains a model larger than its memory
// does not have a second time. So a keeper of one (files, a run, an initialisation) is a
// MasterReader, and a reader of one (a run, a file, a hash) asks for pieces of it.
//
// Threads  One thread; readers of files and of runs block.
// Errors   Those of the reader.
// Units    Elements of a group. Between the slots there are zeros.

#pragma once

#include "core/base/ids.h"

#include <millrace/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

// Both halves of some elements, of the same length; or the high ones alone.
struct MasterView {
    std::span<std::uint16_t> high;
    std::span<std::int16_t> low;

    MasterView part(std::size_t first, std::size_t count) const
    {
        return {high.subspan(first, count), low.empty() ? low : low.subspan(first, count)};
    }
};

class MasterReader
{
public:
    virtual ~MasterReader() = default;

    // Elements [first, first + out.high.size()) of a group, in any order of calls; those that
    // follow each other are the cheapest. Empty `out.low`: the low halves are not wanted.
    virtual Status read(GroupId group, std::int64_t first, const MasterView& out) = 0;
    // The codes of the tensor that begins there, in the layout of nf4_code.h. False: the source
    // has no such codes, and `out` is as it was.
    virtual Result<bool> readNf4(
        GroupId /*group*/, std::int64_t /*first*/, std::span<std::byte> /*out*/)
    {
        return false;
    }
};

// 4 MiB of halves: the most that is in memory at a time.
inline constexpr std::int64_t kMasterPiece = std::int64_t{1} << 20;

class MasterPiece
{
public:
    MasterView view(std::int64_t count)
    {
        m_high.resize(static_cast<std::size_t>(count));
        m_low.resize(static_cast<std::size_t>(count));
        return {m_high, m_low};
    }

private:
    std::vector<std::uint16_t> m_high;
    std::vector<std::int16_t> m_low;
};

struct MasterRange { // elements of a group
    GroupId group;
    std::int64_t first = 0;
    std::int64_t count = 0;
};

// Calls fn(first element, view) for the pieces of a range. They begin at its first element and at
// multiples of `most` elements from there.
template <typename F>
Status forPieces(MasterReader& master, const MasterRange& range, MasterPiece& piece, F&& fn,
    std::int64_t most = kMasterPiece)
{
    for (std::int64_t done = 0; done < range.count; done += most) {
        const MasterView view = piece.view(std::min(most, range.count - done));
        MR_TRY(master.read(range.group, range.first + done, view));
        MR_TRY(fn(range.first + done, view));
    }
    return {};
}

} // namespace mr
