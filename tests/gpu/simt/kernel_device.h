// KernelDevice: the ops of the CUDA device over memory and streams of the CPU device in inline
// mode.
//
// The devices of the tests differ in what runs their kernels, which the linker decides, and in what
// they do with new memory.
//
// Threads  As device.h.

#pragma once

#include "core/device/device.h"
#include "core/device/ops.h"
#include "gpu/ops/attention_choice.h"
#include "gpu/simt/host_gemm.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mr::simt {

class KernelDevice : public Device
{
public:
    KernelDevice(std::size_t memoryBytes, const gpu::AttentionChoice& attention, std::string name,
        std::string instructionSet);

    const DeviceInfo& info() const noexcept override { return m_info; }
    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override;
    Result<std::unique_ptr<Stream>> createStream(std::string_view name) override;
    Result<std::unique_ptr<Event>> createEvent() override;
    Result<std::unique_ptr<Gate>> createGate(std::string_view name) override;
    void submit() noexcept override;
    MemoryUsage memoryUsage() const noexcept override;
    LinkBytes linkBytes() const noexcept override;
    Ops& ops() noexcept override { return *m_ops; }

    // Asked of the library so far, which a card has of its own.
    std::uint64_t products() const noexcept { return m_gemm.products(); }

protected:
    virtual void onAllocated(const Buffer& buffer, std::string_view tag) = 0;

private:
    std::unique_ptr<Device> m_memory;
    HostGemm m_gemm;
    std::unique_ptr<Ops> m_ops;
    DeviceInfo m_info;
};

} // namespace mr::simt
