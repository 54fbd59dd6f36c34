// ColumnMaster: the device's columns as part of the whole: in the host's arrays, and in a master.
//
// Where the memory keeps them apart (RunMemory::keepsColumnsApart) the host's arrays are left
// alone, and the device's columns have a place of their own in checkpoints.
//
// Threads    Engine thread; not during a step. Blocks.
// Ownership  Borrows all it is given.
// Errors     Those of the device and of the disk.

#pragma once

#include "core/model/master.h"
#include "core/step/blocking_copier.h"
#include "core/step/column_copier.h"
#include "core/step/column_state.h"
#include "core/step/host_rows.h"

#include <millrace/status.h>

#include <cstdint>
#include <span>

namespace mr {

class ColumnMaster
{
public:
    ColumnMaster(RunMemory& memory, const HostRows& rows, ColumnCopier& copier,
        BlockingCopier& link, Stream& stream);

    // The device's columns, copied into the host's arrays beside the others, so that these hold the
    // state of the whole model.
    Status publish();
    // The other way. `areApart`: once they are where the device keeps them.
    Status adopt(bool areApart);
    // Before the next step: clears the moments that either left in the host's arrays.
    Status clearPublished();

    // The device keeps its columns of a master, with moments at zero.
    Status install(MasterReader& master);
    // Writes the device's values to its columns of `out`, a master's elements from `first` on.
    Status read(GroupId group, std::int64_t first, const MasterView& out);

private:
    Status takeMaster(MasterReader& master, const MovingRows& rows,
        std::span<const std::int32_t> columns, MasterPiece& piece);

    RunMemory& m_memory;
    WindowMemory& m_window;
    const HostRows& m_rows;
    ColumnCopier& m_copier;
    BlockingCopier& m_link;
    Stream& m_stream;
    ColumnValues& m_values;
    bool m_isPublished = false;
};

} // namespace mr
