// LightUpdates: updates by optimizers that keep little or no state: what a group's whole gradient
// says of it, then the steps of its weights, tile by tile.
//
// Threads    Engine thread.
// Ownership  Borrows all it is given.
// Errors     Those of the device.

#pragma once

#include "core/device/device.h"
#include "core/device/light_update.h"
#include "core/model/param_table.h"
#include "core/plan/optimizer.h"
#include "core/step/run_memory.h"
#include "core/step/step_inputs.h"

#include <millrace/status.h>

#include <cstdint>
#include <vector>

namespace mr {

class LightUpdates
{
public:
    LightUpdates(Device& device, const RunMemory& memory, const ParamTable& table);

    // Averages, roots and step sizes, in the run's memory. `ofGroup`: the StepScalars of its
    // JoinNorm.
    Status prepare(
        const Task& task, const StepInputs& inputs, const TensorView& ofGroup, Stream& stream);
    // The weights of the task's range.
    Status update(
        const Task& task, const StepInputs& inputs, const TensorView& ofGroup, Stream& stream);

private:
    struct Weight {
        WeightShape shape;
        LightLayout::Place place;
        bool decayed = false;
        WeightRule rule{};
        std::uint64_t number = 0; // among all weights of the run

        std::int64_t count() const noexcept { return shape.rows * shape.cols; }
    };
    struct Group {
        std::vector<Weight> weights;
        LightLayout layout;
    };

    // Rows then columns of a weight, and its step size; roots are null where nothing divides.
    struct Views {
        TensorView rowRoots;
        TensorView columnRoots;
        TensorView size;
    };

    // Rows that are stepped by AdamW, and their moments.
    struct ChosenRows {
        TensorView numbers;
        TensorView first;
        TensorView second;
    };

    Views viewsOf(const Weight& weight) const;
    ChosenRows chosenRowsOf(const Task& task, const Weight& weight) const;
    const Group& groupOf(const Task& task) const
    {
        return m_groups[static_cast<std::size_t>(task.group.value)];
    }
    // The first of `count` values that a weight keeps between steps.
    TensorView keptOf(const Task& task, const Weight& weight, std::int64_t count) const;
    TensorView scratch(std::int64_t first, std::int64_t count) const;
    TensorView gradientOf(const Task& task, const Weight& weight) const;
    TensorView scalarsOf(const StepInputs& inputs, const TensorView& ofGroup) const;
    Status giveClipFactor(const StepInputs& inputs, const TensorView& ofGroup, Stream& stream);
    Status average(const Task& task, const Weight& weight, const StepInputs& inputs,
        const TensorView& scalars, Stream& stream);
    Status project(const Task& task, const Weight& weight, const StepInputs& inputs,
        const TensorView& scalars, Stream& stream);
    Status chooseRows(const Task& task, const Weight& weight, const StepInputs& inputs,
        const TensorView& scalars, Stream& stream);
    Status updateRows(const Task& task, const Weight& weight, const StepInputs& inputs,
        const LightUpdateArgs& range, Stream& stream);
    Status findSize(const Task& task, const Weight& weight, const StepInputs& inputs,
        const TensorView& scalars, Stream& stream);

    Device& m_device;
    const RunMemory& m_memory;
    const OptimizerInfo& m_rule;
    std::vector<Group> m_groups;
};

} // namespace mr
