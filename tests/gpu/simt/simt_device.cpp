#include "gpu/simt/simt_device.h"

#include "gpu/simt/kernel_device.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace mr::simt {

namespace {

// The CPU device leaves at least so many bytes behind each allocation.
[[maybe_unused]] constexpr std::size_t kGapBytes = 16;

class SimtDevice final : public KernelDevice
{
public:
    SimtDevice(std::size_t memoryBytes, const gpu::AttentionChoice& attention)
        : KernelDevice(memoryBytes, attention, "SIMT host", "simt")
    {
    }

private:
    // Without this, a kernel could read a few elements past a tensor unseen.
    void onAllocated([[maybe_unused]] const Buffer& buffer, std::string_view) override
    {
#ifdef __SANITIZE_ADDRESS__
        __asan_poison_memory_region(buffer.data() + buffer.bytes(), kGapBytes);
#endif
    }
};

} // namespace

std::unique_ptr<Device> makeSimtDevice(
    std::size_t memoryBytes, const gpu::AttentionChoice& attention)
{
    return std::make_unique<SimtDevice>(memoryBytes, attention);
}

} // namespace mr::simt
