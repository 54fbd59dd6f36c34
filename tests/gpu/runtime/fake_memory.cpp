// The fake runtime: memory of the card and of the host, and copies between them.

#include "gpu/runtime/fake_card.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>

namespace {

using namespace mr::test;

bool insideOne(const Ranges& ranges, const void* data, std::size_t bytes)
{
    const auto* first = static_cast<const std::byte*>(data);
    auto next = ranges.upper_bound(first);
    if (next == ranges.begin())
        return false;
    --next;
    const auto offset = static_cast<std::size_t>(first - next->first);
    return offset <= next->second && bytes <= next->second - offset;
}

// Takes the range that begins there; 0: there is none.
std::size_t taken(Ranges& ranges, const void* data)
{
    const auto found = ranges.find(static_cast<const std::byte*>(data));
    if (found == ranges.end())
        return 0;
    const std::size_t bytes = found->second;
    ranges.erase(found);
    std::unique_lock lock(cardState().cardMutex);
    awaitKernel(lock);
    return bytes;
}

} // namespace

extern "C" {

cudaError_t cudaMalloc(void** data, std::size_t bytes)
{
    MR_ENTER;
    CardState& all = cardState();
    if (bytes > all.card.memoryBytes - all.deviceBytes)
        return cudaErrorMemoryAllocation;
    *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(*data, 0xAB, bytes); // bytes that are not zeroed show
    all.device[static_cast<std::byte*>(*data)] = bytes;
    all.deviceBytes += bytes;
    ++all.card.allocations;
    tellAllocated(*data, bytes, false);
    return cudaSuccess;
}

cudaError_t cudaFree(void* data)
{
    MR_ENTER;
    pump();
    const std::size_t bytes = taken(cardState().device, data);
    if (bytes == 0)
        return cudaErrorInvalidValue;
    cardState().deviceBytes -= bytes;
    tellFreed(data, bytes);
    std::free(data);
    --cardState().card.allocations;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned)
{
    MR_ENTER;
    *data = std::aligned_alloc(4096, bytes);
    cardState().hostBlocks[static_cast<std::byte*>(*data)] = bytes;
    ++cardState().card.allocations;
    tellAllocated(*data, bytes, true); // the host writes it unseen
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data)
{
    tellFreed(data, taken(cardState().hostBlocks, data));
    std::free(data);
    --cardState().card.allocations;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned)
{
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned)
{
    CardState& all = cardState();
    const std::scoped_lock lock(all.mutex);
    if (all.registrationsTried++ == all.card.failRegistration)
        return cudaErrorMemoryAllocation;
    all.registered[static_cast<std::byte*>(data)] = bytes;
    ++all.card.registrations;
    tellAllocated(data, bytes, true);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* data)
{
    const std::size_t bytes = taken(cardState().registered, data);
    if (bytes == 0)
        return cudaErrorHostMemoryNotRegistered;
    --cardState().card.registrations;
    tellFreed(data, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream)
{
    MR_ENTER;
    const auto set = [data, value, bytes] {
        std::memset(data, value, bytes);
        tellWritten(data, bytes);
        return true;
    };
    return enqueue(call, stream, {set, {}});
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    MR_ENTER;
    CardState& all = cardState();
    const bool toDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool fromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (!insideOne(toDevice ? all.device : all.registered, to, bytes) ||
        !insideOne(fromDevice ? all.device : all.registered, from, bytes))
        return cudaErrorInvalidValue;
    ++all.card.copies;
    const auto copy = [to, from, bytes] {
        std::memcpy(to, from, bytes);
        tellWritten(to, bytes);
        return true;
    };
    return enqueue(call, stream, {copy, {}});
}
}
