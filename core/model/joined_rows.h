// Rows of a tensor whose columns lie in several groups: its parts (NamedTensor::isPart()), side by
// side as the file has them.
//
// Threads  One at a time.
// Errors   Those of the reader.
// Units    Elements.

#pragma once

#include "core/model/master.h"
#include "core/model/param_table.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace mr {

// Gets a piece of a group from its first element on, as it is read.
using MasterSink = std::function<Status(GroupId group, std::int64_t first, const MasterView& view)>;

class JoinedRows
{
public:
    // Precondition: the parts are those of one tensor, all of them.
    explicit JoinedRows(std::vector<const NamedTensor*> parts);

    std::int64_t count() const noexcept { return rows() * columns(); }

    // Calls take(first element, view) for the pieces of [first, first + count) of the tensor.
    // `also` gets what is read of each group; it may be more than that.
    Status forPieces(MasterReader& master, std::int64_t first, std::int64_t count,
        const std::function<Status(std::int64_t, const MasterView&)>& take,
        const MasterSink& also = {});

private:
    std::int64_t rows() const noexcept { return m_parts.front()->shape[0]; }
    std::int64_t columns() const noexcept { return m_parts.front()->fileColumns; }
    Status readRows(MasterReader& master, std::int64_t first, std::int64_t count,
        const MasterView& out, const MasterSink& also);

    std::vector<const NamedTensor*> m_parts;
    MasterPiece m_part;
    MasterPiece m_joined;
};

} // namespace mr
