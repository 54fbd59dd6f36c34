#include "core/device/cpu/cpu_device.h"

#include "core/base/cpu_features.h"
#include "core/base/parallel.h"
#include "core/base/thread.h"
#include "core/device/cpu/cpu_ops.h"
#include "core/device/cpu/cpu_streams.h"

#include <fmt/format.h>

#include <cassert>
#include <new>

namespace mr {
namespace {

class CpuDevice final : public Device
{
public:
    explicit CpuDevice(const CpuDeviceOptions& options)
        : m_threaded(options.mode == CpuDeviceOptions::Mode::Threaded)
        , m_shared(
              options.memoryBytes, options.linkBytesPerSecond, {options.firstCore, options.threads})
        , m_pool(options.threads, "compute", options.firstCore)
        , m_ops(makeCpuOps(m_pool))
    {
        m_info.name = processorName();
        m_info.memoryBytes = options.memoryBytes;
        m_info.copyBytesPerSecond = options.linkBytesPerSecond;
        m_info.asynchronous = m_threaded;
        m_info.waitsForGates = m_threaded;
        m_info.simulatedLink = options.linkBytesPerSecond > 0.0;
        m_info.threads = options.threads;
        m_info.instructionSet = instructionSetName();
    }

    const DeviceInfo& info() const noexcept override { return m_info; }

    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override
    {
        return m_shared.memory.allocate(bytes, kind, tag);
    }

    Result<std::unique_ptr<Stream>> createStream(std::string_view name) override
    {
        if (m_threaded)
            return std::unique_ptr<Stream>(new ThreadedStream(name, m_shared));
        return std::unique_ptr<Stream>(new InlineStream(name, m_shared));
    }

    Result<std::unique_ptr<Event>> createEvent() override
    {
        return std::unique_ptr<Event>(new CpuEvent(m_shared.failure));
    }

    Result<std::unique_ptr<Gate>> createGate(std::string_view name) override
    {
        return std::unique_ptr<Gate>(new CpuGate(name));
    }

    void submit() noexcept override { m_shared.submit(); }

    MemoryUsage memoryUsage() const noexcept override { return m_shared.memory.usage(); }
    LinkBytes linkBytes() const noexcept override { return m_shared.copied; }

    std::optional<std::size_t> freeDeviceBytes() const noexcept override
    {
        return m_info.memoryBytes - m_shared.memory.usage().deviceBytes;
    }

    Ops& ops() noexcept override { return *m_ops; }

private:
    const bool m_threaded;
    DeviceInfo m_info;
    CpuShared m_shared;
    ThreadPool m_pool;
    std::unique_ptr<Ops> m_ops;
};

} // namespace

Result<std::unique_ptr<Device>> makeCpuDevice(const CpuDeviceOptions& options)
{
    if (options.threads < 1 || options.threads > CpuDeviceOptions::kMostThreads)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("cpu device: {} threads; it must be from 1 to {}", options.threads,
                CpuDeviceOptions::kMostThreads));
    if (!(options.linkBytesPerSecond >= 0.0))
        return Status::error(ErrorKind::InvalidArgument,
            "cpu device: the link rate must be positive, or 0 for no limit");
    std::unique_ptr<Device> device;
    MR_TRY(guarded(fmt::format("cpu device with {} threads", options.threads), [&] {
        device = std::make_unique<CpuDevice>(options);
        return Status();
    }));
    return device;
}

std::unique_ptr<Device> makeCpuDevice(std::size_t memoryBytes)
{
    CpuDeviceOptions options;
    options.memoryBytes = memoryBytes;
    return std::make_unique<CpuDevice>(options);
}

} // namespace mr
