// Gemm: matrix products of the CUDA device. cuBLASLt implements it; the tests' host device has one
// in plain C++.
//
// Order    The same shape takes the same algorithm in every call and every run on one card and
//          library, so bits repeat. No algorithm that adds atomically is used.
// Threads  Engine thread.
// Errors   InvalidArgument if the library has no algorithm for a shape on this card; those of
//          toStatus() otherwise. Arguments were checked by op_checks.

#pragma once

#include "core/device/tensor.h"

#include <millrace/status.h>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace mr::gpu {

// out (m, n) (+)= factor op(a) op(b) + bias, all row-major; op transposes where asked.
struct Product {
    TensorView a;    // (m, k), or (k, m) if transposeA; A, or E4M3 or E5M2
    TensorView b;    // (k, n), or (n, k) if transposeB; A, or E4M3
    TensorView out;  // (m, n), A or F32; of FP8 operands BF16 or F32
    TensorView bias; // (n), A; data null: none; not with accumulate; of FP8 operands BF16
    bool transposeA = false;
    bool transposeB = false;
    bool accumulate = false;       // one F32 addition per element, after the whole product
    const float* scaleA = nullptr; // of FP8 operands, on the device: factors of the product
    const float* scaleB = nullptr;
    float factor = 1.0F;
    // From a row to the next, in elements; 0: the matrix is dense.
    std::int64_t rowOfA = 0;
    std::int64_t rowOfB = 0;
    std::int64_t rowOfOut = 0;
};

class Gemm
{
public:
    virtual ~Gemm() = default;

    virtual Status run(const Product& product, cudaStream_t stream) = 0;
};

} // namespace mr::gpu
