#include "gpu/cuda_failure.h"

#include "core/base/log.h"
#include "gpu/cuda_status.h"

#include <new>
#include <string>

namespace mr::gpu {

Status CudaFailure::check(cudaError_t code, std::string_view what)
{
    if (code == cudaSuccess)
        return {};
    Status status = toStatus(code, what);
    if (status.kind() != ErrorKind::DeviceLost)
        return status;
    set(status);
    return this->status();
}

void CudaFailure::remember(cudaError_t code, std::string_view what) noexcept
{
    try {
        (void)check(code, what).ok();
    } catch (const std::bad_alloc&) {
        m_lost.store(true, std::memory_order_release);
    }
}

void CudaFailure::remember(const Status& status) noexcept
{
    if (status.ok() || status.kind() != ErrorKind::DeviceLost)
        return;
    try {
        set(status);
    } catch (const std::bad_alloc&) {
        m_lost.store(true, std::memory_order_release);
    }
}

void CudaFailure::note(cudaError_t code, std::string_view what) noexcept
{
    // The runtime is gone when static objects are destroyed; the driver then frees everything.
    if (code == cudaSuccess || code == cudaErrorCudartUnloading)
        return;
    if (!lost() && !m_logged.exchange(true)) {
        log(LogLevel::Error, what);
        log(LogLevel::Error, cudaGetErrorString(code));
    }
    remember(code, what);
}

Status CudaFailure::status() const
{
    if (!lost())
        return {};
    const std::scoped_lock lock(m_mutex);
    return m_status.ok() ? Status::error(ErrorKind::DeviceLost, "the CUDA device failed")
                         : m_status;
}

void CudaFailure::set(const Status& status)
{
    const std::scoped_lock lock(m_mutex);
    if (m_status.ok())
        m_status = Status::error(ErrorKind::DeviceLost,
            status.message() + "; the CUDA device is lost until the program starts again");
    m_lost.store(true, std::memory_order_release);
}

} // namespace mr::gpu
