// The fake runtime: what a card and its driver say of themselves, and of errors.

#include "gpu/runtime/fake_card.h"

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace {

using namespace mr::test;

CUresult waitValue(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned)
{
    const Call call;
    auto* at = reinterpret_cast<std::uint64_t*>(word);
    const auto isReached = [at, value] {
        const std::uint64_t now = std::atomic_ref(*at).load(std::memory_order_acquire);
        return static_cast<std::int64_t>(now - value) >= 0;
    };
    return static_cast<CUresult>(enqueue(call, stream, {isReached, {}}));
}

CUresult deviceGet(CUdevice* device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult deviceAttribute(int* value, CUdevice_attribute, CUdevice)
{
    *value = cardState().card.waitsForValues ? 1 : 0;
    return CUDA_SUCCESS;
}

} // namespace

extern "C" {

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t)
{
    return "cudaErrorOfTheFake";
}

const char* cudaGetErrorString(cudaError_t code)
{
    CardState& all = cardState();
    const std::lock_guard lock(all.cardMutex);
    return code == cudaErrorLaunchFailure && !all.failure.empty() ? all.failure.c_str()
                                                                  : "an error of the fake runtime";
}

cudaError_t cudaGetDeviceCount(int* count)
{
    if (cardState().card.countAnswer == cudaSuccess)
        *count = 1;
    return cardState().card.countAnswer;
}

cudaError_t cudaDriverGetVersion(int* version)
{
    *version = cardState().card.driverVersion;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* card, int)
{
    *card = {};
    std::strncpy(card->name, "Fake Card", sizeof card->name - 1);
    card->major = cardState().card.computeMajor;
    card->minor = cardState().card.computeMinor;
    card->totalGlobalMem = cardState().card.memoryBytes;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int)
{
    const FakeCard& card = cardState().card;
    *value = attribute == cudaDevAttrMultiProcessorCount ? card.multiprocessors
                                                         : static_cast<int>(card.sharedBytes);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* freeBytes, std::size_t* totalBytes)
{
    const CardState& all = cardState();
    *totalBytes = all.card.memoryBytes;
    *freeBytes = all.card.memoryBytes - all.deviceBytes;
    return cudaSuccess;
}

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** entry, unsigned,
    unsigned long long, cudaDriverEntryPointQueryResult* found)
#else
cudaError_t cudaGetDriverEntryPoint(
    const char* symbol, void** entry, unsigned long long, cudaDriverEntryPointQueryResult* found)
#endif
{
    const std::string_view name(symbol);
    if (name == "cuStreamWaitValue64")
        *entry = reinterpret_cast<void*>(&waitValue);
    else if (name == "cuDeviceGet")
        *entry = reinterpret_cast<void*>(&deviceGet);
    else
        *entry = reinterpret_cast<void*>(&deviceAttribute);
    *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
}
