// The first failure that a CUDA device met. It is sticky: the device is lost from then on.
//
// Memory that is refused and arguments that are wrong are not such failures: the device lives on.
//
// Threads  Any.
// Errors   status() is DeviceLost with the first failure's words, once there was one.

#pragma once

#include <millrace/status.h>

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <string_view>

namespace mr::gpu {

class CudaFailure
{
public:
    // toStatus(), remembered if it says DeviceLost. `what` names the call.
    Status check(cudaError_t code, std::string_view what);

    // As check(), for callers that return nothing: the next call that returns a Status reports it.
    void remember(cudaError_t code, std::string_view what) noexcept;

    // A status that somebody else made of an error of this device: remembered if it says
    // DeviceLost.
    void remember(const Status& status) noexcept;

    // For destructors: the first that fails on a device that was not lost is logged; the end of
    // the process is no failure.
    void note(cudaError_t code, std::string_view what) noexcept;

    bool lost() const noexcept { return m_lost.load(std::memory_order_acquire); }

    Status status() const;

private:
    void set(const Status& status);

    std::atomic<bool> m_lost = false;
    std::atomic<bool> m_logged = false;
    mutable std::mutex m_mutex; // taken only once something failed
    Status m_status;            // guarded by m_mutex
};

} // namespace mr::gpu
