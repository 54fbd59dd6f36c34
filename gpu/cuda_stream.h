// Streams, events and gates of the CUDA device, and their shared state.
//
// Streams do not wait for the default stream, nor it for them. Events sleep while they wait
// (cudaEventBlockingSync): the engine waits once a step, for milliseconds, on a core that the
// update threads need; waking up costs some 50 us of that.
//
// A gate is a word in pinned memory that a stream memory operation watches. Words belong to the
// device and are not used twice: a stream may still watch the word of a gate that is gone.
//
// Threads    As in core/device/device.h.
// Ownership  The device owns CudaShared, which streams, events and gates point to.
// Errors     As in core/device/device.h; a lost device refuses everything with the first failure.
// Lifetime   The destructor of a stream waits for its work. It opens a gate that the stream still
//            waits for, as nobody else will: the work behind it then runs on undefined bytes.

#pragma once

#include "core/device/device.h"
#include "gpu/cuda_clock.h"
#include "gpu/cuda_failure.h"
#include "gpu/cuda_memory.h"
#include "gpu/driver_api.h"
#include "gpu/gate_words.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <string>
#include <vector>

namespace mr::gpu {

struct CudaShared {
    explicit CudaShared(std::size_t budgetBytes)
        : memory(budgetBytes, failure)
        , clock(failure)
        , gateWords(failure)
    {
    }

    CudaFailure failure;
    DriverApi driver;
    CudaMemory memory;
    CudaClock clock;
    GateWords gateWords;
    LinkBytes copied; // engine thread, which enqueues
};

class CudaEvent final : public Event
{
public:
    // Takes over `handle`, which has timing.
    CudaEvent(cudaEvent_t handle, CudaShared& shared) noexcept
        : m_handle(handle)
        , m_shared(shared)
    {
    }

    ~CudaEvent() override;

    Status wait() override;
    bool done() const noexcept override;           // a lost device has done all it will do: true
    std::int64_t timeNs() const noexcept override; // 0 if never recorded

    cudaEvent_t handle() const noexcept { return m_handle; }

    void recordedNow() noexcept { m_base.store(m_shared.clock.newest()); }

private:
    cudaEvent_t m_handle; // not changed after construction
    CudaShared& m_shared;
    std::atomic<std::uint64_t> m_base = 0; // base of the clock; 0: never recorded
};

class CudaGate final : public Gate
{
public:
    CudaGate(std::string_view name, GateWord word)
        : m_name(name)
        , m_word(word)
    {
    }

    const std::string& name() const noexcept { return m_name; }

    const GateWord& word() const noexcept { return m_word; }

    void open(std::uint64_t generation) noexcept override { m_word.raise(generation); }

    bool isOpen(std::uint64_t generation) const noexcept override
    {
        return m_word.value() >= generation;
    }

private:
    const std::string m_name;
    const GateWord m_word;
};

class CudaStream final : public Stream
{
public:
    // Takes over `handle`.
    CudaStream(std::string_view name, cudaStream_t handle, CudaShared& shared);
    ~CudaStream() override;

    std::string_view name() const noexcept override { return m_name; }

    Status record(Event& event) override;
    Status waitFor(Event& event) override;
    Status waitFor(Gate& gate, std::uint64_t generation) override;
    Status copy(std::byte* to, std::span<const std::byte> from) override;

    cudaStream_t handle() const noexcept { return m_handle; }

private:
    struct GateWait {
        GateWord word;
        std::uint64_t generation = 0;
    };

    Status enqueueCopy(std::byte* to, std::span<const std::byte> from, cudaMemcpyKind kind);
    Status copyOnHost(std::byte* to, std::span<const std::byte> from);
    void remember(const GateWait& wait);
    void openWhatIsWaitedFor() noexcept;

    const std::string m_name;
    cudaStream_t m_handle; // not changed after construction
    CudaShared& m_shared;
    std::vector<GateWait> m_waits; // that were not open when they were enqueued
};

} // namespace mr::gpu
