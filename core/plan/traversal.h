// The three orders of work that are built, and the buffers that an order needs.
//
// Threads  Pure.
// Errors   InvalidArgument for an order that does not exist.

#pragma once

#include "core/plan/policy.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace mr {

enum class WorkOrder : std::uint8_t {
    ByMicroBatch, // one micro-batch up and down the layers, then the next
    ByLayer,      // all micro-batches through a layer, then the next layer
    ByLayerFlip,  // as ByLayer, but odd layers visit micro-batches from the last to the first
};

std::string_view name(WorkOrder order) noexcept; // "by-microbatch", ...
Result<WorkOrder> parseWorkOrder(std::string_view text);

std::unique_ptr<const Traversal> makeTraversal(WorkOrder order);

// Does a layer visit micro-batches from the last to the first in backward? Its gradients are then
// summed in another order, which changes bits from three micro-batches on.
bool flipsSums(const Traversal& traversal);

// The largest number of micro-batches between their first and their last work item at the same
// time: 1 for by-microbatch, all of them for the by-layer orders.
int microBatchesInFlight(const Traversal& traversal, int layers, int microBatches);

// Buffers for ids, targets, ... on each side of the link: two where micro-batches follow each
// other, so that the next one is fetched meanwhile; else one for each that is in flight.
int batchBuffers(int inFlight) noexcept;
int batchBuffers(const OffloadPolicy& policy, int layers, int microBatches);

} // namespace mr
