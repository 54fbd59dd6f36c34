#include "gpu/runtime/fake_cublaslt.h"

#include "gpu/runtime/fake_card.h"
#include "gpu/simt/host_product.h"

#include <cublasLt.h>

#include <cstdint>
#include <cstring>
#include <string>

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

mr::DType typeOf(cudaDataType type)
{
    switch (type) {
    case CUDA_R_16BF:
        return mr::DType::BF16;
    case CUDA_R_8F_E4M3:
        return mr::DType::E4M3;
    case CUDA_R_8F_E5M2:
        return mr::DType::E5M2;
    default:
        return mr::DType::F32;
    }
}

// op(X), column by column as it lies.
mr::simt::HostMatrix matrixOf(const void* x, const Layout& layout, cublasOperation_t op)
{
    const mr::simt::HostMatrix plain{static_cast<std::byte*>(const_cast<void*>(x)),
        typeOf(layout.type), static_cast<std::int64_t>(layout.rows),
        static_cast<std::int64_t>(layout.cols), 1, layout.ld};
    return op == CUBLAS_OP_N ? plain : mr::simt::transposed(plain);
}

bool fits(const Layout& layout, cublasOperation_t op, std::uint64_t rows, std::uint64_t cols)
{
    const bool plain = op == CUBLAS_OP_N;
    return layout.rows == (plain ? rows : cols) && layout.cols == (plain ? cols : rows) &&
           layout.ld >= static_cast<std::int64_t>(layout.rows);
}

// As the documentation has it: both F32, to F32; both BF16; or FP8 of which one at least is E4M3,
// with the summed axis adjacent in both and sizes of 16 bytes.
bool areTypesKnown(const Layout& left, const Layout& right, const Layout& out, const Desc& desc)
{
    if (out.type != CUDA_R_32F && (out.type != CUDA_R_16BF || left.type == CUDA_R_32F))
        return false;
    if (left.type == right.type && (left.type == CUDA_R_32F || left.type == CUDA_R_16BF))
        return desc.scaleA == nullptr && desc.scaleB == nullptr;
    const bool areSizesWhole = left.rows % 16 == 0 && left.cols % 16 == 0 && right.cols % 16 == 0;
    return isFp8(left.type) && isFp8(right.type) &&
           (left.type == CUDA_R_8F_E4M3 || right.type == CUDA_R_8F_E4M3) && areSizesWhole &&
           desc.transposeA == CUBLAS_OP_T && desc.transposeB == CUBLAS_OP_N;
}

struct Numbers {
    float alpha = 0.0F;
    float beta = 0.0F; // 0 or 1
    const float* scaleA = nullptr;
    const float* scaleB = nullptr;
};

// Scales are read when the stream comes to the product.
std::string run(mr::simt::HostProduct product, const Numbers& numbers)
{
    product.scale = numbers.alpha;
    if (numbers.scaleA)
        product.scale *= *numbers.scaleA * *numbers.scaleB;
    product.accumulates = numbers.beta != 0.0F;
    mr::simt::multiply(product);
    const mr::simt::HostMatrix& out = product.out;
    const std::int64_t elements = (out.rows - 1) * out.rowStep + out.cols;
    mr::test::tellWritten(out.data, static_cast<std::size_t>(elements) * mr::sizeOf(out.dtype));
    return {};
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

// The bytes of a column-major (m, n) are those of a row-major (n, m), whose rows lie next to each
// other: so the transposed product runs.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t descOpaque, const void* alpha,
    const void* a, cublasLtMatrixLayout_t aOpaque, const void* b, cublasLtMatrixLayout_t bOpaque,
    const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
    cublasLtMatrixLayout_t dOpaque, const cublasLtMatmulAlgo_t*, void*, std::size_t,
    cudaStream_t stream)
{
    using mr::simt::transposed;
    const Desc desc = read<Desc>(descOpaque);
    const auto left = read<Layout>(aOpaque);
    const auto right = read<Layout>(bOpaque);
    const auto out = read<Layout>(dOpaque);
    const Numbers numbers{valueOf<float>(alpha), valueOf<float>(beta), desc.scaleA, desc.scaleB};
    const std::uint64_t k = desc.transposeA == CUBLAS_OP_N ? left.cols : left.rows;
    if (c != d || !fits(left, desc.transposeA, out.rows, k) ||
        !fits(right, desc.transposeB, k, out.cols) || !areTypesKnown(left, right, out, desc) ||
        (numbers.beta != 0.0F && numbers.beta != 1.0F))
        return CUBLAS_STATUS_INVALID_VALUE;
    mr::test::fakeCublasLt().scaleB = desc.scaleB;
    mr::simt::HostProduct product;
    product.a = transposed(matrixOf(b, right, desc.transposeB));
    product.b = transposed(matrixOf(a, left, desc.transposeA));
    product.out = transposed(matrixOf(d, out, CUBLAS_OP_N));
    if (desc.epilogue == CUBLASLT_EPILOGUE_BIAS)
        product.bias = matrixOf(desc.bias, {out.type, 1, out.rows, 1}, CUBLAS_OP_N);
    const auto work = [product, numbers] { return run(product, numbers); };
    return mr::test::enqueueWork(stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                              : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
