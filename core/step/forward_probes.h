// ForwardProbes: training without a backward pass. Every layer runs on its weights moved both ways
// along random signs; the losses of the two say how far to move the weights themselves.
//
//     z = signs drawn for the step;   g = (L(w + eps z) - L(w - eps z)) / (2 eps)
//     w = decayed ? w (1 - rate decay) : w;   w = w - rate g z
//
// Copies of the weights in the compute type are moved, never the weights, so a run is a function of
// its first weights and of the numbers g. The signs are drawn again for the update, chunk by chunk
// of a weight.
//
// Source     Malladi et al., "Fine-Tuning Language Models with Just Forward Passes" (arXiv
//            2305.17333), with signs in place of normal numbers; ZO2 (arXiv 2503.12668) for copies
//            of a layer that both passes use.
// Threads    Engine thread.
// Ownership  Borrows all it is given.
// Errors     Those of the device.

#pragma once

#include "core/device/device.h"
#include "core/model/param_table.h"
#include "core/plan/plan.h"
#include "core/step/run_memory.h"
#include "core/step/step_inputs.h"

#include <millrace/status.h>

#include <cstdint>
#include <vector>

namespace mr {

class ForwardProbes
{
public:
    ForwardProbes(Device& device, const RunMemory& memory, const ParamTable& table);

    void beginStep() noexcept { m_moved = GroupId{-1}; }
    // Before the passes of a layer: makes both copies of its weights, unless they are there.
    Status move(const Task& task, const StepInputs& inputs, Stream& stream);
    // The losses of the micro-batch's tokens are in the head's scratch, of this copy.
    Status keepLosses(const Task& task, int copy, Stream& stream);
    // g, as norm of the step and as the size of its update.
    Status join(const StepInputs& inputs, Stream& stream);
    // The weights of the task's range.
    Status update(const Task& task, const StepInputs& inputs, Stream& stream);

private:
    struct Weight {
        WeightShape shape;
        bool decayed = false;
        std::uint64_t number = 0; // among all weights of the run
        std::uint64_t chunk = 0;  // the first of its chunks, among all of the run

        std::int64_t count() const noexcept { return shape.rows * shape.cols; }
    };

    const std::vector<Weight>& weightsOf(const Task& task) const
    {
        return m_groups[static_cast<std::size_t>(task.group.value)];
    }
    TensorView scratch(std::int64_t first, std::int64_t count) const;
    Status begin(const StepInputs& inputs, Stream& stream);
    Status scaled(std::int64_t place, float factor, Stream& stream);
    Status fill(std::int64_t place, std::int64_t count, float value, Stream& stream);
    Status drawSigns(const Weight& weight, std::int64_t chunk, std::int64_t count,
        const StepInputs& inputs, Stream& stream);
    Status moveChunk(
        const Task& task, std::int64_t first, std::int64_t count, int copy, Stream& stream);

    Device& m_device;
    const RunMemory& m_memory;
    std::vector<std::vector<Weight>> m_groups;
    GroupId m_moved{-1}; // whose copies are there
};

} // namespace mr
