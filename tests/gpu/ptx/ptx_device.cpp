#include "gpu/ptx/ptx_device.h"

#include "gpu/ptx/ptx_runtime.h"

#include <string>

namespace mr::ptx {
namespace {

class PtxDevice final : public simt::KernelDevice
{
public:
    PtxDevice(std::size_t memoryBytes, const gpu::AttentionChoice& attention)
        : KernelDevice(memoryBytes, attention, "PTX machine", "ptx")
    {
        installMachine();
    }

private:
    void onAllocated(const Buffer& buffer, std::string_view tag) override
    {
        runtime().memory.add(buffer.data(), buffer.bytes(), std::string(tag), true);
    }
};

} // namespace

std::unique_ptr<simt::KernelDevice> makePtxDevice(
    std::size_t memoryBytes, const gpu::AttentionChoice& attention)
{
    return std::make_unique<PtxDevice>(memoryBytes, attention);
}

} // namespace mr::ptx
