// PlainRun: a run without files: a plan, its memory and an executor, for made-up weights and
// tokens.
//
// Checks (exact_check) and benchmarks (bench_step) share it; Engine makes a real run.
//
// Threads    One thread, which is the engine thread of the device.
// Ownership  Owns all but the device.
// Errors     Those of plan and device. create(): OutOfMemory with both numbers if the plan is
//            larger than a budget that was given.

#pragma once

#include "core/base/host_memory.h"
#include "core/model/frozen_model.h"
#include "core/model/model_config.h"
#include "core/plan/policies.h"
#include "core/step/training_state.h"

#include <millrace/status.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mr {

struct PlainRunSpec {
    ModelConfig config;
    MicroShape micro;
    std::string policy = "resident";
    std::map<std::string, std::string> options;
    LightChoice light = {};
    Recompute recompute = Recompute::None;
    double clipNorm = 1.0;
    int updateThreads = 1;
    // Settings of the host's updates of whole windows; other updates take factors of StepInputs.
    AdamwSettings adamw;
    double learningRate = 1e-3;
    Budget budget;    // bytes of 0: no limit
    HostMemory host;  // of the machine, for errors that name the host's budget; may be empty
    RunDiskSpec disk; // for a plan that keeps something there
    // A run trains all of the model, or these groups, or an adapter.
    std::vector<GroupId> layers = {};
    std::optional<AdapterSettings> adapter = {};
};

class PlainRun
{
public:
    // The table of the parameters that the spec trains.
    static Result<ParamTable> tableOf(const PlainRunSpec& spec);
    // The plan alone: nothing is allocated.
    static Result<MemoryPlan> plan(const PlainRunSpec& spec);
    // Weights are not set.
    static Result<std::unique_ptr<PlainRun>> create(Device& device, const PlainRunSpec& spec);

    // One optimizer step, numbered from 1 in a row: plans it, checks it if its kind is new, runs
    // it. `inputs.before`, `job` and `closing` are filled in here.
    Result<StepResult> step(const StepInputs& inputs);
    // Makes the updates that the last step left for the next one. Comes before any read of the
    // weights.
    Status finishLateParts() { return m_body->plans().finishLateParts(); }

    const PlainRunSpec& spec() const noexcept { return m_spec; }
    const ParamTable& table() const noexcept { return m_table; } // of what is trained
    const ModelShape& shape() const noexcept { return m_shape; }
    const MemoryPlan& memoryPlan() const noexcept { return m_plan; }
    const RunMemory& memory() const noexcept { return m_body->memory(); }
    StepExecutor& executor() noexcept { return m_body->executor(); }
    // The plan of the last step.
    const StepPlan& stepPlan() const noexcept { return m_body->plans().plan(); }
    const Carry& carry() const noexcept { return m_body->plans().carry(); } // that it left
    Precision precision() const noexcept { return m_step.precision; }

private:
    explicit PlainRun(PlainRunSpec spec);
    Status describe();
    Status build(Device& device);

    // Constant after create()
    PlainRunSpec m_spec;
    ParamTable m_table;
    ModelShape m_shape;
    OffloadPolicy m_policy;
    MemoryPlan m_plan;
    Budget m_budget; // held by the plan

    const Feedback m_rates; // none

    StepSpec m_step;
    double m_lastNorm = 0.0;
    std::unique_ptr<TrainingState> m_body;
};

} // namespace mr
