// LayerEmitter: micro-batches, and their passes through the layers with all that a pass needs on
// the device.
//
// Threads    One owner.
// Ownership  The other emitters are lent.

#pragma once

#include "core/plan/activation_emitter.h"
#include "core/plan/boundary_emitter.h"
#include "core/plan/disk_emitter.h"
#include "core/plan/gradient_emitter.h"
#include "core/plan/plan_writer.h"
#include "core/plan/step_layout.h"
#include "core/plan/stream_emitter.h"
#include "core/plan/weight_slots.h"

#include <span>
#include <vector>

namespace mr {

class LayerEmitter
{
public:
    LayerEmitter(PlanWriter& writer, WeightSlots& slots, DiskEmitter& disk, StreamEmitter& stream,
        const GradientEmitter& gradients)
        : m_writer(writer)
        , m_slots(slots)
        , m_stream(stream)
        , m_gradients(gradients)
        , m_boundaries(writer, disk)
        , m_activations(writer)
    {
    }

    // The plan has its micro-batches by now. Fetches the first of them.
    void begin(const StepLayout& layout);

    // The micro-batches, which are on the device, pass backward once more.
    void beginSecondPass();

    // Behind the last item: what the slots hold for the next step.
    void keepSlots(Carry& out) const;

    // Internal if its micro-batch is not on the device by then.
    Status emit(const WorkItem& item);
    // Does the layer's matrix, the head's, come by tiles?
    bool isByTiles(const WorkItem& item) const
    {
        return isHead(item) && m_writer.terms().isTiled(GroupId{item.layer.value});
    }
    // A run of such items: every tile once for all of them, or, in a step, ascending for their
    // softmax and descending for their gradients.
    Status emitTiles(std::span<const WorkItem> visit);
    // Was it the last backward of its layer in this step?
    bool hasFinished(const WorkItem& item) const;

private:
    void fetchBatch();
    void pass(const WorkItem& item);
    void passTile(std::span<const WorkItem> visit, TaskKind kind, int tile);
    void fetchRows(const WorkItem& item);
    Status needBatch(const WorkItem& item) const;
    void fetchNextBatch(const WorkItem& item);
    void waitForGradientPlace(const WorkItem& item);
    bool isHead(const WorkItem& item) const
    {
        return item.layer.value == m_writer.terms().layers() - 1;
    }
    int& backwardLeft(const WorkItem& item)
    {
        return m_backwardLeft[static_cast<std::size_t>(item.layer.value)];
    }

    PlanWriter& m_writer;
    WeightSlots& m_slots;
    StreamEmitter& m_stream;
    const GradientEmitter& m_gradients;
    BoundaryEmitter m_boundaries;
    ActivationEmitter m_activations;
    int m_fetched = 0;               // micro-batches
    std::vector<int> m_backwardLeft; // by layer: the same
};

} // namespace mr
