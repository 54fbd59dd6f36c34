// BenchRig: the tools of a benchmark of ops: a stream, memory full of random numbers, a clock.
//
// Times come from the device: pairs of events around batches of calls, so that the host's cost of a
// launch is not in them while the device has work. Data are random, because multipliers of a GPU
// draw less power, and so clock higher, on constants.
//
// Threads  The caller's. The device must be idle.
// Ownership  Owns stream, events and memory; borrows the device.
// Errors   Keeps the first one (status()); after it every call does nothing.
// Units    Seconds, bytes, elements as named.

#pragma once

#include "core/device/ops.h"
#include "core/prove/bench.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mr {

// Seconds of one call.
struct BenchTime {
    double median = 0.0;
    double best = 0.0;
};

class BenchRig
{
public:
    // Enqueues one call on stream(); `call` counts up, for inputs that take turns.
    using Enqueue = std::function<Status(int call)>;

    explicit BenchRig(Device& device);

    // Device memory with numbers in [least, most); BF16 and F32, and the bits of random BF16
    // weights for U16; other types get random bits. Null data after an error.
    TensorView random(
        DType type, std::int64_t rows, std::int64_t cols, float least = -1.0F, float most = 1.0F);
    TensorView randomVector(DType type, std::int64_t count, float least = -1.0F, float most = 1.0F);
    // Device memory with these bytes, or with zeros.
    TensorView given(DType type, std::int64_t rows, std::int64_t cols, const void* bytes);
    TensorView zeros(DType type, std::int64_t rows, std::int64_t cols);
    TensorView ids(std::int64_t count, std::int64_t below); // I32 in [0, below)

    std::byte* memory(std::size_t bytes, MemoryKind kind);

    // Median and best of at least 20 batches; fewer where a call takes long (see the .cpp).
    BenchTime time(const Enqueue& enqueue);
    // One call on each of two streams at the same time; seconds until both are done.
    BenchTime timeBoth(const Enqueue& first, const Enqueue& second);

    Ops& ops() noexcept { return m_device.ops(); }
    Stream& stream() noexcept { return *m_streams[0]; }
    Stream& secondStream() noexcept { return *m_streams[1]; }
    const Status& status() const noexcept { return m_status; }

    // The device is the processor of the host: its limits are the host's loops.
    bool onHost() const noexcept { return m_device.info().threads > 0; }
    std::size_t memoryBytes() const noexcept { return m_device.info().memoryBytes; }

    // How many sets of inputs of this size must take turns so that no cache holds them; 1 to 16.
    int setsOf(std::size_t bytes) const noexcept;

private:
    using Fill = std::function<void(std::span<std::byte> piece)>;

    TensorView tensor(DType type, std::int64_t rows, std::int64_t cols, const Fill& fill);
    void upload(const TensorView& view, const Fill& fill);
    double sample(const Enqueue& enqueue, int firstCall, int calls);
    double sampleBoth(const Enqueue& first, const Enqueue& second, int call);
    BenchTime collect(const std::function<double(int)>& sampleNumber);
    void wait(Event& event);
    void keep(Status status);

    Device& m_device;
    std::unique_ptr<Stream> m_streams[2];
    std::unique_ptr<Event> m_begin;
    std::unique_ptr<Event> m_ends[2];
    std::vector<Buffer> m_buffers;
    std::byte* m_staging = nullptr; // pinned
    std::uint64_t m_seed = 0;       // seed of the next tensor
    Status m_status;
};

// `amount` operations or bytes in `seconds` against `limitPerSecond`, as giga-units.
BenchRow benchRow(
    std::string name, double amount, double seconds, double limitPerSecond, const char* unit);

// F32 and, unless it is a card without (compute capability 7), BF16.
std::vector<DType> benchTypes(const DeviceInfo& info);

const char* benchName(DType type) noexcept; // "bf16", "f32"

} // namespace mr
