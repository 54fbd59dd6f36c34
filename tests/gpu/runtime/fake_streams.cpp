// The fake runtime: streams, events and launches.

#include "gpu/runtime/fake_card.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

namespace {

using namespace mr::test;

constexpr std::size_t kDefaultSharedBytes = 48 * 1024; // of a kernel that asks for no more

std::int64_t cardNow()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
               .count() +
           cardState().card.clockOffsetNs;
}

bool areIdle()
{
    return std::ranges::all_of(
        cardState().streams, [](cudaStream_t stream) { return stream->work.empty(); });
}

cudaError_t load(const Call& call, const void* kernel)
{
    CardState& all = cardState();
    {
        const std::lock_guard lock(all.cardMutex);
        if (!all.kernels.insert(kernel).second)
            return cudaSuccess;
        all.deviceBytes += all.card.kernelBytes;
        ++all.card.kernelsLoaded;
        all.card.kernelsLoadedLate += all.streams.empty() ? 0 : 1;
    }
    return call.waitUntil(areIdle) ? cudaSuccess : cudaErrorLaunchTimeout;
}

bool hasPassed(cudaEvent_t event)
{
    const std::lock_guard lock(cardState().cardMutex);
    return event->passed == event->recorded;
}

std::size_t sharedLimit(const void* kernel)
{
    const auto asked = cardState().sharedAsked.find(kernel);
    return asked == cardState().sharedAsked.end() ? kDefaultSharedBytes : asked->second;
}

// The first failure of the device, if there was one; else `code`.
cudaError_t orBroken(cudaError_t code)
{
    cudaError_t broken = cudaSuccess;
    return isBroken(broken) ? broken : code;
}

} // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned)
{
    *stream = new CUstream_st;
    const std::lock_guard lock(cardState().cardMutex);
    cardState().streams.push_back(*stream);
    ++cardState().card.streams;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    std::unique_lock lock(cardState().cardMutex);
    awaitKernel(lock);
    std::erase(cardState().streams, stream);
    delete stream;
    --cardState().card.streams;
    return cudaSuccess;
}

// A stream that would wait for ever is an error here.
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    MR_ENTER;
    pump();
    call.waitUntil([stream] { return stream->work.empty(); });
    std::unique_lock lock(cardState().cardMutex);
    const bool isEmpty = stream->work.empty();
    lock.unlock();
    return orBroken(isEmpty ? cudaSuccess : cudaErrorLaunchTimeout);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    MR_ENTER;
    std::uint64_t at = 0;
    {
        const std::lock_guard lock(cardState().cardMutex);
        at = event->recorded;
    }
    return enqueue(call, stream, {[event, at] { return event->passed >= at; }, {}});
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel)
{
    MR_ENTER;
    *attributes = {};
    return load(call, kernel);
}

// The limit of dynamic shared memory is the only attribute that is set.
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes)
{
    MR_ENTER;
    if (static_cast<std::size_t>(bytes) > cardState().card.blockSharedBytes)
        return cudaErrorInvalidValue;
    cardState().sharedAsked[kernel] = static_cast<std::size_t>(bytes);
    return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(
    const cudaLaunchConfig_t* config, const void* kernel, void** arguments)
{
    MR_ENTER;
    if (const cudaError_t loaded = load(call, kernel); loaded != cudaSuccess)
        return loaded;
    if (config->dynamicSmemBytes > sharedLimit(kernel))
        return cudaErrorInvalidValue;
    if (KernelMachine* const machine = cardState().card.machine)
        return enqueue(call, config->stream, {{}, machine->launch(*config, kernel, arguments)});
    return enqueue(call, config->stream, {[] { return true; }, {}});
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data)
{
    MR_ENTER;
    const auto run = [function, data] {
        function(data);
        return true;
    };
    return enqueue(call, stream, {run, {}});
}

cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    *event = new CUevent_st;
    ++cardState().card.events;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned)
{
    return cudaEventCreate(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    pump();
    const std::lock_guard lock(cardState().cardMutex);
    delete event;
    --cardState().card.events;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    MR_ENTER;
    std::uint64_t at = 0;
    {
        const std::lock_guard lock(cardState().cardMutex);
        at = ++event->recorded;
    }
    const auto pass = [event, at] {
        event->passed = at;
        event->cardNs = cardNow();
        return true;
    };
    return enqueue(call, stream, {pass, {}});
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    MR_ENTER;
    pump();
    return orBroken(hasPassed(event) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const cudaError_t code = cudaEventQuery(event);
    DriverModel* const driver = cardState().driver.get();
    if (code != cudaErrorNotReady || !driver)
        return code == cudaErrorNotReady ? cudaErrorLaunchTimeout : code;
    // The lock of the context was needed to begin, and is not held while the thread sleeps.
    const auto passed = [event] { return event->passed == event->recorded; };
    return orBroken(driver->wait(passed) ? cudaSuccess : cudaErrorLaunchTimeout);
}

// CUDA 12.8 and later call it so; earlier ones without the suffix.
#undef cudaEventElapsedTime
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to)
{
    const std::lock_guard lock(cardState().cardMutex);
    *ms = static_cast<float>(static_cast<double>(to->cardNs - from->cardNs) * 1e-6);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime_v2(float* ms, cudaEvent_t from, cudaEvent_t to)
{
    return cudaEventElapsedTime(ms, from, to);
}
}
