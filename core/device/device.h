// The engine's only view of a compute device.
//
// Two implementations: CpuDevice (core/device/cpu) needs nothing but a processor and is the
// reference for every op; CudaDevice lives in gpu/. Engine code never asks which one it holds;
// DeviceInfo has the differences.
//
// Order    Work enqueued on one stream runs in the order it was enqueued. Work on
//          two streams is ordered only by Stream::record and Stream::waitFor; work
//          of a host thread comes before work on a stream only by a Gate.
// Threads  Event::wait, Event::done, Event::timeNs, Gate::open, Gate::isOpen and
//          Device::memoryUsage may be called from any thread. Everything else is called from the
//          engine thread only.
// Errors   An enqueue that is refused returns at once. A failure inside enqueued
//          work shows at the next Event::wait; it is then sticky (DeviceLost).
// Lifetime A Device outlives every Stream, Event, Gate and Buffer it made. Memory handed
//          to an enqueued call, and a gate that is waited for, must live until an event
//          recorded after it is done.
// Units    Sizes are bytes, counts are elements, times are nanoseconds.

#pragma once

#include "core/device/tensor.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

class Ops;

enum class MemoryKind : std::uint8_t {
    Device,     // fast memory of the device
    PinnedHost, // page-locked; the only host memory asynchronous copies accept
};

struct DeviceInfo {
    std::string name;                // as the driver reports it
    std::size_t memoryBytes = 0;     // total; for CpuDevice the budget it was given
    double copyBytesPerSecond = 0.0; // each way; 0 is not measured, under a link throttle its rate
    bool asynchronous = false;       // false: every enqueue has finished when it returns
    bool waitsForGates = false;      // false: the engine polls a gate, then calls waitFor
    bool loadsLazily = false;        // a first launch may wait for the device to be idle
    bool picksAlgorithms = false;    // its library does, by shape: a run checks its products first
    bool simulatedLink = false;      // copies are slowed down on purpose; say so with every figure
    bool multipliesCodes = true;     // has products of FP8 codes
    int threads = 1;                 // that compute ops use; 0 where it has no meaning
    std::string instructionSet;      // "avx512_bf16", "avx2", "sm_90": bits are promised within one
};

// Memory of a device by kind, now and at its peak, in the bytes that were asked for.
struct MemoryUsage {
    std::size_t deviceBytes = 0;
    std::size_t devicePeakBytes = 0;
    std::size_t pinnedBytes = 0;
    std::size_t pinnedPeakBytes = 0;
    std::size_t allocations = 0; // buffers that were made, ever
};

struct BufferWish {
    std::size_t bytes = 0;
    std::string_view tag; // as of Device::allocate()
};

// Bytes that all streams of a device copied over the link, as they were enqueued. Ever.
struct LinkBytes {
    std::int64_t toDevice = 0;
    std::int64_t toHost = 0;
};

// Move-only owner of one allocation. Freed on destruction; a failure to free is
// logged, never thrown.
class Buffer
{
public:
    using FreeFn = void (*)(void* owner, std::byte* data, std::size_t bytes) noexcept;

    Buffer() = default;
    Buffer(std::byte* data, std::size_t bytes, MemoryKind kind, FreeFn free, void* owner) noexcept;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();

    std::byte* data() const noexcept { return m_data; }

    std::size_t bytes() const noexcept { return m_bytes; }

    MemoryKind kind() const noexcept { return m_kind; }

private:
    std::byte* m_data = nullptr;
    std::size_t m_bytes = 0;
    MemoryKind m_kind = MemoryKind::Device;
    FreeFn m_free = nullptr;
    void* m_owner = nullptr;
};

// A point in a stream's work. Reusable: recording again moves the point.
class Event
{
public:
    virtual ~Event() = default;

    // Blocks the calling thread until the recorded point has passed.
    virtual Status wait() = 0;

    // True once the recorded point has passed. Never blocks.
    virtual bool done() const noexcept = 0;

