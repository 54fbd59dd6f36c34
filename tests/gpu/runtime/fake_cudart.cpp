#include "gpu/runtime/fake_cudart.h"

#include <cuda.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

struct CUstream_st {
    std::deque<std::function<bool()>> work; // false: not yet
};

struct CUevent_st {
    std::uint64_t recorded = 0;
    std::uint64_t passed = 0;
    std::int64_t cardNs = 0;
};

namespace {

struct State {
    mr::test::FakeCard card;
    std::mutex mutex; // guards registered
    std::map<const std::byte*, std::size_t> registered;
    std::map<const std::byte*, std::size_t> device;
    std::set<cudaStream_t> streams;
    std::size_t deviceBytes = 0;
    int registrationsTried = 0;
};

State& state()
{
    static State all;
    return all;
}

std::int64_t cardNow()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
               .count() +
           state().card.clockOffsetNs;
}

// Runs the ready work of every stream, in turns, until nothing moves.
void pump()
{
    for (bool moved = true; moved;) {
        moved = false;
        for (cudaStream_t stream : state().streams) {
            while (!stream->work.empty() && stream->work.front()()) {
                stream->work.pop_front();
                moved = true;
            }
        }
    }
}

bool insideOne(
    const std::map<const std::byte*, std::size_t>& ranges, const void* data, std::size_t bytes)
{
    const auto* first = static_cast<const std::byte*>(data);
    auto next = ranges.upper_bound(first);
    if (next == ranges.begin())
        return false;
    --next;
    const auto offset = static_cast<std::size_t>(first - next->first);
    return offset <= next->second && bytes <= next->second - offset;
}

CUresult waitValue(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned)
{
    const auto* at = reinterpret_cast<const volatile std::uint64_t*>(word);
    stream->work.emplace_back([at, value] { return static_cast<std::int64_t>(*at - value) >= 0; });
    return CUDA_SUCCESS;
}

CUresult deviceGet(CUdevice* device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult deviceAttribute(int* value, CUdevice_attribute, CUdevice)
{
    *value = state().card.waitsForValues ? 1 : 0;
    return CUDA_SUCCESS;
}

} // namespace

#define FAIL_IF_BROKEN                                                                             \
    if (state().card.failEverything != cudaSuccess)                                                \
    return state().card.failEverything

namespace mr::test {

void resetFakeCard()
{
    state().card = {};
    state().registered.clear();
    state().device.clear();
    state().streams.clear();
    state().deviceBytes = 0;
    state().registrationsTried = 0;
}

FakeCard& fakeCard()
{
    return state().card;
}

} // namespace mr::test

extern "C" {

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t)
{
    return "cudaErrorOfTheFake";
}

const char* cudaGetErrorString(cudaError_t)
{
    return "an error of the fake runtime";
}

cudaError_t cudaMemGetInfo(std::size_t* freeBytes, std::size_t* totalBytes)
{
    *totalBytes = state().card.memoryBytes;
    *freeBytes = state().card.memoryBytes - state().deviceBytes;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes)
{
    FAIL_IF_BROKEN;
    if (bytes > state().card.memoryBytes - state().deviceBytes)
        return cudaErrorMemoryAllocation;
    *data = std::malloc(bytes);
    std::memset(*data, 0xAB, bytes); // bytes that are not zeroed show
    state().device[static_cast<std::byte*>(*data)] = bytes;
    state().deviceBytes += bytes;
    ++state().card.allocations;
    return cudaSuccess;
}

cudaError_t cudaFree(void* data)
{
    FAIL_IF_BROKEN;
    pump();
    const auto found = state().device.find(static_cast<std::byte*>(data));
    if (found == state().device.end())
        return cudaErrorInvalidValue;
    state().deviceBytes -= found->second;
    state().device.erase(found);
    std::free(data);
    --state().card.allocations;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned)
{
    FAIL_IF_BROKEN;
    *data = std::aligned_alloc(4096, bytes);
    ++state().card.allocations;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data)
{
    std::free(data);
    --state().card.allocations;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned)
{
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned)
{
    const std::scoped_lock lock(state().mutex);
    if (state().registrationsTried++ == state().card.failRegistration)
        return cudaErrorMemoryAllocation;
    state().registered[static_cast<std::byte*>(data)] = bytes;
    ++state().card.registrations;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* data)
{
    if (state().registered.erase(static_cast<std::byte*>(data)) == 0)
        return cudaErrorHostMemoryNotRegistered;
    --state().card.registrations;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned)
{
    *stream = new CUstream_st;
    state().streams.insert(*stream);
    ++state().card.streams;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    state().streams.erase(stream);
    delete stream;
    --state().card.streams;
    return cudaSuccess;
}

// A stream that would wait for ever is an error here.
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    FAIL_IF_BROKEN;
    pump();
    return stream->work.empty() ? cudaSuccess : cudaErrorLaunchTimeout;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    FAIL_IF_BROKEN;
    stream->work.emplace_back([event, at = event->recorded] { return event->passed >= at; });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream)
{
    FAIL_IF_BROKEN;
    stream->work.emplace_back([data, value, bytes] {
        std::memset(data, value, bytes);
        return true;
    });
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    FAIL_IF_BROKEN;
    const bool toDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool fromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (!insideOne(toDevice ? state().device : state().registered, to, bytes) ||
        !insideOne(fromDevice ? state().device : state().registered, from, bytes))
        return cudaErrorInvalidValue;
    ++state().card.copies;
    stream->work.emplace_back([to, from, bytes] {
        std::memcpy(to, from, bytes);
        return true;
    });
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data)
{
    FAIL_IF_BROKEN;
    stream->work.emplace_back([function, data] {
        function(data);
        return true;
    });
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    *event = new CUevent_st;
    ++state().card.events;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned)
{
    return cudaEventCreate(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    pump();
    delete event;
    --state().card.events;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    FAIL_IF_BROKEN;
    stream->work.emplace_back([event, at = ++event->recorded] {
        event->passed = at;
        event->cardNs = cardNow();
        return true;
    });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    FAIL_IF_BROKEN;
    pump();
    return event->passed == event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const cudaError_t code = cudaEventQuery(event);
    return code == cudaErrorNotReady ? cudaErrorLaunchTimeout : code;
}

// CUDA 12.8 and later call it so; earlier ones without the suffix.
#undef cudaEventElapsedTime
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = static_cast<float>(static_cast<double>(to->cardNs - from->cardNs) * 1e-6);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime_v2(float* ms, cudaEvent_t from, cudaEvent_t to)
{
    return cudaEventElapsedTime(ms, from, to);
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
