// The few calls that only the driver library has, found at run time: nothing links libcuda, which
// a machine without a driver does not have.
//
// Threads  Any, after loadDriverApi().
// Errors   As toStatus(); driver codes equal the runtime's of the same meaning.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace mr::gpu {

class DriverApi
{
public:
    // False where the card or its driver has no 64-bit stream memory operations.
    bool waitsForValues() const noexcept { return m_waitValue != nullptr; }

    // `stream` waits until the word is at least `value`, by their signed difference. `word` is an
    // address of the device. Precondition: waitsForValues().
    cudaError_t waitUntilAtLeast(
        cudaStream_t stream, const void* word, std::uint64_t value) const noexcept;

private:
    friend DriverApi loadDriverApi(int device) noexcept;

    void* m_waitValue = nullptr; // cuStreamWaitValue64
};

// Precondition: the driver was found (cudaGetDeviceCount() succeeded). Missing functions are null.
DriverApi loadDriverApi(int device) noexcept;

} // namespace mr::gpu
