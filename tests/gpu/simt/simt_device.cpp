#include "gpu/simt/simt_device.h"

#include "core/device/cpu/cpu_device.h"
#include "gpu/cuda_ops.h"
#include "gpu/simt/host_gemm.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace mr::simt {

namespace {

// The CPU device leaves at least so many bytes behind each allocation.
[[maybe_unused]] constexpr std::size_t kGapBytes = 16;

// Without this, a kernel could read a few elements past a tensor unseen.
void closeGap([[maybe_unused]] const Buffer& buffer) noexcept
{
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(buffer.data() + buffer.bytes(), kGapBytes);
#endif
}

class SimtDevice final : public Device
{
public:
    SimtDevice(std::size_t memoryBytes, const gpu::AttentionChoice& attention)
        : m_memory(makeCpuDevice(memoryBytes))
        , m_ops(gpu::makeCudaOps(m_gemm, attention))
        , m_info(m_memory->info())
    {
        m_info.name = "SIMT host";
        m_info.instructionSet = "simt";
        m_info.threads = 0;
    }

    const DeviceInfo& info() const noexcept override { return m_info; }

    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override
    {
        auto buffer = m_memory->allocate(bytes, kind, tag);
        if (buffer.ok())
            closeGap(buffer.value());
        return buffer;
    }

    Result<std::unique_ptr<Stream>> createStream(std::string_view name) override
    {
        return m_memory->createStream(name);
    }

    Result<std::unique_ptr<Event>> createEvent() override { return m_memory->createEvent(); }

    Result<std::unique_ptr<Gate>> createGate(std::string_view name) override
    {
        return m_memory->createGate(name);
    }

    void submit() noexcept override { m_memory->submit(); }

    MemoryUsage memoryUsage() const noexcept override { return m_memory->memoryUsage(); }
    LinkBytes linkBytes() const noexcept override { return m_memory->linkBytes(); }

    Ops& ops() noexcept override { return *m_ops; }

private:
    std::unique_ptr<Device> m_memory;
    HostGemm m_gemm;
    std::unique_ptr<Ops> m_ops;
    DeviceInfo m_info;
};

} // namespace

std::unique_ptr<Device> makeSimtDevice(
    std::size_t memoryBytes, const gpu::AttentionChoice& attention)
{
    return std::make_unique<SimtDevice>(memoryBytes, attention);
}

} // namespace mr::simt
