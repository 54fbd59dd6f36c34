// Causal attention in tiles, forward and backward. See AttentionArgs.
//
// Method: online softmax over key blocks (Dao et al., "FlashAttention", algorithm 1; backward
// recomputes the probabilities from the log-sum-exp, algorithm 4). Products are gemm_kernel.h.
//
// Rows fall into segments: row ranges of which no row sees a row before its start. Documents
// laid end to end are segments, so they cost the sum of their squares, not the square of the sum.
//
// Threads  Forward forks over (kv head, query block); backward over (kv head, segment), each of
//          which sums its dK and dV in one order.
// Memory   Forward O(1), backward O(longest segment) floats per thread.

#pragma once

#include "core/base/parallel.h"
#include "core/device/cpu/ops/scratch.h"
#include "core/device/ops.h"

namespace mr::cpu {

void attention(const AttentionArgs& args, ThreadPool& pool, Scratch& scratch);

void attentionBackward(const AttentionBackwardArgs& args, ThreadPool& pool, Scratch& scratch);

} // namespace mr::cpu
