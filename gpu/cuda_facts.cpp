#include "gpu/cuda_facts.h"

#include "gpu/cublaslt_gemm.h"
#include "gpu/cuda_status.h"
#include "gpu/kernel_image.h"
#include "gpu/kernel_list.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace mr::gpu {
namespace {

constexpr int kOldestCompute = 75; // oldest card that CUDA 13 and its libraries support

Status unusable(std::string text)
{
    return Status::error(ErrorKind::InvalidArgument, "device cuda: " + std::move(text));
}

std::string versionText(int version)
{
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// The oldest driver that runs programs of this CUDA: NVIDIA's release notes, "CUDA minor version
// compatibility".
const char* oldestDriver()
{
    return CUDART_VERSION >= 13000 ? "580" : "525";
}

Status noDriver(int driverVersion)
{
    const std::string install =
        std::string("install NVIDIA driver ") + oldestDriver() + " or later, or choose device cpu";
    if (driverVersion == 0)
        return unusable("there is no NVIDIA driver on this machine; " + install);
    return unusable("the NVIDIA driver is too old: it knows CUDA " + versionText(driverVersion) +
                    ", this program was built with CUDA " + versionText(CUDART_VERSION) + "; " +
                    install);
}

Status explain(cudaError_t code)
{
    (void)cudaGetLastError();
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        driver = 0;
    switch (code) {
    case cudaErrorInsufficientDriver:
        return noDriver(driver);
    case cudaErrorStubLibrary:
        return unusable("the first libcuda.so found is the CUDA toolkit's stub, not a driver; take "
                        "its folder out of LD_LIBRARY_PATH and install the NVIDIA driver, or "
                        "choose device cpu");
    case cudaErrorNoDevice:
        return unusable("the NVIDIA driver sees no GPU; check that one is installed and that "
                        "CUDA_VISIBLE_DEVICES does not hide it, or choose device cpu");
    default:
        return Status::error(
            ErrorKind::DeviceLost, std::string("device cuda: the NVIDIA driver does not answer: ") +
                                       cudaGetErrorName(code) + ": " + cudaGetErrorString(code) +
                                       "; restart the machine if this stays, or choose device cpu");
    }
}

// Counts are left unwritten by a call that fails.
Status requireCard()
{
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess)
        return explain(code);
    return count > 0 ? Status() : explain(cudaErrorNoDevice);
}

Status readCard(CudaFacts& facts)
{
    cudaDeviceProp card{};
    MR_TRY(toStatus(cudaGetDeviceProperties(&card, 0), "cudaGetDeviceProperties"));
    facts.name = card.name;
    facts.computeMajor = card.major;
    facts.computeMinor = card.minor;
    facts.totalBytes = card.totalGlobalMem;
    facts.bf16 = card.major >= 8;
    facts.runtimeVersion = CUDART_VERSION;
    facts.cublasLtVersion = cublasLtGetVersion();
    return toStatus(cudaDriverGetVersion(&facts.driverVersion), "cudaDriverGetVersion");
}

Result<std::uint64_t> freeOnCard()
{
    std::size_t freeBytes = 0;
    std::size_t totalBytes = 0;
    const cudaError_t code = cudaMemGetInfo(&freeBytes, &totalBytes);
    if (code != cudaSuccess)
        return explain(code);
    return std::uint64_t{freeBytes};
}

} // namespace

Result<CudaFacts> inspectCuda()
{
    MR_TRY(requireCard());
    CudaFacts facts;
    MR_TRY(readCard(facts));
    const int compute = 10 * facts.computeMajor + facts.computeMinor;
    const std::string card = fmt::format("{} (sm_{})", facts.name, compute);
    if (compute < kOldestCompute)
        return unusable(card + " is too old: a card of compute capability 7.5 or later is needed "
                               "(GeForce RTX 20, Tesla T4 and newer); choose another one with "
                               "CUDA_VISIBLE_DEVICES, or device cpu");
    MR_TRY(freeOnCard().status()); // the first call that needs the card itself
    if (const Status image = checkKernelImage(card); !image.ok())
        return Status::error(image.kind(), "device cuda: " + image.message());
    if (const Status loaded = loadKernels(); !loaded.ok())
        return Status::error(loaded.kind(), "device cuda: " + loaded.message());
    MR_ASSIGN(auto left, freeOnCard());
    facts.freeBytes = left - std::min<std::uint64_t>(left, gemmWorkspaceBytes(facts));
    return facts;
}

std::string instructionSetOf(const CudaFacts& facts)
{
    // Since 12 the library numbers itself 10000 * major + 100 * minor + patch.
    const std::size_t lt = facts.cublasLtVersion;
    return fmt::format("sm_{} cublasLt {}.{}.{}", 10 * facts.computeMajor + facts.computeMinor,
        lt / 10000, lt / 100 % 100, lt % 100);
}

} // namespace mr::gpu
