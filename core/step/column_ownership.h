// ColumnOwnership: which columns are the device's. Energies are compared on the host, and owners
// change.
//
// There is one count of updates per owner, not one per column. A moment that moves is therefore
// multiplied by (1 - beta^new count) / (1 - beta^old count): bias correction gives the same value
// before and after, and where the counts agree nothing changes at all.
//
// Threads    Engine thread; at the end of a step that sent its energies. Blocks.
// Ownership  Borrows all it is given.
// Errors     Those of the device and of the disk.
// Order      select() allocates nothing after reserve().

#pragma once

#include "core/device/ops.h"
#include "core/step/column_copier.h"
#include "core/step/column_state.h"
#include "core/step/host_rows.h"

#include <millrace/status.h>

#include <cstdint>
#include <vector>

namespace mr {

struct WindowState;

class ColumnOwnership
{
public:
    ColumnOwnership(WindowMemory& window, const HostRows& rows, ColumnCopier& copier);

    void reserve();
    // The columns with the most energy become the device's, with master and moments.
    Status select(const AdamwFactors& betas, const WindowState& counts);

    std::int64_t movedColumns = 0; // by the last selection

private:
    struct Move { // columns of one weight, and their positions in the dense state
        std::vector<std::int32_t> positions;
        std::vector<std::int32_t> columns;
    };

    void choose(GroupId id, const WeightCut& slot, const float* energies);
    void orderLeaving(GroupId id, const WeightCut& slot);
    void changeLists(GroupId id, const WeightCut& slot);
    Status exchange(
        GroupId id, const WeightCut& slot, const MomentScales& out, const MomentScales& in);

    WindowMemory& m_window;
    const HostRows& m_rows;
    ColumnCopier& m_copier;
    ColumnValues& m_left;
    ColumnValues m_entered;
    std::vector<std::int32_t> m_order;
    Move m_leaving;
    Move m_entering;
};

} // namespace mr