    // When the recorded point passed, on the steady clock of the host.
    // Precondition: done(). A device with a clock of its own converts (CUDA: one base event).
    virtual std::int64_t timeNs() const noexcept = 0;
};

// A point that host-side work opens and a stream waits for: the update pool opens it when
// an update is done, the disk thread when a read has arrived. An Event cannot say that: it
// is recorded on a stream, and only the engine thread enqueues, while it runs a step ahead.
//
// Generations ascend; 0 is open from the start. Opening one opens all below it, so the opener has
// finished those as well, and does not wait for work behind the gate. The work behind waitFor()
// sees all writes of a thread before its open().
//
// The CUDA device waits by a stream memory operation on a pinned word where the driver offers it,
// else the engine polls; the CPU device waits by a condition variable. After a failure gates are
// opened in their turn, though nothing was done, so that nobody waits for ever; the work behind
// them reads unfinished bytes, and no result is kept.
class Gate
{
public:
    // The highest generation. Not the highest uint64: the stream memory operation compares
    // the signed difference, and would take that for -1.
    static constexpr std::uint64_t kForGood = (std::uint64_t{1} << 63) - 1;

    virtual ~Gate() = default;

    // Never blocks. Does nothing if that generation is open already, so a late open() cannot take
    // back the opening by a FailureLatch.
    virtual void open(std::uint64_t generation) noexcept = 0;

    // Never blocks. Once true, stays true.
    virtual bool isOpen(std::uint64_t generation) const noexcept = 0;
};

class Stream
{
public:
    virtual ~Stream() = default;

    virtual std::string_view name() const noexcept = 0; // shown in traces and errors

    virtual Status record(Event& event) = 0;
    virtual Status waitFor(Event& event) = 0; // this stream waits; the caller does not

    // The same. Internal, if the gate is not open and DeviceInfo::waitsForGates is false.
    virtual Status waitFor(Gate& gate, std::uint64_t generation) = 0;

    // Either end may be device or pinned memory. `from` must stay valid until an
    // event recorded on this stream after the copy is done.
    virtual Status copy(std::byte* to, std::span<const std::byte> from) = 0;
};

class Device
{
public:
    virtual ~Device() = default;

    virtual const DeviceInfo& info() const noexcept = 0;

    // Zeroed, also where the system or the driver gives memory that was used before: a run's
    // moments, sums and gaps between gradients begin as that, and nobody clears them again. `tag`
    // names the memory in reports ("weights", "slots"); it is not unique.
    virtual Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) = 0;
    // A buffer for each wish, in their order; all or none. A device whose allocations are rounded
    // up to large pages takes one for all of them, and frees it with the last buffer; others, as
    // here, call allocate() for each.
    virtual Result<std::vector<Buffer>> allocateTogether(
        std::span<const BufferWish> wishes, MemoryKind kind);
    virtual Result<std::unique_ptr<Stream>> createStream(std::string_view name) = 0;
    virtual Result<std::unique_ptr<Event>> createEvent() = 0;
    virtual Result<std::unique_ptr<Gate>> createGate(std::string_view name) = 0;

    // Enqueued work may start now. A device may start earlier; the threaded CPU device does not, so
    // that a forgotten wait shows however fast the engine enqueues. There Event::wait() before
    // submit() would wait for ever. Never blocks.
    virtual void submit() noexcept = 0;

    // Commands enqueued so far: kernels, copies, events, waits. The engine bounds those behind a
    // closed gate, because a card's queue is finite. 0: queues have no bound. Engine thread.
    virtual std::uint64_t enqueuedCommands() const noexcept { return 0; }

    // Any thread.
    virtual MemoryUsage memoryUsage() const noexcept = 0;
    virtual LinkBytes linkBytes() const noexcept = 0; // engine thread
    // Device memory that could be allocated now, other programs and the budget considered;
    // fragmentation is not counted. Nothing: not known. Engine thread.
    virtual std::optional<std::size_t> freeDeviceBytes() const noexcept { return std::nullopt; }

    virtual Ops& ops() noexcept = 0;
};

} // namespace mr
