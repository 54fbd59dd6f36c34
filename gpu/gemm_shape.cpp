#include "gpu/gemm_shape.h"

#include "gpu/cuda_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace mr::gpu {
namespace {

// Base addresses that are aligned better than this must not change the algorithm: one policy would
// otherwise get other bits than another that places the same tensor elsewhere.
constexpr std::uint32_t kOperandAlignment = 16;

bool isCode(DType type)
{
    return type == DType::E4M3 || type == DType::E5M2;
}

cudaDataType typeOf(DType type)
{
    if (isCode(type))
        return type == DType::E4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
    return type == DType::F32 ? CUDA_R_32F : CUDA_R_16BF;
}

std::uint32_t alignmentOf(const TensorView& tensor)
{
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
    std::uint32_t alignment = kOperandAlignment;
    while (address % alignment != 0)
        alignment /= 2;
    return alignment;
}

std::string text(const GemmKey& key)
{
    return fmt::format("matrix product ({}, {}) x ({}, {}) in {}", key.m, key.k, key.k, key.n,
        isCode(key.in)         ? "FP8"
        : key.in == DType::F32 ? "F32"
                               : "BF16");
}

template <typename T>
cublasStatus_t set(cublasLtMatmulDescOpaque_t& desc, cublasLtMatmulDescAttributes_t what, T value)
{
    return cublasLtMatmulDescSetAttribute(&desc, what, &value, sizeof(value));
}

template <typename T>
cublasStatus_t set(cublasLtMatmulPreferenceOpaque_t& preference,
    cublasLtMatmulPreferenceAttributes_t what, T value)
{
    return cublasLtMatmulPreferenceSetAttribute(&preference, what, &value, sizeof(value));
}

Status describe(GemmPlan& plan, const GemmKey& key)
{
    const auto call = [](cublasStatus_t code) { return toStatus(code, "cublasLtMatmulDesc"); };
    MR_TRY(call(cublasLtMatmulDescInit(&plan.product, CUBLAS_COMPUTE_32F, CUDA_R_32F)));
    MR_TRY(call(set(
        plan.product, CUBLASLT_MATMUL_DESC_TRANSA, key.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N)));
    MR_TRY(call(set(
        plan.product, CUBLASLT_MATMUL_DESC_TRANSB, key.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N)));
    if (!key.bias)
        return {};
    MR_TRY(call(set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS)));
    // An address that is not read before the product runs: only its alignment counts here.
    return call(
        set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{key.alignment}));
}

// A row-major (rows, cols) is a column-major (cols, rows), whose leading dimension is `row`.
cublasStatus_t layOut(cublasLtMatrixLayoutOpaque_t& layout, DType type, std::int64_t rows,
    std::int64_t cols, std::int64_t row)
{
    return cublasLtMatrixLayoutInit(&layout, typeOf(type), static_cast<std::uint64_t>(cols),
        static_cast<std::uint64_t>(rows), row);
}

Status layOutAll(GemmPlan& plan, const GemmKey& key)
{
    const auto call = [](cublasStatus_t code) { return toStatus(code, "cublasLtMatrixLayout"); };
    MR_TRY(call(layOut(plan.right, key.in, key.transposeA ? key.k : key.m,
        key.transposeA ? key.m : key.k, key.rowOfA)));
    MR_TRY(call(layOut(plan.left, key.inB, key.transposeB ? key.n : key.k,
        key.transposeB ? key.k : key.n, key.rowOfB)));
    return call(layOut(plan.out, key.out, key.m, key.n, key.rowOfOut));
}

// NONE is zero and always allowed. COMPUTE_TYPE adds the parts of k in F32 in a pass of its own; a
// bias is then added after the rounding, so a product with one does not split k. INPLACE would
// round each part to the result's type and add it to the old values of `accumulate`.
Status prefer(
    cublasLtMatmulPreferenceOpaque_t& preference, const GemmKey& key, std::size_t workspaceLimit)
{
    const auto call = [](cublasStatus_t code) {
        return toStatus(code, "cublasLtMatmulPreference");
    };
    MR_TRY(call(cublasLtMatmulPreferenceInit(&preference)));
    MR_TRY(call(set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceLimit)));
    MR_TRY(call(set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        key.bias ? std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE}
                 : std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE})));
    for (const auto attribute :
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        MR_TRY(call(set(preference, attribute, key.alignment)));
    return {};
}

} // namespace

