#include "gpu/runtime/fake_cudart.h"

#include "gpu/runtime/driver_model.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

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

    std::mutex cardMutex;          // guards streams, their work, events and kernels
    std::set<const void*> kernels; // that are on the card
    std::size_t queueEntries = 0;
    std::unique_ptr<mr::test::DriverModel> driver; // null: commands run when somebody looks
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

// Runs the ready work of every stream once.
bool runSome()
{
    bool moved = false;
    for (cudaStream_t stream : state().streams) {
        while (!stream->work.empty() && stream->work.front()()) {
            stream->work.pop_front();
            moved = true;
        }
    }
    return moved;
}

// Without a thread that is the card, work runs when somebody looks: until nothing moves.
void pump()
{
    if (state().driver)
        return;
    const std::lock_guard lock(state().cardMutex);
    while (runSome()) {
    }
}

// One call of the runtime: holds the lock of the context.
class Call
{
public:
    Call()
        : m_driver(state().driver.get())
    {
        if (m_driver)
            m_driver->lock();
    }
    ~Call()
    {
        if (m_driver)
            m_driver->unlock();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    bool waitUntil(const std::function<bool()>& isReady) const
    {
        return !m_driver || m_driver->waitWithLock(isReady);
    }

private:
    mr::test::DriverModel* const m_driver;
};

bool isBroken(cudaError_t& code)
{
    code = state().driver && state().driver->isDeadlocked() ? cudaErrorLaunchTimeout
                                                            : state().card.failEverything;
    return code != cudaSuccess;
}

cudaError_t enqueue(const Call& call, cudaStream_t stream, std::function<bool()> work)
{
    if (!call.waitUntil([stream] { return stream->work.size() < state().queueEntries; }))
        return cudaErrorLaunchTimeout;
    const std::lock_guard lock(state().cardMutex);
    stream->work.push_back(std::move(work));
    return cudaSuccess;
}

bool areIdle()
{
    return std::all_of(state().streams.begin(), state().streams.end(),
        [](cudaStream_t stream) { return stream->work.empty(); });
}

cudaError_t load(const Call& call, const void* kernel)
{
    {
        const std::lock_guard lock(state().cardMutex);
        if (!state().kernels.insert(kernel).second)
            return cudaSuccess;
        state().deviceBytes += state().card.kernelBytes;
        ++state().card.kernelsLoaded;
        state().card.kernelsLoadedLate += state().streams.empty() ? 0 : 1;
    }
    return call.waitUntil(areIdle) ? cudaSuccess : cudaErrorLaunchTimeout;
}

bool hasPassed(cudaEvent_t event)
{
    const std::lock_guard lock(state().cardMutex);
    return event->passed == event->recorded;
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
    const Call call;
    auto* at = reinterpret_cast<std::uint64_t*>(word);
    const auto isReached = [at, value] {
        const std::uint64_t now = std::atomic_ref(*at).load(std::memory_order_acquire);
        return static_cast<std::int64_t>(now - value) >= 0;
    };
    return static_cast<CUresult>(enqueue(call, stream, isReached));
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

#define ENTER                                                                                      \
    const Call call;                                                                               \
    if (cudaError_t code = cudaSuccess; isBroken(code))                                            \
    return code

namespace mr::test {

void resetFakeCard()
{
    state().driver.reset();
    state().kernels.clear();
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

void startDriverModel(std::chrono::microseconds late, std::size_t queueEntries)
{
    state().queueEntries = queueEntries;
    state().driver = std::make_unique<DriverModel>(state().cardMutex, runSome, late);
}

bool isDeadlocked()
{
    return state().driver && state().driver->isDeadlocked();
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

cudaError_t cudaGetDeviceCount(int* count)
{
    if (state().card.countAnswer == cudaSuccess)
        *count = 1;
    return state().card.countAnswer;
}

cudaError_t cudaDriverGetVersion(int* version)
{
    *version = state().card.driverVersion;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* card, int)
{
    *card = {};
    std::strncpy(card->name, "Fake Card", sizeof card->name - 1);
    card->major = state().card.computeMajor;
    card->totalGlobalMem = state().card.memoryBytes;
    return cudaSuccess;
}

// That of an H100.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrMultiProcessorCount ? 132 : 228 * 1024;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* freeBytes, std::size_t* totalBytes)
{
    *totalBytes = state().card.memoryBytes;
    *freeBytes = state().card.memoryBytes - state().deviceBytes;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes)
{
    ENTER;
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
    ENTER;
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
    ENTER;
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
    const std::lock_guard lock(state().cardMutex);
    state().streams.insert(*stream);
    ++state().card.streams;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const std::lock_guard lock(state().cardMutex);
    state().streams.erase(stream);
    delete stream;
    --state().card.streams;
    return cudaSuccess;
}

// A stream that would wait for ever is an error here.
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER;
    pump();
    call.waitUntil([stream] { return stream->work.empty(); });
    const std::lock_guard lock(state().cardMutex);
    return stream->work.empty() ? cudaSuccess : cudaErrorLaunchTimeout;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    ENTER;
    std::uint64_t at = 0;
    {
        const std::lock_guard lock(state().cardMutex);
        at = event->recorded;
    }
    return enqueue(call, stream, [event, at] { return event->passed >= at; });
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream)
{
    ENTER;
    return enqueue(call, stream, [data, value, bytes] {
        std::memset(data, value, bytes);
        return true;
    });
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    ENTER;
    const bool toDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool fromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (!insideOne(toDevice ? state().device : state().registered, to, bytes) ||
        !insideOne(fromDevice ? state().device : state().registered, from, bytes))
        return cudaErrorInvalidValue;
    ++state().card.copies;
    return enqueue(call, stream, [to, from, bytes] {
        std::memcpy(to, from, bytes);
        return true;
    });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel)
{
    ENTER;
    *attributes = {};
    return load(call, kernel);
}

// A kernel of the fake does nothing.
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void**)
{
    ENTER;
    if (const cudaError_t loaded = load(call, kernel); loaded != cudaSuccess)
        return loaded;
    return enqueue(call, config->stream, [] { return true; });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data)
{
    ENTER;
    return enqueue(call, stream, [function, data] {
        function(data);
        return true;
    });
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
    const std::lock_guard lock(state().cardMutex);
    delete event;
    --state().card.events;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ENTER;
    std::uint64_t at = 0;
    {
        const std::lock_guard lock(state().cardMutex);
        at = ++event->recorded;
    }
    return enqueue(call, stream, [event, at] {
        event->passed = at;
        event->cardNs = cardNow();
        return true;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    ENTER;
    pump();
    return hasPassed(event) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const cudaError_t code = cudaEventQuery(event);
    if (code != cudaErrorNotReady || !state().driver)
        return code == cudaErrorNotReady ? cudaErrorLaunchTimeout : code;
    // The lock of the context was needed to begin, and is not held while the thread sleeps.
    const auto passed = [event] { return event->passed == event->recorded; };
    return state().driver->wait(passed) ? cudaSuccess : cudaErrorLaunchTimeout;
}

// CUDA 12.8 and later call it so; earlier ones without the suffix.
#undef cudaEventElapsedTime
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to)
{
    const std::lock_guard lock(state().cardMutex);
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
