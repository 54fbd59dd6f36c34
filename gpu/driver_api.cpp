#include "gpu/driver_api.h"

#include <cuda.h>

namespace mr::gpu {
namespace {

using WaitValue64 = CUresult(CUDAAPI*)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);
using DeviceGet = CUresult(CUDAAPI*)(CUdevice*, int);
using DeviceGetAttribute = CUresult(CUDAAPI*)(int*, CUdevice_attribute, CUdevice);

// Entry points as CUDA 12.0 defines them, the oldest toolkit this is built with: later drivers
// keep them.
constexpr unsigned kEntryVersion = 12000;

template <typename Fn>
Fn entryPoint(const char* symbol) noexcept
{
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion(symbol, &entry, kEntryVersion, cudaEnableDefault, &found);
#else
    const cudaError_t code = cudaGetDriverEntryPoint(symbol, &entry, cudaEnableDefault, &found);
#endif
    if (code == cudaSuccess && found == cudaDriverEntryPointSuccess)
        return reinterpret_cast<Fn>(entry);
    (void)cudaGetLastError();
    return nullptr;
}

} // namespace

cudaError_t DriverApi::waitUntilAtLeast(
    cudaStream_t stream, const void* word, std::uint64_t value) const noexcept
{
    const CUresult code = reinterpret_cast<WaitValue64>(m_waitValue)(
        stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WAIT_VALUE_GEQ);
    return static_cast<cudaError_t>(code); // one numbering since CUDA 10.1
}

DriverApi loadDriverApi(int device) noexcept
{
    DriverApi api;
    const auto deviceGet = entryPoint<DeviceGet>("cuDeviceGet");
    const auto attribute = entryPoint<DeviceGetAttribute>("cuDeviceGetAttribute");
    const auto waitValue = entryPoint<WaitValue64>("cuStreamWaitValue64");
    CUdevice handle = 0;
    int offered = 0;
    if (deviceGet && attribute && waitValue && deviceGet(&handle, device) == CUDA_SUCCESS &&
        attribute(&offered, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, handle) ==
            CUDA_SUCCESS &&
        offered != 0)
        api.m_waitValue = reinterpret_cast<void*>(waitValue);
    return api;
}

} // namespace mr::gpu
