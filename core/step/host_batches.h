// fillHostBatches(): micro-batches as the device will read them, in pinned host memory.
//
// Threads  Engine thread; nothing that was enqueued reads those batches any more.
// Errors   InvalidArgument: an id the model does not know. Internal: more than were planned.

#pragma once

#include "core/data/batch_stream.h"
#include "core/step/run_memory.h"

#include <millrace/status.h>

#include <span>

namespace mr {

Status fillHostBatches(
    const ModelConfig& config, std::span<const MicroBatchData> micros, const RunMemory& memory);

} // namespace mr
