#include "gpu/simt/kernel_device.h"

#include "core/device/cpu/cpu_device.h"
#include "gpu/cuda_ops.h"

#include <utility>

namespace mr::simt {

KernelDevice::KernelDevice(std::size_t memoryBytes, const gpu::AttentionChoice& attention,
    std::string name, std::string instructionSet)
    : m_memory(makeCpuDevice(memoryBytes))
    , m_ops(gpu::makeCudaOps(m_gemm, attention))
    , m_info(m_memory->info())
{
    m_info.name = std::move(name);
    m_info.instructionSet = std::move(instructionSet);
    m_info.threads = 0;
}

Result<Buffer> KernelDevice::allocate(std::size_t bytes, MemoryKind kind, std::string_view tag)
{
    auto buffer = m_memory->allocate(bytes, kind, tag);
    if (buffer.ok())
        onAllocated(buffer.value(), tag);
    return buffer;
}

Result<std::unique_ptr<Stream>> KernelDevice::createStream(std::string_view name)
{
    return m_memory->createStream(name);
}

Result<std::unique_ptr<Event>> KernelDevice::createEvent()
{
    return m_memory->createEvent();
}

Result<std::unique_ptr<Gate>> KernelDevice::createGate(std::string_view name)
{
    return m_memory->createGate(name);
}

void KernelDevice::submit() noexcept
{
    m_memory->submit();
}

MemoryUsage KernelDevice::memoryUsage() const noexcept
{
    return m_memory->memoryUsage();
}

LinkBytes KernelDevice::linkBytes() const noexcept
{
    return m_memory->linkBytes();
}

} // namespace mr::simt