std::size_t GemmKeyHash::operator()(const GemmKey& key) const noexcept
{
    std::uint64_t hash =
        (std::uint64_t{key.alignment} << 8) | (static_cast<std::uint64_t>(key.in) << 16) |
        (static_cast<std::uint64_t>(key.out) << 24) | (static_cast<std::uint64_t>(key.inB) << 32) |
        (key.transposeA ? 1U : 0U) | (key.transposeB ? 2U : 0U) | (key.bias ? 4U : 0U);
    for (const std::int64_t length : {key.m, key.n, key.k, key.rowOfA, key.rowOfB, key.rowOfOut}) {
        hash = (hash ^ static_cast<std::uint64_t>(length)) * 0x9e3779b97f4a7c15U; // 2^64 / phi
        hash ^= hash >> 29;
    }
    return hash;
}

GemmKey keyOf(const Product& product) noexcept
{
    GemmKey key;
    key.m = product.out.dims[0];
    key.n = product.out.dims[1];
    key.k = product.a.dims[product.transposeA ? 0 : 1];
    key.in = product.a.dtype;
    key.inB = product.b.dtype;
    key.out = product.out.dtype;
    key.rowOfA = product.rowOfA > 0 ? product.rowOfA : product.a.dims[1];
    key.rowOfB = product.rowOfB > 0 ? product.rowOfB : product.b.dims[1];
    key.rowOfOut = product.rowOfOut > 0 ? product.rowOfOut : product.out.dims[1];
    key.transposeA = product.transposeA;
    key.transposeB = product.transposeB;
    key.bias = product.bias.data != nullptr && product.bias.dtype == product.out.dtype;
    key.alignment = std::min({alignmentOf(product.a), alignmentOf(product.b),
        alignmentOf(product.out), key.bias ? alignmentOf(product.bias) : kOperandAlignment});
    return key;
}

Status GemmPlan::choose(cublasLtHandle_t library, const GemmKey& key, std::size_t workspaceLimit)
{
    GemmKey asked = key;
    MR_ASSIGN(bool isOffered, propose(library, asked, workspaceLimit));
    if (!isOffered && key.bias) {
        asked.bias = false;
        MR_ASSIGN(isOffered, propose(library, asked, workspaceLimit));
    }
    addsBias = asked.bias;
    if (isOffered)
        return {};
    return Status::error(
        ErrorKind::InvalidArgument, text(key) + ": cuBLASLt has no algorithm for it on this card");
}

Result<bool> GemmPlan::propose(
    cublasLtHandle_t library, const GemmKey& key, std::size_t workspaceLimit)
{
    MR_TRY(describe(*this, key));
    MR_TRY(layOutAll(*this, key));
    cublasLtMatmulPreferenceOpaque_t preference{};
    MR_TRY(prefer(preference, key, workspaceLimit));
    cublasLtMatmulHeuristicResult_t proposal{};
    int count = 0;
    const cublasStatus_t code = cublasLtMatmulAlgoGetHeuristic(
        library, &product, &left, &right, &out, &out, &preference, 1, &proposal, &count);
    if (code == CUBLAS_STATUS_NOT_SUPPORTED || (code == CUBLAS_STATUS_SUCCESS && count == 0))
        return false;
    MR_TRY(toStatus(code, "cublasLtMatmulAlgoGetHeuristic"));
    MR_TRY(toStatus(proposal.state, "cublasLtMatmulAlgoGetHeuristic"));
    algorithm = proposal.algo;
    workspaceBytes = proposal.workspaceSize;
    return true;
}

Status toStatus(cublasStatus_t code, std::string_view what)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return {};
    ErrorKind kind = ErrorKind::Internal;
    if (code == CUBLAS_STATUS_ALLOC_FAILED)
        kind = ErrorKind::OutOfMemory;
    // A launch that failed: the runtime knows whether the card survived it.
    if (code == CUBLAS_STATUS_EXECUTION_FAILED)
        if (const cudaError_t cause = cudaGetLastError(); cause != cudaSuccess)
            return toStatus(cause, what);
    return Status::error(kind, std::string(what) + ": " + cublasLtGetStatusName(code) + ": " +
                                   cublasLtGetStatusString(code));
}

} // namespace mr::gpu
