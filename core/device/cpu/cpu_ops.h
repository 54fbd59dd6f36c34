// The ops of core/device/ops.h on the processor.
//
// Threads  Each op may be enqueued from the engine thread only; the work runs wherever the
//          CpuStream runs it and forks into `pool`. Two streams may run ops at the same time;
//          ops that share scratch memory then wait for each other.
// Ownership The ops keep one scratch block per thread of the pool. It grows when a shape needs
//          more than any shape before, so a step like the one before it allocates nothing
//          (oneDNN itself allocates a few small lists in each call).
// Order    Bits do not depend on the number of threads: work is cut by the shapes alone.
// Errors   As checked by op_checks.h, before anything is enqueued.

#pragma once

#include "core/device/ops.h"

#include <memory>

namespace mr {

class ThreadPool;

// `pool` must outlive the ops.
std::unique_ptr<Ops> makeCpuOps(ThreadPool& pool);

} // namespace mr
