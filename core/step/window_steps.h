// WindowTasks: what the tasks of a policy with windows mean in ops, copies and work of the host;
// and who owns which column.
//
// StepExecutor enqueues; this says what. Counts of updates are kept here by owner: the device's
// urgent columns are updated in every step, the host's once per window, and bias correction must
// know how many updates a moment has seen.
//
// Threads    Engine thread.
// Ownership  Borrows all it is given.
// Errors     Those of the device; Internal for a task of another kind.

#pragma once

#include "core/device/device.h"
#include "core/device/ops.h"
#include "core/model/master.h"
#include "core/model/param_table.h"
#include "core/plan/plan.h"
#include "core/step/column_state.h"
#include "core/step/disk_tasks.h"
#include "core/step/run_memory.h"
#include "core/step/window_work.h"

#include <millrace/status.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace mr {

struct StepInputs;

// All that the bytes of WindowMemory do not say of a run's windows.
struct WindowState {
    std::int64_t deviceUpdates = 0; // of the urgent columns
    std::int64_t hostUpdates = 0;   // of the others, or steps: WindowLayout::stride()
    std::array<WindowBank, 2> banks;
    StepScalars step;   // of the last step, for a window that is still to be closed
    StepScalars urgent; // of the last window's urgent sums
};

class WindowTasks
{
public:
    // Copies between host memory and device, through the staging buffer; blocks.
    using Copy = std::function<Status(
        std::byte* to, const std::byte* from, std::size_t bytes, bool toDevice)>;
    // Waits for what was enqueued on the stream.
    using Finish = std::function<Status(Stream&)>;

    // `disk` may be null where nothing is on disk; it outlives this.
    WindowTasks(Device& device, RunMemory& memory, const ParamTable& table, DiskTasks* disk);

    // Zeroes and first column lists; blocks.
    Status prepare(Stream& stream, const Copy& copy, const Finish& finish);

    // Is this a task for enqueue() or makeWork()?
    static bool handles(const Task& task) noexcept;
    Status enqueue(const Task& task, const StepInputs& inputs, Stream& stream);
    Status makeWork(
        const StepPlan& plan, const Task& task, const StepInputs& inputs, WindowWork& work);

    // After a step: counts what became of it. With a selection, columns then change owner; blocks.
    void finishStep(const StepPlan& plan, const StepScalars& scalars);
    Status selectColumns(
        Stream& stream, const Copy& copy, const Finish& finish, const AdamwFactors& betas);

    // The device's columns, copied into the host's arrays beside the others (so that these hold the
    // state of the whole model), and the other way. Blocks. Where the memory keeps them apart
    // (RunMemory::keepsColumnsApart) these are left alone, and the device's columns have a place of
    // their own in checkpoints: adoptApart(), once they are where the device keeps them.
    Status publish(Stream& stream, const Copy& copy, const Finish& finish);
    Status adopt(Stream& stream, const Copy& copy, const Finish& finish);
    Status adoptApart(const Copy& copy) { return uploadLists(copy); }
    // Of the device's columns of a master: what the device keeps, with moments at zero, becomes
    // them; and, of elements from `first` on, they become what the device keeps. Blocks.
    Status install(MasterReader& master, Stream& stream, const Copy& copy, const Finish& finish);
    Status readMaster(GroupId group, std::int64_t first, const MasterView& out, Stream& stream,
        const Copy& copy, const Finish& finish);
    // All that windows have of a checkpoint beside bytes; and back, when the bytes are there: what
    // a job in flight has written over its sums goes to the host's master.
    WindowState capture() const;
    void restore(const WindowState& saved, const Carry& carry);

    // Makes the updates that are pending, on the host's arrays alone: for the final export, after
    // which no step may follow. `job` and `rest` are the factors of the window in flight and of
    // what is in the next one.
    Status applyPending(const Carry& carry, const StepInputs& inputs, Stream& stream,
        const Copy& copy, const Finish& finish);

    // Before the next step: what publish() or adopt() left in the host's arrays goes.
    Status clearPublished();

