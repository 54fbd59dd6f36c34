#include "gpu/cublaslt_gemm.h"

#include "gpu/add_bias.h"
#include "gpu/command_count.h"
#include "gpu/cuda_status.h"
#include "gpu/gemm_shape.h"

#include <cublasLt.h>

#include <unordered_map>

namespace mr::gpu {
namespace {

// A run has some twenty shapes, generation a few for every length; a full table is emptied.
constexpr std::size_t kShapesReserved = 512;
constexpr std::size_t kShapesKept = 8192;

Status setAddress(GemmPlan& plan, cublasLtMatmulDescAttributes_t what, const void* address)
{
    return toStatus(cublasLtMatmulDescSetAttribute(&plan.product, what, &address, sizeof(address)),
        "cublasLtMatmulDesc");
}

class CublasLtGemm final : public Gemm
{
public:
    CublasLtGemm(const CudaFacts& facts, CudaFailure& failure)
        : m_failure(failure)
        , m_workspaceBytes(gemmWorkspaceBytes(facts))
    {
        m_plans.reserve(kShapesReserved);
    }

    ~CublasLtGemm() override;

    Status open();

    Status run(const Product& product, cudaStream_t stream) override;

private:
    Result<GemmPlan*> planFor(const GemmKey& key);
    Status multiply(GemmPlan& plan, const Product& product, cudaStream_t stream);
    Status takeWorkspace(cudaStream_t stream);
    Status fillWithoutProduct(const Product& product, cudaStream_t stream);

    CudaFailure& m_failure;
    const std::size_t m_workspaceBytes;
    cublasLtHandle_t m_library = nullptr;
    void* m_workspace = nullptr;
    cudaEvent_t m_workspaceFree = nullptr; // recorded after the last product that used it
    cudaStream_t m_workspaceStream = nullptr;
    std::unordered_map<GemmKey, GemmPlan, GemmKeyHash> m_plans;
};

CublasLtGemm::~CublasLtGemm()
{
    if (m_workspaceFree)
        m_failure.note(cudaEventDestroy(m_workspaceFree), "cudaEventDestroy");
    if (m_workspace)
        m_failure.note(cudaFree(m_workspace), "cudaFree");
    if (m_library)
        (void)cublasLtDestroy(m_library);
}

Status CublasLtGemm::open()
{
    MR_TRY(toStatus(cublasLtCreate(&m_library), "cublasLtCreate"));
    MR_TRY(m_failure.check(
        cudaMalloc(&m_workspace, m_workspaceBytes), "cudaMalloc of cuBLASLt's workspace"));
    return m_failure.check(
        cudaEventCreateWithFlags(&m_workspaceFree, cudaEventDisableTiming), "cudaEventCreate");
}

Status CublasLtGemm::run(const Product& product, cudaStream_t stream)
{
    const GemmKey key = keyOf(product);
    if (key.m == 0 || key.n == 0)
        return {};
    if (key.k == 0)
        return fillWithoutProduct(product, stream);
    MR_ASSIGN(auto plan, planFor(key));
    MR_TRY(multiply(*plan, product, stream));
    if (product.bias.data == nullptr || plan->addsBias)
        return {};
    return launchAddBias(product.out, product.bias, true, stream);
}

Result<GemmPlan*> CublasLtGemm::planFor(const GemmKey& key)
{
    if (const auto known = m_plans.find(key); known != m_plans.end())
        return &known->second;
    GemmPlan plan;
    MR_TRY(plan.choose(m_library, key, m_workspaceBytes));
    if (m_plans.size() == kShapesKept)
        m_plans.clear(); // the library proposes the same again
    return &m_plans.emplace(key, plan).first->second;
}

Status CublasLtGemm::multiply(GemmPlan& plan, const Product& product, cudaStream_t stream)
{
    const float beta = product.accumulate ? 1.0F : 0.0F;
    if (plan.addsBias)
        MR_TRY(setAddress(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias.data));
    if (product.scaleA != nullptr) { // the library's A is our b
        MR_TRY(setAddress(plan, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, product.scaleB));
        MR_TRY(setAddress(plan, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, product.scaleA));
    }
    if (plan.workspaceBytes > 0)
        MR_TRY(takeWorkspace(stream));
    countCommand();
    MR_TRY(toStatus(
        cublasLtMatmul(m_library, &plan.product, &product.factor, product.b.data, &plan.left,
            product.a.data, &plan.right, &beta, product.out.data, &plan.out, product.out.data,
            &plan.out, &plan.algorithm, m_workspace, m_workspaceBytes, stream),
        "cublasLtMatmul"));
    if (plan.workspaceBytes == 0)
        return {};
    return m_failure.check(cudaEventRecord(m_workspaceFree, stream), "cudaEventRecord");
}

Status CublasLtGemm::takeWorkspace(cudaStream_t stream)
{
    if (stream == m_workspaceStream)
        return {};
    m_workspaceStream = stream; // its handle is compared, never used: the stream may be gone
    return m_failure.check(cudaStreamWaitEvent(stream, m_workspaceFree, 0), "cudaStreamWaitEvent");
}

// A sum of nothing.
Status CublasLtGemm::fillWithoutProduct(const Product& product, cudaStream_t stream)
{
    if (product.accumulate)
        return {};
    if (product.bias.data != nullptr)
        return launchAddBias(product.out, product.bias, false, stream);
    return m_failure.check(
        cudaMemsetAsync(product.out.data, 0, product.out.bytes(), stream), "cudaMemsetAsync");
}

} // namespace

std::size_t gemmWorkspaceBytes(const CudaFacts& facts) noexcept
{
    return std::size_t{facts.computeMajor >= 9 ? 64U : 32U} << 20;
}

Result<std::unique_ptr<Gemm>> makeCublasLtGemm(const CudaFacts& facts, CudaFailure& failure)
{
    auto gemm = std::make_unique<CublasLtGemm>(facts, failure);
    MR_TRY(gemm->open());
    return std::unique_ptr<Gemm>(std::move(gemm));
}

} // namespace mr::gpu
