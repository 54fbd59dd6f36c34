#include "core/model/joined_rows.h"

#include <algorithm>
#include <utility>

namespace mr {

JoinedRows::JoinedRows(std::vector<const NamedTensor*> parts)
    : m_parts(std::move(parts))
{
}

Status JoinedRows::readRows(MasterReader& master, std::int64_t first, std::int64_t count,
    const MasterView& out, const MasterSink& also)
{
    for (const NamedTensor* part : m_parts) {
        const std::int64_t width = part->shape[1];
        const std::int64_t from = part->first + first * width;
        const MasterView view = m_part.view(count * width);
        MR_TRY(master.read(part->group, from, view));
        for (std::int64_t row = 0; row < count; ++row) {
            const auto at = static_cast<std::ptrdiff_t>(row * width);
            const auto to = static_cast<std::ptrdiff_t>(row * columns() + part->firstColumn);
            std::copy_n(view.high.begin() + at, width, out.high.begin() + to);
            std::copy_n(view.low.begin() + at, width, out.low.begin() + to);
        }
        if (also)
            MR_TRY(also(part->group, from, view));
    }
    return {};
}

Status JoinedRows::forPieces(MasterReader& master, std::int64_t first, std::int64_t count,
    const std::function<Status(std::int64_t, const MasterView&)>& take, const MasterSink& also)
{
    const std::int64_t most = std::max<std::int64_t>(1, kMasterPiece / columns()); // rows
    const std::int64_t end = first + count;
    for (std::int64_t at = first; at < end;) {
        const std::int64_t row = at / columns();
        const std::int64_t last = (end + columns() - 1) / columns();
        const std::int64_t rows = std::min(most, last - row);
        const MasterView joined = m_joined.view(rows * columns());
        MR_TRY(readRows(master, row, rows, joined, also));
        const std::int64_t begin = row * columns();
        const std::int64_t stop = std::min(end, begin + rows * columns());
        MR_TRY(take(at, joined.part(static_cast<std::size_t>(at - begin),
                            static_cast<std::size_t>(stop - at))));
        at = stop;
    }
    return {};
}

} // namespace mr
