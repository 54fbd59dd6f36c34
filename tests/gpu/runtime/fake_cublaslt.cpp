#include "gpu/runtime/fake_cublaslt.h"

#include "core/prove/conformance_fp8.h"

#include <cublasLt.h>

#include <cstring>

namespace {

// Content of the opaque descriptors in this fake.
struct Desc {
    cublasOperation_t transposeA;
    cublasOperation_t transposeB;
    cublasLtEpilogue_t epilogue;
    const float* bias;
    const float* scaleA;
    const float* scaleB;
};

struct Layout {
    cudaDataType type;
    std::uint64_t rows;
    std::uint64_t cols;
    std::int64_t ld;
};

static_assert(sizeof(Desc) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));

template <typename To, typename From>
To read(From* opaque)
{
    To out;
    std::memcpy(static_cast<void*>(&out), opaque, sizeof(out));
    return out;
}

template <typename T>
T valueOf(const void* buffer)
{
    T out;
    std::memcpy(&out, buffer, sizeof(out));
    return out;
}

bool isFp8(cudaDataType type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

float scaleOf(const float* scale)
{
    return scale == nullptr ? 1.0F : *scale;
}

// Element (row, col) of op(X).
float element(
    const void* x, const Layout& layout, cublasOperation_t op, std::uint64_t row, std::uint64_t col)
{
    const std::uint64_t r = op == CUBLAS_OP_N ? row : col;
    const std::uint64_t c = op == CUBLAS_OP_N ? col : row;
    const std::uint64_t at = r + c * static_cast<std::uint64_t>(layout.ld);
    if (isFp8(layout.type))
        return static_cast<float>(mr::conformance::fp8Value(
            layout.type == CUDA_R_8F_E4M3 ? mr::DType::E4M3 : mr::DType::E5M2,
            static_cast<const std::uint8_t*>(x)[at]));
    return static_cast<const float*>(x)[at];
}

bool fits(const Layout& layout, cublasOperation_t op, std::uint64_t rows, std::uint64_t cols)
{
    const bool plain = op == CUBLAS_OP_N;
    return layout.rows == (plain ? rows : cols) && layout.cols == (plain ? cols : rows) &&
           layout.ld >= static_cast<std::int64_t>(layout.rows);
}

// As the documentation has it: both F32, or FP8 of which one at least is E4M3, with the summed axis
// adjacent in both and sizes of 16 bytes.
bool areTypesKnown(const Layout& left, const Layout& right, const Desc& desc)
{
    if (left.type == CUDA_R_32F && right.type == CUDA_R_32F)
        return desc.scaleA == nullptr && desc.scaleB == nullptr;
    const bool areSizesWhole = left.rows % 16 == 0 && left.cols % 16 == 0 && right.cols % 16 == 0;
    return isFp8(left.type) && isFp8(right.type) &&
           (left.type == CUDA_R_8F_E4M3 || right.type == CUDA_R_8F_E4M3) && areSizesWhole &&
           desc.transposeA == CUBLAS_OP_T && desc.transposeB == CUBLAS_OP_N;
}

} // namespace

namespace mr::test {

FakeCublasLt& fakeCublasLt()
{
    static FakeCublasLt fake;
    return fake;
}

} // namespace mr::test

extern "C" {

std::size_t cublasLtGetVersion()
{
    return 130'002;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle)
{
    *handle = reinterpret_cast<cublasLtHandle_t>(&mr::test::fakeCublasLt());
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusName(cublasStatus_t)
{
    return "CUBLAS_STATUS_OF_THE_FAKE";
}

const char* cublasLtGetStatusString(cublasStatus_t)
{
    return "a status of the fake library";
}

cublasStatus_t cublasLtMatmulDescInit_internal(
    cublasLtMatmulDesc_t desc, std::size_t, cublasComputeType_t, cudaDataType_t)
{
    const Desc fresh{
        CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, nullptr};
    std::memcpy(desc, &fresh, sizeof(fresh));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t opaque,
    cublasLtMatmulDescAttributes_t what, const void* value, std::size_t bytes)
{
    Desc desc = read<Desc>(opaque);
    if (what == CUBLASLT_MATMUL_DESC_TRANSA && bytes == 4)
        desc.transposeA = valueOf<cublasOperation_t>(value);
    else if (what == CUBLASLT_MATMUL_DESC_TRANSB && bytes == 4)
        desc.transposeB = valueOf<cublasOperation_t>(value);
    else if (what == CUBLASLT_MATMUL_DESC_EPILOGUE && bytes == 4)
        desc.epilogue = valueOf<cublasLtEpilogue_t>(value);
    else if (what == CUBLASLT_MATMUL_DESC_BIAS_POINTER && bytes == 8)
        desc.bias = valueOf<const float*>(value);
    else if (what == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER && bytes == 8)
        desc.scaleA = valueOf<const float*>(value);
    else if (what == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER && bytes == 8)
        desc.scaleB = valueOf<const float*>(value);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(opaque, &desc, sizeof(desc));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t opaque, std::size_t,
    cudaDataType type, std::uint64_t rows, std::uint64_t cols, std::int64_t ld)
{
    const Layout layout{type, rows, cols, ld};
    std::memcpy(opaque, &layout, sizeof(layout));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t, std::size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t what, const void* value, std::size_t bytes)
{
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return bytes == 8 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    if (bytes != 4)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        mr::test::fakeCublasLt().reductions = valueOf<std::uint32_t>(value);
    else
        mr::test::fakeCublasLt().alignment = valueOf<std::uint32_t>(value);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t results[], int* count)
{
    ++mr::test::fakeCublasLt().proposals;
    const mr::test::FakeCublasLt& fake = mr::test::fakeCublasLt();
    const bool isBiased = read<Desc>(desc).epilogue == CUBLASLT_EPILOGUE_BIAS;
    *count = fake.hasAlgorithm && (fake.addsBiases || !isBiased) ? 1 : 0;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].workspaceSize = 1024;
    return *count == 1 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t descOpaque, const void* alpha,
    const void* a, cublasLtMatrixLayout_t aOpaque, const void* b, cublasLtMatrixLayout_t bOpaque,
    const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
    cublasLtMatrixLayout_t dOpaque, const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t)
{
    const Desc desc = read<Desc>(descOpaque);
    const auto left = read<Layout>(aOpaque);
    const auto right = read<Layout>(bOpaque);
    const auto out = read<Layout>(dOpaque);
    const std::uint64_t k = desc.transposeA == CUBLAS_OP_N ? left.cols : left.rows;
    if (c != d || !fits(left, desc.transposeA, out.rows, k) ||
        !fits(right, desc.transposeB, k, out.cols) || !areTypesKnown(left, right, desc))
        return CUBLAS_STATUS_INVALID_VALUE;
    mr::test::fakeCublasLt().scaleB = desc.scaleB;
    auto* result = static_cast<float*>(d);
    for (std::uint64_t col = 0; col < out.cols; ++col) {
        for (std::uint64_t row = 0; row < out.rows; ++row) {
            float sum = 0.0F;
            for (std::uint64_t i = 0; i < k; ++i)
                sum += element(a, left, desc.transposeA, row, i) *
                       element(b, right, desc.transposeB, i, col);
            sum *= scaleOf(desc.scaleA) * scaleOf(desc.scaleB);
            float& at = result[row + col * static_cast<std::uint64_t>(out.ld)];
            at = valueOf<float>(alpha) * sum +
                 (valueOf<float>(beta) == 0.0F ? 0.0F : valueOf<float>(beta) * at);
            if (desc.epilogue == CUBLASLT_EPILOGUE_BIAS)
                at += desc.bias[row];
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}
}
