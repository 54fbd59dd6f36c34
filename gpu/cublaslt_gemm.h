// Gemm by cuBLASLt.
//
// Our matrices are row-major, the library's column-major. The bytes of a row-major (m, n) are those
// of a column-major (n, m), so out = op(a) op(b) runs as out^T = op(b)^T op(a)^T, without a copy.
//
// Order    BF16 in: F32 sums, rounded once to the type of `out`. F32 in: CUBLAS_COMPUTE_32F, which
//          excludes TF32. The algorithm of a shape is the library's first proposal that either does
//          not split k or adds the parts in F32 in a pass of its own, in order: nothing adds
//          atomically, and `accumulate` (beta 1) is one more addition after the whole sum. It
//          depends on the shape, types and transposes, on addresses only where one is not aligned
//          to 16 bytes, on neither memory nor load.
//          A bias is added by the library before rounding, by an algorithm that does not split k;
//          where the library offers none, and to an F32 result from BF16, by a kernel of ours after
//          the product.
//          FP8 in: as BF16 in, times both scales before bias and rounding. The library takes FP8
//          with the summed axis adjacent in both operands only, which transposeB alone gives. Its
//          fast accumulation stays off, which keeps fewer bits.
// Threads  Engine thread. One workspace serves all streams: a product that needs it waits for the
//          last one that did on another stream.
// Memory   The workspace is taken once, outside the device's budget: 32 MiB, from sm_90 on 64 MiB,
//          which the library asks for to use that card well. A shape's first product allocates on
//          the heap; later ones do not.
// Errors   InvalidArgument if the library has no algorithm for a shape on this card.

#pragma once

#include "gpu/cuda_facts.h"
#include "gpu/cuda_failure.h"
#include "gpu/gemm.h"

#include <cstddef>
#include <memory>

namespace mr::gpu {

// Bytes of the workspace that every product may use.
std::size_t gemmWorkspaceBytes(const CudaFacts& facts) noexcept;

// Borrows `failure`.
Result<std::unique_ptr<Gemm>> makeCublasLtGemm(const CudaFacts& facts, CudaFailure& failure);

} // namespace mr::gpu
