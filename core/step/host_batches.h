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

// Without rows of the inputs' table, which readInputRows() adds.
Status fillHostBatches(
    const ModelConfig& config, std::span<const MicroBatchData> micros, const RunMemory& memory);
// Rows of the first ids of a micro-batch, where the table lies in the model's file.
Status readInputRows(const RunMemory& memory, std::size_t micro, std::span<const std::int32_t> ids);

} // namespace mr
