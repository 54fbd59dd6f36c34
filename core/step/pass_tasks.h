// PassTasks: carries out the tasks of forward and backward on a stream: the passes themselves, and
// the copies of batches, weights, boundaries, activations and scalars.
//
// Threads    Engine thread.
// Ownership  Borrows all it is given.
// Errors     Those of the device; Internal for a task of another kind.

#pragma once

#include "core/device/device.h"
#include "core/step/forward_probes.h"
#include "core/step/run_memory.h"
#include "core/step/step_inputs.h"

#include <millrace/status.h>

#include <vector>

namespace mr {

class PassTasks
{
public:
    // Bytes that tasks copy are added to `traffic`.
    PassTasks(Device& device, const RunMemory& memory, const ModelConfig& config,
        ForwardProbes& probes, LinkBytes& traffic);

    void beginStep(const StepPlan& plan, const StepInputs& inputs);
    // The next backward of each group writes its sum, those behind it add.
    void beginSums();
    Status enqueue(const StepPlan& plan, TaskIndex index, const StepInputs& inputs, Stream& stream);

private:
    Status forward(const StepPlan& plan, TaskIndex index, Stream& stream);
    Status forwardLayer(const StepPlan& plan, TaskIndex index, Stream& stream);
    Status forwardBothWays(const Task& task, const StepInputs& inputs, Stream& stream);
    Status forwardMoved(const Task& task, int copy, Stream& stream);
    Status backward(const Task& task, const StepInputs& inputs, Stream& stream);
    Status embed(const LayerContext& context, const TensorView& matrix, const InputTensors& inputs,
        const TensorView& out);
    Status backwardInputs(const LayerContext& context, const TensorView& grad, bool accumulate);
    Status backwardEmbedding(const LayerContext& context, const TensorView& grad, bool accumulate);
    Status backwardHeadTask(const Task& task, float lossScale, const LayerContext& context);
    Status forwardTile(const Task& task, const LayerContext& context);
    Status backwardTile(
        const Task& task, const LayerContext& context, const HeadBackward& backward);
    Status fetchRows(const Task& task, Stream& stream);
    Status fetchBatch(const Task& task, Stream& stream);
    Status fetchWeights(const Task& task, Stream& stream);
    Status fetchFrozen(const Task& task, Stream& stream);
    Status copyFrozen(const Task& task, std::byte* to, Stream& stream);
    Status expand(const Task& task, std::byte* from, Stream& stream);
    Status sendWeights(const Task& task, Stream& stream);
    Status moveBoundary(const Task& task, Stream& stream);
    Status moveActivations(const Task& task, Stream& stream);
    Status sendScalars(const Task& task, Stream& stream);
    LayerContext contextOf(const Task& task, Stream& stream) const;
    AdapterDropout dropoutOf(const Task& task) const;
    bool encodes(std::int64_t boundary) const noexcept;
    Status encode(std::int64_t slot, std::int64_t boundary, Stream& stream);
    Status decode(std::int64_t slot, std::int64_t boundary, Stream& stream);
    bool leavesSum(const StepPlan& plan, TaskIndex index) const;
    LayerInput inputOf(const Task& task);
    std::int64_t slotOf(const Task& task) const noexcept;
    float embeddingScale() const noexcept;

    Device& m_device;
    const RunMemory& m_memory;
    const ModelConfig& m_config;
    ForwardProbes& m_probes;
    LinkBytes& m_traffic;
    bool m_trains = false;             // the plan of this step has backward passes
    std::int64_t m_lowestBackward = 0; // the first layer with one
    StepIndex m_step = 0;
    std::uint64_t m_seed = 0;
    std::vector<bool> m_accumulated; // by group: a micro-batch of this step is in already
    MicroBatch m_firstOfHead{-1};    // whose gradients begin the head's sums in this step
    bool m_sumIsLeft = false;        // the next pass adds the parts of the last block's output
};

} // namespace mr
