#include "gpu/ptx/ptx_device.h"

#include "core/device/cpu/cpu_device.h"
#include "gpu/cuda_ops.h"
#include "gpu/ptx/ptx_runtime.h"
#include "gpu/simt/host_gemm.h"

#include <string>
#include <utility>

namespace mr::ptx {
namespace {

class PtxDevice final : public Device
{
public:
    PtxDevice(std::size_t memoryBytes, const gpu::AttentionChoice& attention)
        : m_memory(makeCpuDevice(memoryBytes))
        , m_ops(gpu::makeCudaOps(m_gemm, attention))
        , m_info(m_memory->info())
    {
        m_info.name = "PTX machine";
        m_info.instructionSet = "ptx";
        m_info.threads = 0;
    }

    const DeviceInfo& info() const noexcept override { return m_info; }

    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override
    {
        auto buffer = m_memory->allocate(bytes, kind, tag);
        if (buffer.ok())
            runtime().memory.add(buffer.value().data(), bytes, std::string(tag), true);
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
    simt::HostGemm m_gemm;
    std::unique_ptr<Ops> m_ops;
    DeviceInfo m_info;
};

} // namespace

std::unique_ptr<Device> makePtxDevice(
    std::size_t memoryBytes, const gpu::AttentionChoice& attention)
{
    return std::make_unique<PtxDevice>(memoryBytes, attention);
}

} // namespace mr::ptx
