// Key that decides a product's algorithm, and the product as cuBLASLt takes it.
//
// Threads  Values and pure functions; only GemmPlan::choose() calls the library.
// Errors   InvalidArgument if the library has no algorithm; those of toStatus() of a library code.

#pragma once

#include "gpu/gemm.h"

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace mr::gpu {

struct GemmKey {
    std::int64_t m = 0; // m, n, k: as in the row-major product
    std::int64_t n = 0;
    std::int64_t k = 0;
    DType in = DType::BF16;  // of a
    DType inB = DType::BF16; // of b: another than in only of FP8 operands
    DType out = DType::BF16;
    std::int64_t rowOfA = 0; // from a row to the next
    std::int64_t rowOfB = 0;
    std::int64_t rowOfOut = 0;
    bool transposeA = false;
    bool transposeB = false;
    bool bias = false;            // of the result's type, which the library may add
    std::uint32_t alignment = 16; // bytes; that of the least aligned address, 16 or less

    friend bool operator==(const GemmKey&, const GemmKey&) = default;
};

struct GemmKeyHash {
    std::size_t operator()(const GemmKey& key) const noexcept;
};

// The library adds a bias of the result's type only.
GemmKey keyOf(const Product& product) noexcept;

// A shape as the library wants it, with the algorithm it proposed. A value.
struct GemmPlan {
    cublasLtMatmulDescOpaque_t product{};
    cublasLtMatrixLayoutOpaque_t left{};  // our b
    cublasLtMatrixLayoutOpaque_t right{}; // our a
    cublasLtMatrixLayoutOpaque_t out{};
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspaceBytes = 0;
    bool addsBias = false; // the library does; else whoever runs the product

    // Without an algorithm that adds the bias, one that does not.
    Status choose(cublasLtHandle_t library, const GemmKey& key, std::size_t workspaceLimit);

private:
    // False: the library has no algorithm.
    Result<bool> propose(cublasLtHandle_t library, const GemmKey& key, std::size_t workspaceLimit);
};

// `what` names the call.
Status toStatus(cublasStatus_t code, std::string_view what);

} // namespace mr::gpu
