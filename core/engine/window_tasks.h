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
#include "core/engine/run_memory.h"
#include "core/engine/window_work.h"
#include "core/model/param_table.h"
#include "core/plan/plan.h"

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

    WindowTasks(Device& device, RunMemory& memory, const ParamTable& table);

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
    // state of the whole model), and the other way. Blocks.
    Status publish(Stream& stream, const Copy& copy, const Finish& finish);
    Status adopt(Stream& stream, const Copy& copy, const Finish& finish);
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
    void clearPublished();

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
    struct Transfer { // how to move, and what moments are multiplied by on the way
        Stream* stream = nullptr;
        const Copy* copy = nullptr;
        const Finish* finish = nullptr;
        bool toHost = false;
        float firstScale = 1.0F;
        float secondScale = 1.0F;
    };
    struct Plane {                 // one of the four of a weight's state
        TensorView dense;          // (rows, urgent)
        std::byte* host = nullptr; // (rows, cols)
        std::int64_t cols = 0;
        float scale = 1.0F;
        TensorView positions; // device, I32
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
    ComplementRows rowsOf(const ComplementTile& tile, int bank) const;
    void closeOnHost(
        const CloseWindow& window, const AdamwFactors& factors, std::size_t firstTile, int bank);
    CloseWindow closing(const StepPlan& plan, const Task& task, const StepInputs& inputs);
    TensorView weightOf(GroupId id, const WeightCut& slot) const; // (rows, cols), c
    bool isDecayed(GroupId id, const WeightCut& slot) const;

    void reserveMoves();
    void choose(GroupId id, const WeightCut& slot, const float* energies);
    void changeLists(GroupId id, const WeightCut& slot);
    Status movePlane(const Plane& plane, const Move& move, const Transfer& how);
    Status moveColumns(GroupId id, const WeightCut& slot, const Move& move, const Transfer& how);
    Status moveAll(const Transfer& how);
    Status clearScratch(Stream& stream, const Finish& finish);
    void clearMoments(GroupId id, const WeightCut& slot, std::span<const std::int32_t> columns);
    template <typename F>
    Status forUrgent(F&& fn);

    Device& m_device;
    RunMemory& m_memory;
    WindowMemory& m_window;
    const ParamTable& m_table;
    bool m_isPublished = false;
    // Of a selection
    std::vector<std::byte> m_column; // host side of a move
    std::vector<std::int32_t> m_order;
    Move m_leaving;
    Move m_entering;
};

} // namespace mr
