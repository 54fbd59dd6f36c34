// UpdateTasks: from the sum of a gradient to new weights and state: rounding, norm, AdamW on the
// device or on the host, and the visits of state to the device.
//
// Threads    Engine thread.
// Ownership  Borrows all it is given.
// Errors     Those of the device; Internal for a task of another kind.

#pragma once

#include "core/device/device.h"
#include "core/model/param_table.h"
#include "core/optim/host_updater.h"
#include "core/step/forward_probes.h"
#include "core/step/light_updates.h"
#include "core/step/run_memory.h"
#include "core/step/state_places.h"
#include "core/step/step_inputs.h"

#include <millrace/status.h>

#include <cstdint>
#include <vector>

namespace mr {

class UpdateTasks
{
public:
    // Bytes that tasks copy are added to `traffic`.
    UpdateTasks(Device& device, const RunMemory& memory, const ParamTable& table,
        ForwardProbes& probes, LinkBytes& traffic);

    static bool handles(TaskKind kind) noexcept;
    void beginStep(const StepPlan& plan) noexcept;
    Status enqueue(const Task& task, const StepInputs& inputs, Stream& stream);
    // The host's part. `ranges` are lent to the job.
    void fillJob(const Task& task, const StepInputs& inputs, std::vector<HostUpdateRange>& ranges,
        HostUpdateJob& job) const;
    // Number of groups that updated nothing, because a gradient was not finite. After the step.
    int countSkipped(const StepScalars& ofTheStep) const;

private:
    struct DecayRun { // a range of a group in which weight decay is the same
        std::int64_t first = 0;
        std::int64_t count = 0;
        bool decayed = false;
        bool isB = false; // of an adapter; told apart in m_rateRuns alone
    };
    using DecayRuns = std::vector<std::vector<DecayRun>>; // by group

    static DecayRuns findDecayRuns(const ParamTable& table, bool tellsBApart);
    static DecayRun inTask(const DecayRun& run, const Task& task) noexcept;
    Status finishGradient(const Task& task, Stream& stream);
    Status sendGradient(const Task& task, Stream& stream);
    Status normPart(const Task& task, Stream& stream);
    Status joinNorm(const Task& task, const StepInputs& inputs, Stream& stream);
    TensorView normBlocksOf(GroupId group, std::int64_t first, std::int64_t count) const;
    Status moveState(const Task& task, Stream& stream);
    Status update(const Task& task, const StepInputs& inputs, Stream& stream);
    Status updateByAdamw(const Task& task, const StepInputs& inputs, Stream& stream);
    Status enqueueAdamw(const AdamwArgs& args, const StateViews& state, Stream& stream);
    // The scalars that an update of the group reads (StepPlan::readsOwnNorm), here or on the host.
    TensorView scalarsFor(const ScalarViews& views, GroupId group) const;
    const AdamwFactors& factorsOf(const StepInputs& inputs, const Task& task) const noexcept;

    Device& m_device;
    const RunMemory& m_memory;
    ForwardProbes& m_probes;
    LinkBytes& m_traffic;
    LightUpdates m_light;
    DecayRuns m_decayRuns;
    DecayRuns m_rateRuns; // likewise, for steps in which B has a learning rate of its own

    // The step that runs
    StepIndex m_step = 0;
    bool m_normByGroup = false;
    bool m_isProbed = false; // StepPlan::probes
};

} // namespace mr
