// Ops of the CUDA device: each checks its arguments, then launches its kernels or a product.
//
// The host device of the tests compiles this file too, with launchers that run on the host.
//
// Threads    Engine thread.
// Ownership  Borrows `gemm`, which lives longer.
// Errors     InvalidArgument of op_checks; those of the launchers and of Gemm otherwise.

#pragma once

#include "core/device/ops.h"
#include "gpu/gemm.h"
#include "gpu/ops/attention_choice.h"

#include <functional>
#include <memory>

namespace mr::gpu {

// Told of each error of an enqueue, which may be that of earlier work.
using FailureHook = std::function<void(const Status&)>;

std::unique_ptr<Ops> makeCudaOps(
    Gemm& gemm, const AttentionChoice& attention, FailureHook onFailure = {});

} // namespace mr::gpu
