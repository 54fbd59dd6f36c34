// HostRows: rows of a weight's state where the host keeps it, in memory or on disk.
//
// Threads    Engine thread.
// Ownership  Borrows memory and disk, which outlive it.
// Errors     Those of the disk.

#pragma once

#include "core/optim/complement_update.h"
#include "core/step/disk_tasks.h"
#include "core/step/run_memory.h"

#include <millrace/status.h>

#include <cstdint>

namespace mr {

class HostRows
{
public:
    // `disk` may be null where nothing is on disk.
    HostRows(const RunMemory& memory, DiskTasks* disk);

    // The state alone: sums are those of a bank. Rows on disk: in this place of the host, to which
    // their tile has come.
    ComplementRows of(GroupId id, const WeightCut& slot, std::int64_t firstRow, std::int64_t count,
        int stage = 0) const;

    // Between steps: brings the state of the row to the first place, if it is on disk, and back
    // once another tile is asked for. Blocks.
    Status open(GroupId id, const WeightCut& slot, std::int64_t row) const;
    // How many rows from there on, of `most`, came with it.
    std::int64_t together(
        GroupId id, const WeightCut& slot, std::int64_t row, std::int64_t most) const;

private:
    const RunMemory& m_memory;
    DiskTasks* m_disk;
};

} // namespace mr