    WindowState state;
    // Copied by tasks since they were last set to 0.
    std::int64_t h2dBytes = 0;
    std::int64_t d2hBytes = 0;
    std::int64_t movedColumns = 0; // by the last selection

private:
    struct Move { // of columns of one weight: position in the dense state, and column
        std::vector<std::int32_t> positions;
        std::vector<std::int32_t> columns;
    };
    struct Link {
        Stream& stream;
        const Copy& copy;
        const Finish& finish;
    };
    struct RowRange { // half-open
        std::int64_t first = 0;
        std::int64_t end = 0;
    };
    struct MovingRows { // of one weight, some columns of which are copied
        GroupId group;
        const WeightCut& slot;
        std::int64_t first = 0;
        std::int64_t count = 0;
        TensorView positions; // device, I32: in the dense state
        std::byte* scratch = nullptr;
        std::int64_t room = 0; // bytes of it
    };

    Status uploadLists(const Copy& copy);
    Status pack(const Task& task, Stream& stream);
    Status roundSum(GroupId id, Stream& stream);
    Status send(const Task& task, Stream& stream);
    SquareSum normOf(GroupId id, int bank) const;
    Status fetchSums(int bank, Stream& stream, const Copy& copy, const Finish& finish);
    Status updateUrgent(const Task& task, const StepInputs& inputs, Stream& stream);
    Status scatterUrgent(GroupId id, const WeightCut& slot, Stream& stream);
    Status joinUrgent(Stream& stream);
    Status sendUrgentScalars(Stream& stream);
    Status sendEnergies(Stream& stream);
    Status upload(const Task& task, Stream& stream);
    Status scatter(const Task& task, Stream& stream);
    // Where they are on disk: in this place of the host, to which their tile has come.
    ComplementRows stateRows(GroupId id, const WeightCut& slot, std::int64_t firstRow,
        std::int64_t count, int stage = 0) const;
    ComplementRows rowsOf(const ComplementTile& tile, int bank, int stage) const;
    // Between steps: brings the state of the row to the first place, if it is on disk, and back
    // once another tile is asked for; and how many rows from there on, of `most`, came with it.
    Status openRow(GroupId id, const WeightCut& slot, std::int64_t row);
    std::int64_t rowsTogether(
        GroupId id, const WeightCut& slot, std::int64_t row, std::int64_t most) const;
    Status closeOnHost(
        const CloseWindow& window, const AdamwFactors& factors, std::size_t firstTile, int bank);
    CloseWindow closing(const StepPlan& plan, const Task& task, const StepInputs& inputs);
    TensorView weightOf(GroupId id, const WeightCut& slot) const; // (rows, cols), c
    bool isDecayed(GroupId id, const WeightCut& slot) const;

    void reserveMoves();
    void choose(GroupId id, const WeightCut& slot, const float* energies);
    void orderLeaving(GroupId id, const WeightCut& slot);
    void changeLists(GroupId id, const WeightCut& slot);
    Status copyPlane(const TensorView& dense, std::byte* values, const MovingRows& rows,
        bool toHost, const Link& link);
    Status copyDense(const MovingRows& rows, ColumnValues& values, bool toHost, const Link& link);
    template <typename F>
    Status forRows(GroupId id, const WeightCut& slot, RowRange range,
        std::span<const std::int32_t> positions, const Link& link, F&& fn);
    template <typename F>
    Status forUrgentRows(
        GroupId id, const WeightCut& slot, RowRange range, const Link& link, F&& fn);
    template <typename F>
    Status forAllUrgent(const Link& link, F&& fn);
    Status exchange(GroupId id, const WeightCut& slot, const MomentScales& out,
        const MomentScales& in, const Link& link);
    Status takeMaster(MasterReader& master, const MovingRows& rows,
        std::span<const std::int32_t> columns, MasterPiece& piece);
    Status clearScratch(GroupId id, Stream& stream);
    Status clearScratch(Stream& stream, const Finish& finish);
    template <typename F>
    Status forUrgent(F&& fn);

    Device& m_device;
    RunMemory& m_memory;
    WindowMemory& m_window;
    const ParamTable& m_table;
    DiskTasks* m_disk;
    bool m_isPublished = false;
    // Of columns that move
    ColumnValues m_values;
    ColumnValues m_entered; // of a selection, and so the rest
    std::vector<std::int32_t> m_order;
    Move m_leaving;
    Move m_entering;
};

} // namespace mr
